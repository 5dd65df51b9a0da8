//! Batches as bytes in chunks, and an index of them.
//!
//! Appends copy into a growing buffer. The first read of its tail freezes what is there into a chunk that is shared with
//! readers from then on, so readers that keep up get each chunk as it is. A read across chunks copies once and
//! leaves the merged chunk behind for the next reader.

use super::Read;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Chunks are merged up to this size.
const MERGE_LIMIT: u64 = 4 << 20;
/// Size of new buffers: this at first, doubled up to the second figure.
const BUFFER: (usize, usize) = (16 << 10, 1 << 20);

/// A stored batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchEntry {
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
    /// Bytes.
    pub(crate) len: u32,
    pub(crate) record_count: i32,
    /// Holds a transaction marker, which is not given to applications.
    pub(crate) control: bool,
    pub(crate) transactional: bool,
    pub(crate) producer_id: i64,
    /// Where it starts, counted in bytes since the log began.
    pub(super) position: u64,
}

#[derive(Debug)]
struct Chunk {
    position: u64,
    bytes: Bytes,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.position + self.bytes.len() as u64
    }
}

#[derive(Debug, Default)]
pub(super) struct Storage {
    entries: VecDeque<BatchEntry>,
    chunks: VecDeque<Chunk>,
    /// Not shared yet; starts at `tail_position`.
    tail: BytesMut,
    tail_position: u64,
    /// Where the first entry starts.
    start: u64,
    buffer: usize,
}

impl Storage {
    pub(super) fn bytes(&self) -> usize {
        (self.end() - self.start) as usize
    }

    /// Position of the first batch.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    pub(super) fn end(&self) -> u64 {
        self.tail_position + self.tail.len() as u64
    }

    /// Room for a batch of `len` bytes at the tail; the caller appends exactly that much.
    pub(super) fn tail_for(&mut self, len: usize) -> &mut BytesMut {
        if self.tail.capacity() - self.tail.len() < len {
            self.freeze();
            self.buffer = (self.buffer * 2).clamp(BUFFER.0, BUFFER.1);
            self.tail = BytesMut::with_capacity(self.buffer.max(len));
        }
        &mut self.tail
    }

    /// Notes the batch that was just appended to the tail.
    pub(super) fn push(&mut self, mut entry: BatchEntry) {
        entry.position = self.end() - u64::from(entry.len);
        self.entries.push_back(entry);
    }

    /// Notes a batch of the bytes that [`Storage::adopt`] is about to take.
    pub(super) fn push_restored(&mut self, mut entry: BatchEntry) {
        entry.position = self.entries.back().map_or(0, |last| last.position + u64::from(last.len));
        self.entries.push_back(entry);
    }

    /// Takes the bytes of all batches that were noted, in a storage that had none.
    pub(super) fn adopt(&mut self, bytes: Bytes) {
        self.tail_position = bytes.len() as u64;
        if !bytes.is_empty() {
            self.chunks.push_back(Chunk { position: 0, bytes });
        }
    }

    /// A copy of everything from `position` on; leaves the tail as it is.
    pub(super) fn copy_from(&self, position: u64) -> Bytes {
        let mut all = BytesMut::with_capacity(self.end().saturating_sub(position) as usize);
        let first = self.chunks.partition_point(|chunk| chunk.end() <= position);
        for chunk in self.chunks.range(first..) {
            all.extend_from_slice(&chunk.bytes[position.saturating_sub(chunk.position) as usize..]);
        }
        all.extend_from_slice(&self.tail[position.saturating_sub(self.tail_position) as usize..]);
        all.freeze()
    }

    /// Appends a batch and notes it.
    pub(super) fn append(&mut self, bytes: &[u8], entry: BatchEntry) {
        self.tail_for(bytes.len()).extend_from_slice(bytes);
        self.push(entry);
    }

    fn freeze(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let bytes = self.tail.split().freeze();
        let position = self.tail_position;
        self.tail_position += bytes.len() as u64;
        self.chunks.push_back(Chunk { position, bytes });
    }

    fn index_of(&self, offset: i64) -> usize {
        self.entries.partition_point(|entry| entry.last_offset < offset)
    }

    /// Entries from the one that holds `offset`, or the next one, on.
    pub(super) fn entries_from(&self, offset: i64) -> impl Iterator<Item = &BatchEntry> {
        self.entries.range(self.index_of(offset)..)
    }

    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = &BatchEntry> {
        self.entries.iter()
    }

    /// The bytes of one batch.
    pub(super) fn bytes_of(&mut self, entry: &BatchEntry) -> Bytes {
        self.slice(entry.position, entry.position + u64::from(entry.len))
    }

    pub(super) fn read(&mut self, from: i64, upper: i64, max_bytes: usize, at_least_one: bool) -> Read {
        let first = self.index_of(from);
        let mut next_offset = from;
        let mut range: Option<(u64, u64)> = None;
        for entry in self.entries.range(first..) {
            let (start, _) = *range.get_or_insert((entry.position, entry.position));
            let end = entry.position + u64::from(entry.len);
            let fits = (end - start) as usize <= max_bytes || (at_least_one && start == entry.position);
            if entry.base_offset >= upper || !fits {
                break;
            }
            range = Some((start, end));
            next_offset = entry.last_offset + 1;
        }
        let records = range.map_or_else(Bytes::new, |(start, end)| self.slice(start, end));
        Read { records, next_offset }
    }

    fn slice(&mut self, start: u64, end: u64) -> Bytes {
        if start == end {
            return Bytes::new();
        }
        if end > self.tail_position {
            self.freeze();
        }
        let first = self.chunks.partition_point(|chunk| chunk.end() <= start);
        let last = self.chunks.partition_point(|chunk| chunk.position < end).saturating_sub(1);
        let Some(chunk) = self.chunks.get(first) else { return Bytes::new() };
        let base = chunk.position;
        if first == last {
            return chunk.bytes.slice((start - base) as usize..(end - base) as usize);
        }
        let whole = self.chunks.get(last).map_or(base, Chunk::end) - base;
        if whole > MERGE_LIMIT {
            return self.copy(first, last, start, end);
        }
        let merged = self.copy(first, last, base, base + whole);
        self.chunks.drain(first + 1..=last);
        self.chunks[first].bytes = merged.clone();
        merged.slice((start - base) as usize..(end - base) as usize)
    }

    fn copy(&self, first: usize, last: usize, start: u64, end: u64) -> Bytes {
        let mut all = BytesMut::with_capacity((end - start) as usize);
        for chunk in self.chunks.range(first..=last) {
            let from = start.max(chunk.position) - chunk.position;
            let to = end.min(chunk.end()) - chunk.position;
            all.extend_from_slice(&chunk.bytes[from as usize..to as usize]);
        }
        all.freeze()
    }

    /// Drops batches that end below `offset`, and the chunks that none of the rest lie in.
    pub(super) fn drop_below(&mut self, offset: i64) {
        self.entries.drain(..self.index_of(offset));
        self.start = self.entries.front().map_or(self.end(), |entry| entry.position);
        if self.start > self.tail_position {
            self.freeze();
        }
        while self.chunks.front().is_some_and(|chunk| chunk.end() <= self.start) {
            self.chunks.pop_front();
        }
    }
}
