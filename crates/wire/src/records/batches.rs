//! Cutting a buffer of record batches, whose tail a broker may have cut off.

use std::iter::FusedIterator;

use bytes::{Buf, Bytes};

use super::batch::framed_size;
use super::{BATCH_HEADER_LEN, RecordBatch, RecordError};

/// What is left of an incomplete last batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedTail {
    /// Where in the buffer the incomplete batch starts.
    pub position: usize,
    /// Bytes there.
    pub have: usize,
    /// Bytes needed: the batch, or its header where the header is cut.
    pub need: usize,
}

/// Iterator over the batches of a fetched buffer.
///
/// A broker may cut the last batch at its size limit. After at least one whole batch such a tail
/// ends the iteration quietly and [`BatchIter::truncated`] tells of it; if the very first batch is
/// incomplete, that is an error, as nothing could ever be read. After any error the iteration ends:
/// where the framing is broken, the next batch cannot be found. A batch with broken content is not
/// an error here but when it is verified and decoded, so that it can be skipped.
#[derive(Debug, Clone)]
pub struct BatchIter {
    rest: Bytes,
    position: usize,
    yielded: bool,
    done: bool,
    truncated: Option<TruncatedTail>,
}

impl BatchIter {
    /// Iterates over `records`; an empty buffer has no batches.
    pub fn new(records: Bytes) -> Self {
        Self { rest: records, position: 0, yielded: false, done: false, truncated: None }
    }

    /// The incomplete last batch, once the iteration came to it.
    pub fn truncated(&self) -> Option<TruncatedTail> {
        self.truncated
    }

    /// Where in the buffer the next batch starts; behind an error it does not move.
    pub fn position(&self) -> usize {
        self.position
    }

    fn cut(&mut self) -> Result<Option<RecordBatch>, RecordError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let need = framed_size(&self.rest)?.unwrap_or(BATCH_HEADER_LEN);
        let have = self.rest.len();
        if have < need {
            if !self.yielded {
                return Err(RecordError::BatchIncomplete { have, need });
            }
            self.truncated = Some(TruncatedTail { position: self.position, have, need });
            return Ok(None);
        }
        let batch = RecordBatch::parse(&self.rest)?;
        self.rest.advance(need);
        self.position += need;
        self.yielded = true;
        Ok(Some(batch))
    }
}

impl Iterator for BatchIter {
    type Item = Result<RecordBatch, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.cut().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

impl FusedIterator for BatchIter {}
