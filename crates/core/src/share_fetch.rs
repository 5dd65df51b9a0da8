//! From one partition of a ShareFetch answer to records that can be delivered.
//!
//! Only acquired offsets are delivered, whatever lies around them in the batches. Offsets acquired without a record
//! (control records, compaction) become gaps; corrupt batches are rejected, exactly their acquired offsets.

use crate::metadata::TopicIdPartition;
use crate::share_acks::AcquiredRange;
use bytes::Bytes;
use kafka_share_messages::share_fetch_response::AcquiredRecords;
use kafka_share_wire::compression::{Compression, CompressionError};
use kafka_share_wire::records::{BatchIter, DecodedBatch, RecordBatch, RecordError};

/// Acquired offsets in one answer, at most; brokers allow 10,000 locks on a partition. What is beyond comes again once
/// its lock has ended.
pub(crate) const MAX_ACQUIRED: i64 = 1 << 20;

/// A record to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its batch.
    pub batch: u32,
    /// Where it starts in the batch.
    pub position: u32,
    /// Its number among the acquired offsets.
    pub index: u32,
    /// How often it has been handed out, this time included.
    pub delivery_count: i16,
}

/// A batch that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptBatch {
    /// First acquired offset in it.
    pub first_offset: i64,
    /// Last acquired offset in it, inclusive.
    pub last_offset: i64,
    /// What is wrong with it.
    pub error: String,
}

/// What one partition of an answer holds.
#[derive(Debug)]
pub struct Delivery {
    /// The share-partition.
    pub tp: TopicIdPartition,
    /// Acquired offsets, ascending, without overlaps.
    pub ranges: Vec<AcquiredRange>,
    /// Batches with records to deliver.
    pub batches: Vec<DecodedBatch>,
    /// Records to deliver, in offset order.
    pub entries: Vec<Entry>,
    /// Acquired offsets without a record, by number.
    pub gaps: Vec<u32>,
    /// Acquired offsets in corrupt batches, by number.
    pub rejected: Vec<u32>,
    /// Acquired offsets whose records did not come along, by number: to be released.
    pub missing: Vec<u32>,
    /// Corrupt batches.
    pub corrupt: Vec<CorruptBatch>,
    /// Acquired offsets that the broker listed more than once.
    pub repeated: i64,
    /// Whether batches were left compressed, because the answer as a whole would have expanded to too much. Their offsets
    /// are among the missing.
    pub over_limit: bool,
}

/// What compressed batches may expand to, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// One batch. One that expands to more is rejected as corrupt.
    pub batch: usize,
    /// All batches of one answer together. Records beyond it are released. Never less than for one batch, so that each
    /// answer brings something.
    pub answer: usize,
}

/// What is left of the limits within an answer.
pub(crate) struct Room {
    /// Acquired offsets.
    pub(crate) offsets: i64,
    /// Bytes that one batch may expand to.
    pub(crate) batch: usize,
    /// Bytes that all further batches may expand to.
    pub(crate) bytes: usize,
    /// A batch did not fit: none is expanded any more.
    pub(crate) full: bool,
}

impl Room {
    pub(crate) fn new(limits: DecodeLimits) -> Self {
        Room { offsets: MAX_ACQUIRED, batch: limits.batch, bytes: limits.answer.max(limits.batch), full: false }
    }
}

/// Decodes one partition. `limit` bounds what a compressed batch may expand to, in bytes.
#[must_use]
pub fn decode(tp: TopicIdPartition, records: Option<Bytes>, acquired: &[AcquiredRecords], limit: usize) -> Delivery {
    decode_within(tp, records, acquired, &mut Room::new(DecodeLimits { batch: limit, answer: usize::MAX }))
}

/// As [`decode`], of at most what there is room for in the answer.
pub(crate) fn decode_within(
    tp: TopicIdPartition,
    records: Option<Bytes>,
    acquired: &[AcquiredRecords],
    room: &mut Room,
) -> Delivery {
    let (ranges, repeated) = sanitize(acquired, room.offsets);
    room.offsets -= ranges.iter().map(|r| r.last - r.first + 1).sum::<i64>();
    let count = ranges.last().map_or(0, |r| r.start as usize + (r.last - r.first) as usize + 1);
    let mut decoder = Decoder {
        out: Delivery {
            tp,
            ranges,
            batches: Vec::new(),
            entries: Vec::with_capacity(count),
            gaps: Vec::new(),
            rejected: Vec::new(),
            missing: Vec::new(),
            corrupt: Vec::new(),
            repeated,
            over_limit: false,
        },
        seen: vec![false; count],
        read_to: -1,
        disordered: false,
        room,
    };
    let complete = count == 0 || decoder.batches(records.unwrap_or_default());
    decoder.settle_rest(complete);
    decoder.out
}

/// Ascending ranges without overlaps, and how many offsets were listed again: what a broker lists twice counts once.
fn sanitize(acquired: &[AcquiredRecords], room: i64) -> (Vec<AcquiredRange>, i64) {
    let mut all: Vec<&AcquiredRecords> =
        acquired.iter().filter(|a| 0 <= a.first_offset && a.first_offset <= a.last_offset).collect();
    all.sort_by_key(|a| a.first_offset);
    let mut ranges: Vec<AcquiredRange> = Vec::with_capacity(all.len());
    let (mut count, mut repeated) = (0, 0_i64);
    for a in all {
        // Behind the largest offset there is none.
        let Some(free) = ranges.last().map_or(Some(0), |r| r.last.checked_add(1)) else {
            repeated = repeated.saturating_add(1);
            break;
        };
        let first = a.first_offset.max(free);
        repeated = repeated.saturating_add(first.min(a.last_offset.saturating_add(1)) - a.first_offset);
        let last = a.last_offset.min(first.saturating_add(room - count - 1));
        if last < first {
            continue;
        }
        ranges.push(AcquiredRange { first, last, delivery_count: a.delivery_count, start: count as u32 });
        count += last - first + 1;
    }
    (ranges, repeated)
}

