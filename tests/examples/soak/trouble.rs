//! What happens to the broker meanwhile: leaders and coordinators move, nodes restart, locks end before their time.

use super::{GROUP, Plan, TOPIC};
use kafka_share_broker::{CoordinatorKind, EmbeddedBroker};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A small seeded generator (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Dice(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(stream.wrapping_mul(0x2545_F491_4F6C_DD1D)))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound.max(1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

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
