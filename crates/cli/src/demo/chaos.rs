//! Chaos: where tasks are struck, and what happens to the embedded broker meanwhile. All from one seed.

use super::Plan;
use super::state::Progress;
use kafka_share::ShareRecords;
use kafka_share_broker::{CoordinatorKind, EmbeddedBroker};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A small seeded generator (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Dice(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(stream.wrapping_mul(0x2545_F491_4F6C_DD1D)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True once in `n`.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Where in a round a task is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strike {
    /// After the poll, with records held.
    AfterPoll,
    /// In the middle of the transaction, with half of the output sent.
    MidTransaction,
    /// After all output is written, before the acknowledgements are staged.
    AfterProduce,
    /// After staging, before the commit.
    BeforeCommit,
    /// With the commit on its way.
    DuringCommit,
    /// Paused past the lock, then going on as if nothing were.
    PausePastLock,
}

impl Strike {
    /// The strike of this round, if any: about one round in six.
    pub(super) fn roll(dice: &mut Dice) -> Option<Strike> {
        let all = [
            Strike::AfterPoll,
            Strike::MidTransaction,
            Strike::AfterProduce,
            Strike::BeforeCommit,
            Strike::DuringCommit,
            Strike::PausePastLock,
        ];
        dice.one_in(6).then(|| all[dice.below(all.len() as u64) as usize])
    }
}

/// How a task is struck.
#[derive(Debug)]
pub(super) enum Strikes {
    /// Not at all.
    None,
    /// It is dropped where it stands, or pauses.
    Dropped(Dice),
    /// Its process tells where it stands, and is killed or stopped from outside.
    Signalled(Dice, Hand),
}

impl Strikes {
    /// Where this round is struck, if it is.
    pub(super) fn roll(&mut self) -> Option<Strike> {
        match self {
            Strikes::None => None,
            Strikes::Dropped(dice) => Strike::roll(dice),
            // The pause is one of the signals.
            Strikes::Signalled(dice, _) => Strike::roll(dice).filter(|strike| *strike != Strike::PausePastLock),
        }
    }

    /// Tells whoever counts of records that brokers will give up soon.
    pub(super) fn tell_of(&self, records: &ShareRecords) {
        if matches!(self, Strikes::Signalled(..)) {
            for record in records.iter().filter(|record| record.delivery_count() >= OFTEN) {
                println!("{AGAIN} {} {} {}", record.partition(), record.offset(), record.delivery_count());
            }
        }
    }

    /// The task stands where it is to be struck. Answers whether it ends here.
    pub(super) async fn at(&mut self, strike: Strike) -> bool {
        match self {
            Strikes::Signalled(_, hand) => {
                hand.signal(strike).await;
                false
            }
            _ => true,
        }
    }
}

/// The process that strikes this one: it reads the standard output, and answers on the standard input once the struck one
/// may go on.
#[derive(Debug)]
pub(super) struct Hand(pub(super) tokio::sync::mpsc::Receiver<()>);

impl Hand {
    async fn signal(&mut self, strike: Strike) {
        if strike == Strike::DuringCommit {
            // It comes while the commit is on its way.
            println!("{SOON}");
            return;
        }
        println!("{HERE} {strike:?}");
        if self.0.recv().await.is_none() {
            std::process::exit(0);
        }
    }
}

/// Lines of a struck process: it waits to be struck.
pub(super) const HERE: &str = "here";
/// It goes on, and is to be struck in a moment.
pub(super) const SOON: &str = "soon";
/// A transaction was committed: records, and how many of them had come before.
pub(super) const DONE: &str = "done";
/// A transaction was aborted.
pub(super) const ABORTED: &str = "aborted";
/// What a member's consumer met in the ledger: producers fenced, times it was read anew, records done by others.
pub(super) const MET: &str = "met";
/// A record is delivered for the last time but one, or the last: partition, offset, delivery count.
pub(super) const AGAIN: &str = "again";
/// Delivery count from which that is told. Brokers archive at 5 by default.
pub(super) const OFTEN: i16 = 4;

/// Trouble for the embedded broker.
pub(super) struct Chaos {
    broker: Option<Arc<EmbeddedBroker>>,
    dice: Dice,
    plan: Plan,
}

impl Chaos {
    pub(super) fn new(broker: Option<Arc<EmbeddedBroker>>, plan: &Plan) -> Self {
        Chaos { broker, dice: Dice::new(plan.seed, 1_000_003), plan: plan.clone() }
    }

    /// Moves leaders and coordinators and restarts nodes until the run stops.
    pub(super) async fn run(mut self, progress: Arc<Progress>) {
        let Some(broker) = self.broker.take() else { return std::future::pending().await };
        let nodes: Vec<i32> = broker.nodes().iter().map(|n| n.id).collect();
        while !progress.is_stopped() {
            tokio::time::sleep(Duration::from_millis(40 + self.dice.below(200))).await;
            let node = nodes[self.dice.below(nodes.len() as u64) as usize];
            let partition = self.dice.below(self.plan.partitions as u64) as i32;
            let struck = match self.dice.below(8) {
                0..=2 => broker.move_leader(&self.plan.input_topic, partition, node),
                3 => broker.move_leader(&self.plan.output_topic, partition, node),
                4 => broker.move_coordinator(CoordinatorKind::Group, &self.plan.group, node),
                5 => broker.move_coordinator(CoordinatorKind::Share, &self.plan.group, node),
                6 => {
                    let task = self.dice.below(u64::from(self.plan.tasks));
                    broker.move_coordinator(
                        CoordinatorKind::Transaction,
                        &self.plan.transactional_id(task as u16),
                        node,
                    )
                }
                _ => broker.restart_node(node),
            };
            if struck {
                progress.chaos.fetch_add(1, Ordering::Relaxed);
            }
        }
        std::future::pending::<()>().await;
    }
}

impl Plan {
    /// Transactional id of a task; the same after a restart, so that the new one fences the old.
    pub(super) fn transactional_id(&self, task: u16) -> String {
        format!("{}-{task}", self.group)
    }
}