struct Decoder<'a> {
    out: Delivery,
    seen: Vec<bool>,
    /// Last offset of the batches read so far.
    read_to: i64,
    /// A batch was passed over, so that an offset without a record may have one.
    disordered: bool,
    room: &'a mut Room,
}

impl Decoder<'_> {
    /// Answers whether the framing held to the end, so that an offset without a record is a gap.
    fn batches(&mut self, records: Bytes) -> bool {
        let mut iter = BatchIter::new(records);
        for batch in &mut iter {
            match batch {
                Ok(batch) => self.batch(&batch),
                Err(error) => {
                    let (first, last) = (self.out.ranges[0].first, self.out.ranges[self.out.ranges.len() - 1].last);
                    self.out.corrupt.push(CorruptBatch {
                        first_offset: first,
                        last_offset: last,
                        error: error.to_string(),
                    });
                    return false;
                }
            }
        }
        iter.truncated().is_none() && !self.disordered && !self.out.over_limit
    }

    fn batch(&mut self, batch: &RecordBatch) {
        let (first, last) = (batch.base_offset, batch.base_offset.saturating_add(i64::from(batch.last_offset_delta)));
        let from = self.out.ranges.partition_point(|r| r.last < first);
        // Batches ascend in a log. One that does not is passed over: to decode the same offsets again and again would cost
        // a hostile broker little and this client much.
        if self.out.ranges.get(from).is_none_or(|r| r.first > last) {
            return;
        }
        if first <= self.read_to {
            self.disordered = true;
            return;
        }
        self.read_to = last;
        let decoded = match batch.verify_crc().and_then(|()| self.expand(batch)) {
            Ok(Some(decoded)) => Ok(decoded),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let result =
            decoded.and_then(|decoded| if decoded.is_control() { Ok(()) } else { self.records(decoded, from) });
        if let Err(error) = result {
            self.reject(first, last, &error);
        }
    }

    /// Decompresses a batch; `None` where the answer has no room for it.
    fn expand(&mut self, batch: &RecordBatch) -> Result<Option<DecodedBatch>, RecordError> {
        let compressed = batch.compression().is_ok_and(|codec| codec != Compression::None);
        if !compressed {
            return batch.decode(self.room.batch).map(Some);
        }
        let limit = self.room.batch.min(self.room.bytes);
        let decoded = if self.room.full { None } else { Some(batch.decode(limit)) };
        match decoded {
            Some(Ok(decoded)) => {
                self.room.bytes -= decoded.payload().len().min(self.room.bytes);
                Ok(Some(decoded))
            }
            Some(Err(error)) if limit == self.room.batch || !is_too_large(&error) => Err(error),
            _ => {
                self.room.full = true;
                self.out.over_limit = true;
                Ok(None)
            }
        }
    }

    fn records(&mut self, decoded: DecodedBatch, mut range: usize) -> Result<(), RecordError> {
        let batch = self.out.batches.len() as u32;
        let before = self.out.entries.len();
        let mut result = Ok(());
        for record in decoded.iter() {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            while self.out.ranges.get(range).is_some_and(|r| r.last < record.offset) {
                range += 1;
            }
            let Some(r) = self.out.ranges.get(range) else { break };
            if record.offset < r.first {
                continue;
            }
            let index = r.start + (record.offset - r.first) as u32;
            if !std::mem::replace(&mut self.seen[index as usize], true) {
                let entry = Entry { batch, position: record.position, index, delivery_count: r.delivery_count };
                self.out.entries.push(entry);
            }
        }
        if self.out.entries.len() > before {
            self.out.batches.push(decoded);
        }
        result
    }

    /// Acquired offsets of `first..=last` that were not read belong to a corrupt batch.
    fn reject(&mut self, first: i64, last: i64, error: &RecordError) {
        let mut bounds: Option<(i64, i64)> = None;
        let from = self.out.ranges.partition_point(|r| r.last < first);
        for at in from..self.out.ranges.len() {
            let r = self.out.ranges[at];
            if r.first > last {
                break;
            }
            for offset in r.first.max(first)..=r.last.min(last) {
                let index = r.start + (offset - r.first) as u32;
                if !std::mem::replace(&mut self.seen[index as usize], true) {
                    self.out.rejected.push(index);
                    bounds = Some((bounds.map_or(offset, |b| b.0), offset));
                }
            }
        }
        if let Some((first_offset, last_offset)) = bounds {
            self.out.corrupt.push(CorruptBatch { first_offset, last_offset, error: error.to_string() });
        }
    }

    fn settle_rest(&mut self, complete: bool) {
        let unread = self.seen.iter().enumerate().filter(|(_, seen)| !**seen).map(|(i, _)| i as u32);
        if complete {
            self.out.gaps.extend(unread);
        } else {
            self.out.missing.extend(unread);
        }
        // Batches come in offset order from any honest broker; a stable sort costs nothing then.
        if !self.out.entries.is_sorted_by_key(|e| e.index) {
            self.out.entries.sort_by_key(|e| e.index);
        }
    }
}

fn is_too_large(error: &RecordError) -> bool {
    matches!(error, RecordError::Compression(CompressionError::TooLarge { .. }))
}

#[cfg(test)]
#[path = "share_fetch_tests.rs"]
mod tests;
