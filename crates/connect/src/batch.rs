//! The records of one poll, what becomes of them, and why a task fails over them.

use crate::error::Blame;
use crate::renewal::Renewal;
use crate::task::Report;
use crate::{ConnectError, SinkRecord};
use kafka_share::{ShareRecord, ShareRecords};
use std::ops::Range;
use std::time::Duration;

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Undecided,
    Accept,
    Release,
    Reject,
    /// A transaction has acknowledged it.
    Done,
}

/// Why records were not put.
pub(crate) struct PutError {
    pub(crate) blame: Blame,
    pub(crate) error: ConnectError,
}

impl From<ConnectError> for PutError {
    fn from(error: ConnectError) -> Self {
        PutError { blame: error.blame(), error }
    }
}

/// The records of one poll, and what becomes of them.
pub(crate) struct Batch<'a> {
    pub(crate) all: Vec<ShareRecord<'a>>,
    pub(crate) fates: Vec<Fate>,
    /// Why the task fails after this batch.
    pub(crate) failure: Option<ConnectError>,
    /// No more of it is put.
    pub(crate) over: bool,
    pub(crate) renewal: Renewal,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(records: &'a ShareRecords, lock: Option<Duration>) -> Self {
        let all: Vec<ShareRecord<'a>> = records.iter().collect();
        let renewal = Renewal::new(all.iter().map(ShareRecord::id).collect(), lock);
        Batch { fates: vec![Fate::Undecided; all.len()], all, failure: None, over: false, renewal }
    }

    /// The task cannot go on.
    pub(crate) fn fail(&mut self, rows: &[(usize, SinkRecord)], error: ConnectError) {
        self.over = true;
        rows.iter().for_each(|(i, _)| self.fates[*i] = Fate::Release);
        let first = rows.first().map_or_else(String::new, |(_, r)| format!("{}: ", r.place()));
        let stays = error.stays_failed();
        let failure = match error {
            ConnectError::Config(text) => ConnectError::Config(text),
            error if stays => ConnectError::StaysFailed(format!("{first}{error}")),
            error => ConnectError::Fatal(format!("{first}{error}")),
        };
        // What ends the task counts more than a bad record before.
        if self.failure.is_none() || stays {
            self.failure = Some(failure);
        }
    }

    /// A task that fails costs what it releases a delivery. It must not be started again by itself where the next one is the
    /// last: the broker would archive records that nothing is wrong with.
    pub(crate) fn keep_last_delivery(&mut self, limit: u32) {
        let Some(failure) = self.failure.take() else { return };
        let comes_again = |(_, fate): &(&ShareRecord<'_>, &Fate)| matches!(fate, Fate::Release | Fate::Undecided);
        let records = self.all.iter().zip(&self.fates).filter(comes_again).map(|(r, _)| r);
        let most = records.max_by_key(|r| r.delivery_count());
        self.failure = Some(match most {
            Some(r) if is_last(deliveries(r), limit) => failure.staying(&place(r), deliveries(r), limit),
            _ => failure,
        });
    }

    /// How often the record that was delivered most often has been.
    pub(crate) fn most_deliveries(&self) -> u32 {
        self.all.iter().map(deliveries).max().unwrap_or(0)
    }

    /// Of `part` of `records`: those in a row that were to be accepted and are undecided again, the first last.
    pub(crate) fn take_accepted_runs(
        &mut self,
        part: &Range<usize>,
        records: &[(usize, SinkRecord)],
    ) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for at in part.clone().rev() {
            if self.fates[records[at].0] != Fate::Accept {
                continue;
            }
            self.fates[records[at].0] = Fate::Undecided;
            match runs.last_mut() {
                Some(run) if run.start == at + 1 => run.start = at,
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }
}

/// Whether a record that has been delivered so often, if it is released, is delivered for the last time next, or never.
pub(crate) fn is_last(deliveries: u32, limit: u32) -> bool {
    deliveries > 0 && deliveries + 1 >= limit
}

fn deliveries(record: &ShareRecord<'_>) -> u32 {
    u32::try_from(record.delivery_count()).unwrap_or(0)
}

pub(crate) fn place(record: &ShareRecord<'_>) -> String {
    format!("{}-{}@{}", record.topic(), record.partition(), record.offset())
}

impl Report {
    pub(crate) fn is_about(&self, record: &SinkRecord) -> bool {
        self.topic == record.original_topic && self.partition == record.partition && self.offset == record.offset
    }
}
