//! What happens to the broker meanwhile: leaders and coordinators move, nodes restart, locks end before their time.

use super::{GROUP, Plan, TOPIC};
use kafka_share_broker::{CoordinatorKind, EmbeddedBroker};
use kafka_share_tests::dice::Dice;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Makes trouble until the producer stops; how often each kind.
pub(crate) async fn make(
    broker: Arc<EmbeddedBroker>,
    plan: Plan,
    going: Arc<AtomicBool>,
) -> BTreeMap<&'static str, u64> {
    let mut dice = Dice::new(plan.seed, 1);
    let mut made = BTreeMap::new();
    while going.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(200 + dice.below(1_800))).await;
        let node = 1 + dice.below(3) as i32;
        let partition = dice.below(plan.partitions as u64) as i32;
        let kind = match dice.below(8) {
            0..=3 => {
                broker.move_leader(TOPIC, partition, node);
                "leader moved"
            }
            4 => {
                broker.move_coordinator(CoordinatorKind::Group, GROUP, node);
                "group coordinator moved"
            }
            5 => {
                broker.restart_node(node);
                "node restarted"
            }
            _ => {
                broker.expire_locks(GROUP);
                "locks expired"
            }
        };
        *made.entry(kind).or_default() += 1;
    }
    made
}
