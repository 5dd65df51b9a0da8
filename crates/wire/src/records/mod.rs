//! Record batches of message format v2 (KIP-98): read in place, written in place.
//!
//! Reading goes in three steps, each as lazy as it can be:
//! 1. [`BatchIter`] cuts a fetched byte buffer into [`RecordBatch`]es and looks at framing only;
//! 2. [`RecordBatch::verify_crc`] and [`RecordBatch::decode`] check and, where needed, decompress one
//!    batch into a [`DecodedBatch`], which is cheap to clone and keeps the bytes alive;
//! 3. [`DecodedBatch::iter`] yields [`Record`]s that borrow those bytes: no allocation and no
//!    reference count per record.
//!
//! Writing: [`BatchBuilder`] appends a batch to a `BytesMut`, for instance a produce request's frame.
//! [`patch`] changes what a broker or a retrying producer changes in a finished batch.
//!
//! Message formats v0 and v1 are refused by name: Kafka 4 dropped them.

mod batch;
mod batches;
mod builder;
mod control;
mod error;
mod header;
pub mod patch;
mod record;

#[cfg(test)]
mod tests;

pub use batch::{DecodedBatch, RecordBatch, RecordBatchView};
pub use batches::{BatchIter, TruncatedTail};
pub use builder::{BatchBuilder, BatchOptions, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE};
pub use control::{ControlRecord, ControlRecordType, EndTxnMarker};
pub use error::RecordError;
pub use header::{BATCH_HEADER_LEN, BatchHeader, LOG_OVERHEAD, MAGIC_V2, TimestampType};
pub use record::{Header, Headers, Record, RecordIter};
