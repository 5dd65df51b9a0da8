//! The records of one poll, what becomes of them, and why a task fails over them.

use crate::ConnectError;
use crate::renewal::Renewal;
use crate::task::Report;
use crate::{SinkRecord, error::Blame};
use kafka_share::{RecordId, ShareRecord, ShareRecords};
use std::ops::Range;

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

/// A record of the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) id: RecordId,
    pub(crate) deliveries: i16,
    pub(crate) fate: Fate,
}

/// The records of one poll, and what becomes of them.
pub(crate) struct Batch<'a> {
    polled: &'a ShareRecords,
    pub(crate) rows: Vec<Row>,
    /// Why the task fails after this batch.
    pub(crate) failure: Option<ConnectError>,
    /// No more of it is put.
    pub(crate) over: bool,
    /// The sink was cut off in a put or flush, and is not to be used any more but for its end.
    pub(crate) cut: bool,
    pub(crate) renewal: Renewal,
}

impl<'a> Batch<'a> {
    /// `rows` is empty, and may have room.
    pub(crate) fn new(polled: &'a ShareRecords, rows: Vec<Row>, renewal: Renewal) -> Self {
        Batch { polled, rows, failure: None, over: false, cut: false, renewal }
    }

    pub(crate) fn push(&mut self, record: &ShareRecord<'_>) {
        let id = record.id();
        self.rows.push(Row { id, deliveries: record.delivery_count(), fate: Fate::Undecided });
        self.renewal.push(id);
    }

    pub(crate) fn decide(&mut self, rows: &[usize], fate: Fate) {
        rows.iter().for_each(|row| self.rows[*row].fate = fate);
    }

    pub(crate) fn has(&self, fate: Fate) -> bool {
        self.rows.iter().any(|r| r.fate == fate)
    }

    /// Where a record lies. Slow, for what seldom happens.
    pub(crate) fn place(&self, row: usize) -> String {
        let record = self.polled.iter().nth(row);
        record.map_or_else(String::new, |r| format!("{}-{}@{}", r.topic(), r.partition(), r.offset()))
    }

    /// The task cannot go on.
    pub(crate) fn fail(&mut self, rows: &[usize], error: ConnectError) {
        self.over = true;
        self.decide(rows, Fate::Release);
        let first = rows.first().map_or_else(String::new, |row| format!("{}: ", self.place(*row)));
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
        let comes_again = |(_, row): &(usize, &Row)| matches!(row.fate, Fate::Release | Fate::Undecided);
        let most = self.rows.iter().enumerate().filter(comes_again).max_by_key(|(_, row)| row.deliveries);
        self.failure = Some(match most {
            Some((i, row)) if is_last(deliveries(*row), limit) => {
                failure.staying(&self.place(i), deliveries(*row), limit)
            }
            _ => failure,
        });
    }

    /// How often the record that was delivered most often has been.
    pub(crate) fn most_deliveries(&self) -> u32 {
        self.rows.iter().map(|row| deliveries(*row)).max().unwrap_or(0)
    }

    /// How many have been delivered before.
    pub(crate) fn redelivered(&self) -> u64 {
        self.rows.iter().filter(|row| row.deliveries > 1).count() as u64
    }

    /// Of `part` of the records whose rows are `rows`: those in a row that were to be accepted and are undecided again, the
    /// first last.
    pub(crate) fn take_accepted_runs(&mut self, part: &Range<usize>, rows: &[usize]) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for at in part.clone().rev() {
            let row = &mut self.rows[rows[at]];
            if row.fate != Fate::Accept {
                continue;
            }
            row.fate = Fate::Undecided;
            match runs.last_mut() {
                Some(run) if run.start == at + 1 => run.start = at,
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }
}

/// What is put of a batch: records after converters and transforms, and their rows.
#[derive(Default)]
pub(crate) struct Converted {
    pub(crate) records: Vec<SinkRecord>,
    pub(crate) rows: Vec<usize>,
}

/// A part of it that is put at once.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) records: &'a [SinkRecord],
    pub(crate) rows: &'a [usize],
}

impl Converted {
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.rows.clear();
    }

    pub(crate) fn part(&self, range: Range<usize>) -> Part<'_> {
        Part { records: &self.records[range.clone()], rows: &self.rows[range] }
    }
}

/// Whether a record that has been delivered so often, if it is released, is delivered for the last time next, or never.
pub(crate) fn is_last(deliveries: u32, limit: u32) -> bool {
    deliveries > 0 && deliveries + 1 >= limit
}

fn deliveries(row: Row) -> u32 {
    u32::try_from(row.deliveries).unwrap_or(0)
}

impl Report {
    pub(crate) fn is_about(&self, record: &SinkRecord) -> bool {
        self.topic == record.original_topic && self.partition == record.partition && self.offset == record.offset
    }
}
