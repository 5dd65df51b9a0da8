//! What the tasks of a run have done so far, record by record.

use super::Plan;
use super::input::place;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Counters of a run; shared by its tasks.
#[derive(Debug)]
pub(crate) struct Progress {
    /// By partition and offset: whether a transaction with this record's output was committed.
    done: Mutex<Vec<Vec<bool>>>,
    left: AtomicU64,
    total: AtomicU64,
    partitions: i32,
    stopped: AtomicBool,
    last_commit: Mutex<Instant>,
    /// Highest delivery counts that were told of, by partition and offset.
    often: Mutex<HashMap<(i32, i64), i16>>,
    /// Transactions committed.
    pub(crate) commits: AtomicU64,
    /// Transactions aborted, or left open by a task that was dropped.
    pub(crate) aborts: AtomicU64,
    /// Records that were delivered again.
    pub(crate) redelivered: AtomicU64,
    /// Times that chaos struck.
    pub(crate) chaos: AtomicU64,
    /// Processes that were killed (SIGKILL).
    pub(crate) kills: AtomicU64,
    /// Processes that were stopped for a while (SIGSTOP, SIGCONT).
    pub(crate) stops: AtomicU64,
    /// Those stops that were longer than tombstones and compaction take.
    pub(crate) long_stops: AtomicU64,
    /// Those of the long ones that came right after a poll.
    pub(crate) long_stops_after_poll: AtomicU64,
    /// Processes that ended otherwise, and were started again.
    pub(crate) deaths: AtomicU64,
    /// Producers that members fenced, because their transactions stood in the way.
    pub(crate) fences: AtomicU64,
    /// Times that members read the ledger anew, because it had forgotten what they had not read.
    pub(crate) ledger_restarts: AtomicU64,
    /// Records that members did not process, because another one had.
    pub(crate) done_elsewhere: AtomicU64,
}

impl Progress {
    pub(crate) fn new(plan: &Plan, records: usize) -> Self {
        let progress = Progress {
            done: Mutex::new(vec![Vec::new(); plan.partitions as usize]),
            left: AtomicU64::new(0),
            total: AtomicU64::new(0),
            partitions: plan.partitions,
            stopped: AtomicBool::new(false),
            last_commit: Mutex::new(Instant::now()),
            often: Mutex::default(),
            commits: AtomicU64::new(0),
            aborts: AtomicU64::new(0),
            redelivered: AtomicU64::new(0),
            chaos: AtomicU64::new(0),
            kills: AtomicU64::new(0),
            stops: AtomicU64::new(0),
            long_stops: AtomicU64::new(0),
            long_stops_after_poll: AtomicU64::new(0),
            deaths: AtomicU64::new(0),
            fences: AtomicU64::new(0),
            ledger_restarts: AtomicU64::new(0),
            done_elsewhere: AtomicU64::new(0),
        };
        progress.add(records);
        progress
    }

    /// More input records are there.
    pub(crate) fn add(&self, records: usize) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let first = self.total();
        for index in first..first + records {
            done[place(index, self.partitions).0 as usize].push(false);
        }
        self.left.fetch_add(records as u64, Ordering::AcqRel);
        self.total.fetch_add(records as u64, Ordering::AcqRel);
    }

    /// A transaction with the output of these records was committed.
    pub(crate) fn note_commit(&self, records: &[(i32, i64)]) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.note_output(records);
    }

    /// The output of these records is committed.
    pub(crate) fn note_output(&self, records: &[(i32, i64)]) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = 0;
        for (partition, offset) in records {
            let slot = usize::try_from(*partition).ok().and_then(|p| done.get_mut(p));
            let slot = slot.and_then(|p| usize::try_from(*offset).ok().and_then(|o| p.get_mut(o)));
            if let Some(slot) = slot.filter(|s| !**s) {
                *slot = true;
                new += 1;
            }
        }
        self.left.fetch_sub(new, Ordering::AcqRel);
        *self.last_commit.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Input records.
    pub(crate) fn total(&self) -> usize {
        self.total.load(Ordering::Acquire) as usize
    }

    /// Records whose output is known to be committed.
    pub(crate) fn committed(&self) -> usize {
        self.total() - self.left.load(Ordering::Acquire) as usize
    }

    /// A record was delivered once more, after a few times.
    pub(crate) fn note_often(&self, source: (i32, i64), count: i16) {
        let mut often = self.often.lock().unwrap_or_else(PoisonError::into_inner);
        let known = often.entry(source).or_default();
        *known = count.max(*known);
    }

    /// The highest delivery count of a record that was delivered a few times.
    pub(crate) fn deliveries(&self, source: (i32, i64)) -> Option<i16> {
        self.often.lock().unwrap_or_else(PoisonError::into_inner).get(&source).copied()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    pub(crate) fn last_commit(&self) -> Instant {
        *self.last_commit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the tasks to end.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}
