//! The records of one poll, what becomes of them, and why a task fails over them.

use crate::ConnectError;
use crate::SinkRecord;
use crate::error::Blame;
use crate::renewal::Renewal;
use crate::rows::{Converted, Fate, Fates, Rows};
use crate::task::Report;
use kafka_share::{RecordId, ShareRecord, ShareRecords};
use std::ops::Range;

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

/// The records of one poll, and what becomes of them. Rows are counted from 0, as the poll hands them out.
pub(crate) struct Batch<'a> {
    polled: &'a ShareRecords,
    pub(crate) fates: Fates,
    /// Why the task fails after this batch.
    pub(crate) failure: Option<ConnectError>,
    /// No more of it is put.
    pub(crate) over: bool,
    /// The sink was cut off in a put or flush, and is not to be used any more but for its end.
    pub(crate) cut: bool,
    pub(crate) renewal: Renewal,
    most_deliveries: i16,
    redelivered: u64,
}

impl<'a> Batch<'a> {
    /// `room` is of a batch before.
    pub(crate) fn new(polled: &'a ShareRecords, room: Fates, renewal: Renewal) -> Self {
        let fates = room.undecided(polled.len());
        Batch { polled, fates, failure: None, over: false, cut: false, renewal, most_deliveries: 0, redelivered: 0 }
    }

    /// Takes note of the delivery count of a record.
    #[inline]
    pub(crate) fn note_delivery(&mut self, count: i16) {
        self.most_deliveries = self.most_deliveries.max(count);
        self.redelivered += u64::from(count > 1);
    }

    pub(crate) fn decide(&mut self, rows: Rows<'_>, fate: Fate) {
        self.fates.decide(rows, fate);
    }

    /// Rows with their fates and records.
    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, Fate, ShareRecord<'a>)> {
        let row = |(row, record)| (row, self.fates.of(row), record);
        self.polled.iter().enumerate().map(row)
    }

    /// Ids of some of the rows.
    pub(crate) fn ids(&self, rows: Rows<'_>) -> impl Iterator<Item = (RecordId, Fate)> {
        let id = |row| self.polled.get(row).map(|record| (record.id(), self.fates.of(row)));
        rows.into_iter().filter_map(id)
    }

    /// Where a record lies.
    pub(crate) fn place(&self, row: usize) -> String {
        self.polled.get(row).map_or_else(String::new, |r| place(&r))
    }

    /// The task cannot go on.
    pub(crate) fn fail(&mut self, rows: Rows<'_>, error: ConnectError) {
        self.over = true;
        self.decide(rows, Fate::Release);
        let first = rows.first().map_or_else(String::new, |row| format!("{}: ", self.place(row)));
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
        let comes_again = |(_, fate, _): &(usize, Fate, _)| matches!(fate, Fate::Release | Fate::Undecided);
        let most = self.each().filter(comes_again).max_by_key(|(.., record)| record.delivery_count());
        let most = most.map(|(.., record)| (place(&record), deliveries(record.delivery_count())));
        self.failure = Some(match most {
            Some((place, count)) if is_last(count, limit) => failure.staying(&place, count, limit),
            _ => failure,
        });
    }

    /// How often the record that was delivered most often has been.
    pub(crate) fn most_deliveries(&self) -> u32 {
        deliveries(self.most_deliveries)
    }

    /// How many have been delivered before.
    pub(crate) fn redelivered(&self) -> u64 {
        self.redelivered
    }

    /// Of `part` of what was converted: those in a row that were to be accepted and are undecided again, the first last.
    pub(crate) fn take_accepted_runs(&mut self, part: &Range<usize>, converted: &Converted) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for at in part.clone().rev() {
            let row = converted.row(at);
            if self.fates.of(row) != Fate::Accept {
                continue;
            }
            self.fates.set(row, Fate::Undecided);
            match runs.last_mut() {
                Some(run) if run.start == at + 1 => run.start = at,
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }
}

fn place(record: &ShareRecord<'_>) -> String {
    format!("{}-{}@{}", record.topic(), record.partition(), record.offset())
}

/// Whether a record that has been delivered so often, if it is released, is delivered for the last time next, or never.
pub(crate) fn is_last(deliveries: u32, limit: u32) -> bool {
    deliveries > 0 && deliveries + 1 >= limit
}

fn deliveries(count: i16) -> u32 {
    u32::try_from(count).unwrap_or(0)
}

impl Report {
    pub(crate) fn is_about(&self, record: &SinkRecord) -> bool {
        self.topic == record.original_topic && self.partition == record.partition && self.offset == record.offset
    }
}
