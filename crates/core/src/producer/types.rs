//! What goes into the producer machine and what comes out of it.

pub use super::draft::ProduceDraft;
use crate::Backoff;
use crate::metadata::{Leader, Node, TopicIdPartition};
use crate::transaction::TxnError;
use bytes::Bytes;
use kafka_share_messages::{AddPartitionsToTxnRequest, ErrorCode, InitProducerIdRequest};
use kafka_share_wire::Str;
use kafka_share_wire::compression::Compression;
use kafka_share_wire::records::{BatchOptions, Header};
use std::time::Duration;

/// Settings of the machine, under Kafka's property names.
#[derive(Debug, Clone)]
pub struct ProducerConfig {
    /// `batch.size`: bytes of a batch before compression.
    pub batch_size: usize,
    /// `linger.ms`: how long a batch waits for more records.
    pub linger: Duration,
    /// `buffer.memory`: bytes of records that wait or are in flight.
    pub buffer_memory: usize,
    /// `max.request.size`: bytes of a request, and of a record.
    pub max_request_size: usize,
    /// `compression.type`.
    pub compression: Compression,
    /// `compression.gzip.level` and the like; `None` for the codec's default.
    pub compression_level: Option<i32>,
    /// `delivery.timeout.ms`: time from a batch's start to its success or failure.
    pub delivery_timeout: Duration,
    /// Time that the broker has for replication, in milliseconds.
    pub request_timeout_ms: i32,
    /// `max.in.flight.requests.per.connection`, at most 5.
    pub max_in_flight: usize,
    /// Pause between retries.
    pub backoff: Backoff,
}

impl ProducerConfig {
    /// What a batch is like that has no sequence numbers yet.
    pub(super) fn batch_options(&self, transactional: bool) -> BatchOptions {
        BatchOptions {
            compression: self.compression,
            compression_level: self.compression_level,
            transactional,
            ..BatchOptions::default()
        }
    }
}

/// A record's parts.
#[derive(Debug, Clone, Copy)]
pub struct RecordParts<'a, 'h> {
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// Key.
    pub key: Option<&'a [u8]>,
    /// Value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Headers.
    pub headers: &'a [Header<'h>],
}

/// Names a batch until its `Output::Done`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId(pub u64);

/// Where an appended record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its batch.
    pub batch: BatchId,
    /// Its place in the batch.
    pub index: u32,
    /// Whether the sender has something to do now: a batch was begun or is full.
    pub wake: bool,
}

/// Why a record was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The buffer is full; wait for batches to be done.
    #[error("the producer's buffer is full")]
    Full,
    /// The topic's partitions are not known: give its metadata first.
    #[error("the topic is not known")]
    UnknownTopic,
    /// The topic has no such partition.
    #[error("partition {0} is out of range: the topic has {1}")]
    NoSuchPartition(i32, usize),
    /// The record is larger than a setting allows.
    #[error("a record of {size} bytes is over {setting} of {limit} bytes")]
    TooLarge {
        /// Of the record.
        size: usize,
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        limit: usize,
    },
    /// The record cannot be encoded.
    #[error("{0}")]
    Invalid(String),
    /// The producer has been closed.
    #[error("the producer is closed")]
    Closed,
    /// The transaction does not take records now.
    #[error(transparent)]
    Transaction(#[from] TxnError),
}

/// Where a batch was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Offset of its first record; -1 where the broker no longer knows it.
    pub base_offset: i64,
    /// Time of the broker, for topics with log-append time; -1 otherwise.
    pub log_append_time: i64,
}

/// Why a batch was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct BatchError {
    /// The broker's code, where it sent one.
    pub code: Option<ErrorCode>,
    /// What kind of failure.
    pub kind: BatchErrorKind,
    /// What happened.
    pub text: String,
    /// Whether it may have been written all the same.
    pub maybe_written: bool,
}

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchErrorKind {
    /// The broker refused it.
    Refused,
    /// `delivery.timeout.ms` passed.
    TimedOut,
    /// The transaction was aborted, or failed before.
    Aborted,
    /// The producer was closed.
    Closed,
    /// Another producer took over.
    Fenced,
}

/// A produce request without an answer.
#[derive(Debug, Clone)]
pub struct ProduceFailure {
    /// Whether the broker may have acted on it.
    pub maybe_done: bool,
    /// Whether no retry can heal it.
    pub fatal: bool,
    /// What happened.
    pub text: String,
}

/// Numbers of a produce request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentBatches {
    /// Batches.
    pub batches: usize,
    /// Bytes of all batches.
    pub bytes: usize,
    /// Bytes of the largest.
    pub largest: usize,
    /// Records of batches that are sent for the first time.
    pub records: usize,
    /// Records of batches that are sent again.
    pub retried: usize,
    /// Longest time that a batch waited for its first request.
    pub queued: Duration,
}

/// The bytes of a batch.
#[derive(Debug)]
pub struct Encoded {
    pub(super) at: usize,
    pub(super) id: BatchId,
    pub(super) bytes: Bytes,
}

/// What the shell must do.
#[derive(Debug)]
pub enum Output {
    /// Encode, hand the batches to `handle_encoded`, and send to a broker, in this order; answer with `handle_produced`.
    Produce {
        /// Broker.
        node: i32,
        /// Names the request.
        request: u64,
        /// The request, yet to be encoded.
        draft: ProduceDraft,
    },
    /// Send to any broker; answer with `handle_identity` or `handle_identity_failure`.
    NewIdentity(InitProducerIdRequest),
    /// Send to the transaction coordinator; answer with `handle_added` or `handle_add_failure`.
    AddPartitions(AddPartitionsToTxnRequest),
    /// Ask for the metadata of these topics; answer with `handle_topic` for each.
    RefreshMetadata(Vec<Str>),
    /// A leader and addresses that an error answer named.
    LeaderHint(TopicIdPartition, Leader, Vec<Node>),
    /// A batch was too large for the broker: these take its place, each with the place that its first record had in the
    /// old one. Each is done for itself; the old one has no `Done`.
    Split(BatchId, Vec<(BatchId, u32)>),
    /// A batch is done.
    Done(BatchId, Result<Written, BatchError>),
}
