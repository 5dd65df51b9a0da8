//! Acknowledgements of delivered records: one small state per acquired offset, written in O(1), formed into ranges when
//! a request is built. Every acknowledgement ends in exactly one [`Outcome`].

mod ledger;
mod renewals;
mod slot;
mod table;

pub use ledger::Aborted;
pub use slot::{AckBatch, AcquiredRange};
pub use table::{AckError, AckTable, SlotRef, Taken};

use crate::metadata::TopicIdPartition;
use kafka_share_messages::ErrorCode;

/// What an application says about a record (KIP-932, KIP-1222).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AckType {
    /// Processed; it is not delivered again.
    Accept = 1,
    /// Not processed; it is delivered again, to any member.
    Release = 2,
    /// Cannot be processed; it is archived, and goes to the dead-letter queue where the group has one.
    Reject = 3,
    /// Still being processed; the acquisition lock starts anew (share version 2 RPCs only).
    Renew = 4,
}

impl AckType {
    /// Its byte on the wire.
    #[must_use]
    pub fn code(self) -> i8 {
        self as i8
    }
}

/// Wire type of an acquired offset that holds no record for the application.
pub const GAP: i8 = 0;

/// A delivered record: where its state is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordHandle {
    pub(crate) slot: SlotRef,
    pub(crate) index: u32,
}

/// How an acknowledgement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The broker took it.
    Acknowledged,
    /// The broker refused it, with this code.
    Refused(ErrorCode),
    /// The acquisition lock, the session or the leader was lost before it could be sent; the record comes again.
    LockLost,
    /// It was sent, and the answer was lost: it may or may not have been taken.
    Unknown,
}

/// Outcome of acknowledgements that the application is not told of: their effect was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietOutcome {
    /// The share-partition.
    pub tp: TopicIdPartition,
    /// Number of the ShareFetch that acquired the records.
    pub ask: u64,
    /// First offset.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// What was said.
    pub ack_type: Option<AckType>,
    /// How it ended.
    pub outcome: Outcome,
}

/// Outcome of the acknowledgements of a range of offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckOutcome {
    /// The share-partition.
    pub tp: TopicIdPartition,
    /// First offset.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// What was said; `None` for gaps.
    pub ack_type: Option<AckType>,
    /// How it ended.
    pub outcome: Outcome,
}
