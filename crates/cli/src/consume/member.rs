//! The loop of `kshare consume`: poll, print, flush, accept; and an end that accepts nothing that was not printed.

use super::format::Printer;
use crate::exit::Failure;
use crate::progress::Line;
use crate::signals::Interrupt;
use kafka_share::{AckType, KafkaShareConsumer, Outcome, RecordId, ShareRecords};
use std::time::Duration;
use tokio::time::Instant;

/// How long a poll waits before the line of progress changes.
const TURN: Duration = Duration::from_millis(500);
const CLOSE: Duration = Duration::from_secs(10);

/// Why it ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// As many records as were asked for.
    Counted,
    TimeOver,
    Interrupted,
    /// Nobody reads the standard output any more.
    ReaderGone,
    Failed(Failure),
}

pub(super) struct Member<'a> {
    consumer: &'a KafkaShareConsumer,
    printer: Printer,
    count: Option<u64>,
    printed: u64,
    /// Printed records that could not be accepted.
    lost: u64,
}

impl<'a> Member<'a> {
    pub(super) fn new(consumer: &'a KafkaShareConsumer, printer: Printer, count: Option<u64>) -> Self {
        Member { consumer, printer, count, printed: 0, lost: 0 }
    }

    /// Records that were printed.
    pub(super) fn printed(&self) -> u64 {
        self.printed
    }

    /// Prints and accepts records until something ends it.
    pub(super) async fn run(&mut self, deadline: Option<Instant>, mut interrupt: Interrupt) -> Ending {
        let mut shown = Line::new();
        let ending = loop {
            let now = Instant::now();
            let left = deadline.map_or(TURN, |deadline| deadline.saturating_duration_since(now).min(TURN));
            if interrupt.is_set() {
                break Ending::Interrupted;
            }
            if left.is_zero() {
                break Ending::TimeOver;
            }
            let records = tokio::select! {
                biased;
                records = self.consumer.poll(left) => records,
                () = interrupt.wait() => break Ending::Interrupted,
            };
            let records = match records {
                Ok(records) => records,
                Err(error) if error.is_retriable() => continue,
                Err(error) => break Ending::Failed(error.into()),
            };
            if !records.is_empty() {
                // Lines of records and a line of progress in one terminal would garble each other.
                shown.clear();
                shown = Line::new();
            }
            if let Err(error) = self.print(&records) {
                let failure = Failure::output(&error);
                break if failure.is_quiet() { Ending::ReaderGone } else { Ending::Failed(failure) };
            }
            self.look_at_outcomes();
            if self.count.is_some_and(|count| self.printed >= count) {
                break Ending::Counted;
            }
            shown.say(|| format!("waiting for records, {} printed", self.printed));
        };
        shown.clear();
        ending
    }

    /// Prints records, up to the number asked for, and accepts what is out.
    fn print(&mut self, records: &ShareRecords) -> std::io::Result<()> {
        let mut unflushed: Vec<RecordId> = Vec::new();
        for record in records {
            if self.count.is_some_and(|count| self.printed + unflushed.len() as u64 >= count) {
                break;
            }
            self.printer.print(&record)?;
            unflushed.push(record.id());
            if self.printer.one_by_one() {
                self.accept(&mut unflushed)?;
            }
        }
        self.accept(&mut unflushed)
    }

    fn accept(&mut self, records: &mut Vec<RecordId>) -> std::io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.printer.flush()?;
        self.printed += records.len() as u64;
        let acknowledger = self.consumer.acknowledger();
        for id in records.drain(..) {
            // Printing may have taken longer than the lock holds, if nobody read for a while.
            if acknowledger.acknowledge(id, AckType::Accept).is_err() {
                self.lost += 1;
            }
        }
        Ok(())
    }

    fn look_at_outcomes(&mut self) {
        for outcome in self.consumer.poll_outcomes() {
            if outcome.ack_type.is_some() && outcome.outcome != Outcome::Acknowledged {
                self.lost += (outcome.last_offset - outcome.first_offset + 1).unsigned_abs();
            }
        }
    }

    /// Sends what was accepted, leaves the group, and answers how many printed records could not be accepted.
    pub(super) async fn settle(&mut self) -> Result<u64, Failure> {
        let committed = self.consumer.commit_sync(CLOSE).await;
        let closed = self.consumer.close(CLOSE).await;
        self.look_at_outcomes();
        committed.map_err(|e| Failure::from(e).context("printed records may not be accepted"))?;
        if let Err(error) = closed {
            tracing::warn!(%error, "the group was not left in time");
        }
        Ok(self.lost)
    }
}
