//! The batches of one partition: open, waiting, and sent but not settled.

use super::types::{BatchId, RecordParts};
use crate::transaction::ProducerIdentity;
use bytes::{Bytes, BytesMut};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::records::{BatchBuilder, BatchOptions, RecordError};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Sequence numbers count to 2^31 - 1, then start again at 0.
pub(super) fn advance(sequence: i32, records: i32) -> i32 {
    sequence.wrapping_add(records) & i32::MAX
}

/// A batch whose records are still being collected, or that waits to be sent for the first time.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) id: BatchId,
    pub(super) builder: BatchBuilder,
    pub(super) created: Instant,
    /// Bytes charged to `buffer.memory`.
    pub(super) charge: usize,
}

/// Where a sequenced batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    InFlight,
    /// To be sent again, unchanged, not before this.
    Retry(Instant),
    /// Certainly not written under its sequence number; waits for the next epoch to be numbered anew.
    Renumber,
}

/// A batch that has its sequence number.
#[derive(Debug)]
pub(super) struct Sequenced {
    pub(super) id: BatchId,
    /// Empty until the batch is encoded, which is before its first answer.
    pub(super) bytes: Bytes,
    pub(super) records: i32,
    pub(super) identity: ProducerIdentity,
    pub(super) created: Instant,
    pub(super) charge: usize,
    pub(super) phase: Phase,
    pub(super) attempts: u32,
    /// Whether an earlier try may have been written though its answer was lost.
    pub(super) maybe_written: bool,
}

/// A partition.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) topic: usize,
    pub(super) index: i32,
    pub(super) leader: i32,
    /// First sequence number of the next batch.
    pub(super) next_sequence: i32,
    /// Whether the broker has taken a batch of the current epoch. Until then one batch is in flight at a time: a broker
    /// that does not know the producer takes any first sequence number, so a second batch must not overtake.
    pub(super) confirmed: bool,
    /// Why the broker had a batch sent again, last; until it takes one.
    pub(super) refusal: Option<ErrorCode>,
    pub(super) open: Option<Collected>,
    pub(super) waiting: VecDeque<Collected>,
    /// Batches to be numbered again in the new epoch, in order, before all that wait.
    pub(super) renumbered: VecDeque<Sequenced>,
    pub(super) sent: VecDeque<Sequenced>,
    /// Whether it is to be looked at; see `agenda`.
    pub(super) noted: bool,
    /// The broker in whose line it stands.
    pub(super) lined_up: Option<i32>,
    /// When it is looked at without being noted.
    pub(super) timer: Option<Instant>,
    /// Bytes of the batch before: room for the next.
    room: usize,
}

/// What became of an appended record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) batch: BatchId,
    pub(super) index: u32,
    /// The batch before is full.
    pub(super) filled: bool,
    /// When the new batch was begun, where one was.
    pub(super) begun: Option<Instant>,
}

impl Partition {
    pub(super) fn new(topic: usize, index: i32) -> Self {
        Partition {
            topic,
            index,
            leader: -1,
            next_sequence: 0,
            confirmed: false,
            refusal: None,
            open: None,
            waiting: VecDeque::new(),
            renumbered: VecDeque::new(),
            sent: VecDeque::new(),
            noted: false,
            lined_up: None,
            timer: None,
            room: 0,
        }
    }

    /// Appends a record; begins a batch, named `fresh`, where need be.
    pub(super) fn append(
        &mut self,
        now: impl FnOnce() -> Instant,
        fresh: BatchId,
        options: BatchOptions,
        batch_size: usize,
        estimate: usize,
        record: RecordParts<'_, '_>,
    ) -> Result<Taken, RecordError> {
        let (mut filled, mut begun) = (false, None);
        if self.open.as_ref().is_some_and(|o| !o.builder.is_empty() && o.builder.would_exceed(batch_size, estimate)) {
            self.seal();
            filled = true;
        }
        let room = self.room.min(batch_size);
        let open = self.open.get_or_insert_with(|| {
            let created = now();
            begun = Some(created);
            let builder = BatchBuilder::with_buffer(options, BytesMut::with_capacity(room));
            Collected { id: fresh, builder, created, charge: 0 }
        });
        let result = open.builder.append(record.timestamp, record.key, record.value, record.headers.iter().copied());
        match result {
            Ok(index) => {
                open.charge += estimate;
                Ok(Taken { batch: open.id, index: index as u32, filled, begun })
            }
            Err(error) => {
                if open.builder.is_empty() {
                    self.open = None;
                }
                Err(error)
            }
        }
    }

    /// Closes the open batch.
    pub(super) fn seal(&mut self) {
        if let Some(open) = &self.open {
            self.room = open.builder.size() + open.builder.size() / 8;
        }
        self.waiting.extend(self.open.take());
    }

    pub(super) fn is_idle(&self) -> bool {
        self.open.is_none() && self.waiting.is_empty() && self.sent.is_empty() && self.renumbered.is_empty()
    }

    /// Whether a batch may be sent now: again, or for the first time where `fresh` allows.
    pub(super) fn next(&self, now: Instant, linger: Duration, max_in_flight: usize, fresh: bool) -> Option<Next> {
        if self.sent.iter().any(|b| b.phase != Phase::InFlight) {
            // What is sent again goes alone and in order, once all answers are in.
            let all_back = self.sent.iter().all(|b| b.phase != Phase::InFlight);
            return match self.next_again()?.phase {
                Phase::Retry(at) if all_back && at <= now => Some(Next::Again),
                _ => None,
            };
        }
        let limit = if self.confirmed { max_in_flight } else { 1 };
        if !fresh || self.sent.len() >= limit {
            return None;
        }
        if !self.renumbered.is_empty() || !self.waiting.is_empty() {
            return Some(Next::First);
        }
        let lingered = self.open.as_ref().is_some_and(|o| o.created + linger <= now);
        lingered.then_some(Next::First)
    }

    /// What is sent again first. Batches that wait for new numbers hold up none that may have been written: whether they
    /// were must be known first.
    fn next_again(&self) -> Option<&Sequenced> {
        self.sent.iter().find(|b| b.phase != Phase::Renumber)
    }

    /// Has everything behind a batch that waits for new numbers wait for its own, except what may have been written: the
    /// broker takes none of it under the old ones, or would take it out of order.
    pub(super) fn renumber_behind(&mut self) {
        let behind = self.sent.iter_mut().skip_while(|b| b.phase != Phase::Renumber);
        for batch in behind.filter(|b| matches!(b.phase, Phase::Retry(_)) && !b.maybe_written) {
            batch.phase = Phase::Renumber;
        }
    }

    /// When something is due, apart from answers. Moments that have passed wait for an answer.
    pub(super) fn deadlines(&self, linger: Duration, delivery: Duration) -> impl Iterator<Item = Instant> {
        let retry = self.next_again().and_then(|b| match b.phase {
            Phase::Retry(at) => Some(at),
            _ => None,
        });
        let lingers = self.open.as_ref().map(|o| o.created + linger);
        let oldest = self.waiting.front().or(self.open.as_ref()).map(|b| b.created);
        let sent = self.sent.iter().chain(&self.renumbered).map(|b| b.created);
        let expires = oldest.into_iter().chain(sent).min().map(|at| at + delivery);
        [retry, lingers, expires].into_iter().flatten()
    }
}

/// Which batch is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The first sent one, again.
    Again,
    /// A new one.
    First,
}
