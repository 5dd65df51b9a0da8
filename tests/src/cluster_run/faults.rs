//! What happens to the cluster: leaders move, and one node after the other goes down and comes back.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Plan, TOPIC};
use crate::dice::Dice;
use crate::kafka_cluster::RealCluster;

/// Internal topics that the group depends on.
const TOPICS: &[&str] = &[TOPIC, "__share_group_state", "__consumer_offsets"];
/// How long replicas may take to be in sync again.
const IN_SYNC_WITHIN: Duration = Duration::from_secs(120);

/// Makes the planned rounds, and more while records are produced; how often each kind.
pub(super) fn make(
    cluster: &RealCluster,
    plan: &Plan,
    producing: &AtomicBool,
    started: Instant,
) -> io::Result<BTreeMap<&'static str, u32>> {
    let mut dice = Dice::new(plan.seed, 1);
    let mut made = BTreeMap::new();
    let say = |what: String| eprintln!("{:>6.1} s  {what}", started.elapsed().as_secs_f64());
    let nodes = cluster.nodes();
    // The group is at work, and its internal topics are there.
    cluster.wait_in_sync(TOPICS, IN_SYNC_WITHIN)?;
    let mut round = 0;
    while round < plan.rounds || producing.load(Ordering::Relaxed) {
        for _ in 0..1 + dice.below(plan.partitions as u64) {
            let partition = dice.below(plan.partitions as u64) as i32;
            let node = nodes[dice.below(nodes.len() as u64) as usize];
            match cluster.move_leader(TOPIC, partition, node) {
                Ok(true) => {
                    say(format!("{TOPIC}-{partition} is led by node {node} now"));
                    *made.entry("leaders moved").or_default() += 1;
                }
                Ok(false) => {}
                // A busy controller; there are more moves to come.
                Err(error) => say(format!("{TOPIC}-{partition} does not move to node {node}: {error}")),
            }
            pause(200 + dice.below(800));
        }
        let node = nodes[dice.below(nodes.len() as u64) as usize];
        if round % 2 == 0 {
            cluster.kill(node);
            say(format!("node {node} was killed"));
            *made.entry("nodes killed").or_default() += 1;
        } else {
            cluster.terminate(node)?;
            say(format!("node {node} has stopped"));
            *made.entry("nodes stopped").or_default() += 1;
        }
        pause(dice.below(plan.down.as_millis() as u64));
        cluster.restart(node)?;
        say(format!("node {node} is back"));
        // With two replicas of three, one more node down would stop all writes.
        cluster.wait_in_sync(TOPICS, IN_SYNC_WITHIN)?;
        say("all replicas are in sync".into());
        round += 1;
    }
    Ok(made)
}

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}
