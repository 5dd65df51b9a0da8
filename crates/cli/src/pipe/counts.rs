//! What the tasks of a pipe have done, and how much they may still do.

use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counters that all tasks share.
#[derive(Debug)]
pub(super) struct Counts {
    /// Records whose answers are written and which are acknowledged with them.
    pub(super) read: AtomicU64,
    pub(super) written: AtomicU64,
    /// Transactions, or batches without one.
    pub(super) transactions: AtomicU64,
    /// Batches that failed; their records come again.
    pub(super) failed: AtomicU64,
    /// How often the program ended.
    pub(super) deaths: AtomicU64,
    pub(super) restarts: AtomicU64,
    /// Records that may still be begun.
    left: AtomicU64,
    limited: bool,
    active: Mutex<Instant>,
}

impl Counts {
    pub(super) fn new(limit: Option<u64>) -> Self {
        let zero = AtomicU64::default;
        Counts {
            read: zero(),
            written: zero(),
            transactions: zero(),
            failed: zero(),
            deaths: zero(),
            restarts: zero(),
            left: AtomicU64::new(limit.unwrap_or(u64::MAX)),
            limited: limit.is_some(),
            active: Mutex::new(Instant::now()),
        }
    }

    /// How many of these records may be begun.
    pub(super) fn claim(&self, records: usize) -> usize {
        if !self.limited {
            return records;
        }
        let mut claimed = 0;
        let _ = self.left.fetch_update(Relaxed, Relaxed, |left| {
            claimed = left.min(records as u64);
            Some(left - claimed)
        });
        claimed as usize
    }

    /// Whether as many as were asked for are done or under way.
    pub(super) fn is_used_up(&self) -> bool {
        self.limited && self.left.load(Relaxed) == 0
    }

    /// They were not done after all.
    pub(super) fn unclaim(&self, records: usize) {
        if self.limited {
            self.left.fetch_add(records as u64, Relaxed);
        }
        self.touch();
    }

    pub(super) fn done(&self, records: usize) {
        self.read.fetch_add(records as u64, Relaxed);
        self.touch();
    }

    fn touch(&self) {
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Since when nothing was done.
    pub(super) fn idle(&self) -> Duration {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    pub(super) fn line(&self) -> String {
        let of = |count: &AtomicU64| count.load(Relaxed);
        let mut text = format!(
            "{} records in, {} out, {} transactions",
            of(&self.read),
            of(&self.written),
            of(&self.transactions)
        );
        for (count, what) in [
            (&self.failed, "batches came again"),
            (&self.deaths, "times the program ended"),
            (&self.restarts, "tasks started anew"),
        ] {
            if of(count) > 0 {
                text.push_str(&format!(", {} {what}", of(count)));
            }
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let of = |count: &AtomicU64| count.load(Relaxed);
        json!({
            "records_in": of(&self.read),
            "records_out": of(&self.written),
            "transactions": of(&self.transactions),
            "failed_batches": of(&self.failed),
            "program_ends": of(&self.deaths),
            "task_restarts": of(&self.restarts),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_claimed_than_was_asked_for() {
        let counts = Counts::new(Some(10));
        assert_eq!((counts.claim(6), counts.claim(6), counts.claim(6)), (6, 4, 0));
        assert!(counts.is_used_up());
        counts.unclaim(4);
        assert!(!counts.is_used_up());
        assert_eq!(counts.claim(6), 4);
        let all = Counts::new(None);
        assert_eq!((all.claim(usize::MAX), all.claim(7)), (usize::MAX, 7));
    }
}
