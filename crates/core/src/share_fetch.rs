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
    /// What is left compressed for now, because the answer as a whole would expand to too much. Its offsets are not among
    /// the ranges.
    pub rest: Option<Deferred>,
}

/// The later part of an answer's partition, to be decoded when what came before is out of the way.
#[derive(Debug)]
pub struct Deferred {
    /// The share-partition.
    pub tp: TopicIdPartition,
    records: Bytes,
    ranges: Vec<AcquiredRange>,
}

impl Deferred {
    /// Acquired offsets.
    #[must_use]
    pub fn count(&self) -> usize {
        count(&self.ranges)
    }

    /// Decodes what there is room for: one batch at the least.
    #[must_use]
    pub fn decode(self, limits: DecodeLimits) -> Delivery {
        decode_ranges(self.tp, self.records, self.ranges, &mut Room::new(limits))
    }

    /// All of it undecoded, to be released.
    #[must_use]
    pub fn undecoded(self) -> Delivery {
        let missing = (0..self.count() as u32).collect();
        Delivery { missing, ..Delivery::new(self.tp, self.ranges) }
    }
}

impl Delivery {
    fn new(tp: TopicIdPartition, ranges: Vec<AcquiredRange>) -> Self {
        Delivery {
            tp,
            entries: Vec::with_capacity(count(&ranges)),
            ranges,
            batches: Vec::new(),
            gaps: Vec::new(),
            rejected: Vec::new(),
            missing: Vec::new(),
            corrupt: Vec::new(),
            repeated: 0,
            rest: None,
        }
    }
}

fn count(ranges: &[AcquiredRange]) -> usize {
    ranges.last().map_or(0, |r| r.start as usize + (r.last - r.first) as usize + 1)
}

/// What compressed batches may expand to, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// One batch. One that expands to more is rejected as corrupt.
    pub batch: usize,
    /// All batches of one answer together; those beyond it stay compressed until these have been handed out. Never less
    /// than for one batch, so that there is always a next one.
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
    room.offsets -= count(&ranges) as i64;
    Delivery { repeated, ..decode_ranges(tp, records.unwrap_or_default(), ranges, room) }
}

fn decode_ranges(tp: TopicIdPartition, records: Bytes, ranges: Vec<AcquiredRange>, room: &mut Room) -> Delivery {
    let count = count(&ranges);
    let out = Delivery::new(tp, ranges);
    let mut decoder = Decoder { out, seen: vec![false; count], read_to: -1, disordered: false, room };
    let complete = count == 0 || decoder.batches(records);
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
        let mut iter = BatchIter::new(records.clone());
        for batch in &mut iter {
            match batch {
                Ok(batch) => {
                    if !self.batch(&batch) {
                        self.defer(&records, &batch);
                        return !self.disordered;
                    }
                }
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
        iter.truncated().is_none() && !self.disordered
    }

    /// Leaves a batch, and all behind it, for later.
    fn defer(&mut self, records: &Bytes, batch: &RecordBatch) {
        let at = batch.as_bytes().as_ptr() as usize - records.as_ptr() as usize;
        let from = batch.base_offset;
        let cut = self.out.ranges.partition_point(|r| r.last < from);
        let mut later = self.out.ranges.split_off(cut);
        if let Some(first) = later.first_mut().filter(|r| r.first < from) {
            self.out.ranges.push(AcquiredRange { last: from - 1, ..*first });
            first.first = from;
        }
        let mut start = 0;
        for range in &mut later {
            range.start = start;
            start += (range.last - range.first) as u32 + 1;
        }
        self.seen.truncate(count(&self.out.ranges));
        self.out.rest = Some(Deferred { tp: self.out.tp, records: records.slice(at..), ranges: later });
    }

    /// Answers whether there was room for the batch.
    fn batch(&mut self, batch: &RecordBatch) -> bool {
        let (first, last) = (batch.base_offset, batch.base_offset.saturating_add(i64::from(batch.last_offset_delta)));
        let from = self.out.ranges.partition_point(|r| r.last < first);
        // Batches ascend in a log. One that does not is passed over: to decode the same offsets again and again would cost
        // a hostile broker little and this client much.
        if self.out.ranges.get(from).is_none_or(|r| r.first > last) {
            return true;
        }
        if first <= self.read_to {
            self.disordered = true;
            return true;
        }
        let decoded = match batch.verify_crc().and_then(|()| self.expand(batch)) {
            Ok(Some(decoded)) => Ok(decoded),
            Ok(None) => return false,
            Err(error) => Err(error),
        };
        self.read_to = last;
        let result =
            decoded.and_then(|decoded| if decoded.is_control() { Ok(()) } else { self.records(decoded, from) });
        if let Err(error) = result {
            self.reject(first, last, &error);
        }
        true
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
