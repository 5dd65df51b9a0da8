//! A transactional id: identity, status, members.

use crate::Now;
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeSet;
use std::time::Duration;

/// Epochs from here on are exhausted: the next bump takes a new producer id.
pub(super) const LAST_EPOCH: i16 = i16::MAX - 1;

/// What a transaction can hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Participant {
    /// Records in a partition.
    Partition(Uuid, i32),
    /// Staged acknowledgements, stored in this partition of `__share_group_state`.
    ShareState(i32),
}

/// Where a transactional id stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    Empty,
    Ongoing,
    PrepareCommit,
    PrepareAbort,
    CompleteCommit,
    CompleteAbort,
}

impl Status {
    /// Kafka's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::Empty => "Empty",
            Status::Ongoing => "Ongoing",
            Status::PrepareCommit => "PrepareCommit",
            Status::PrepareAbort => "PrepareAbort",
            Status::CompleteCommit => "CompleteCommit",
            Status::CompleteAbort => "CompleteAbort",
        }
    }

    pub(crate) const ALL: [Status; 6] = [
        Status::Empty,
        Status::Ongoing,
        Status::PrepareCommit,
        Status::PrepareAbort,
        Status::CompleteCommit,
        Status::CompleteAbort,
    ];

    pub(super) fn may_become(self, next: Status) -> bool {
        use Status::{CompleteAbort, CompleteCommit, Empty, Ongoing, PrepareAbort, PrepareCommit};
        match next {
            Ongoing => matches!(self, Empty | Ongoing | CompleteCommit | CompleteAbort),
            PrepareCommit => self == Ongoing,
            // TV2 aborts also what was never begun.
            PrepareAbort => matches!(self, Ongoing | Empty | CompleteCommit | CompleteAbort),
            CompleteCommit => self == PrepareCommit,
            CompleteAbort => self == PrepareAbort,
            Empty => matches!(self, Empty | CompleteCommit | CompleteAbort),
        }
    }
}

/// A transactional id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Txn {
    pub(crate) id: Str,
    pub(crate) producer_id: i64,
    /// The id before the present one, -1 for none: requests that repeat the hand-over still name it.
    pub(crate) previous_producer_id: i64,
    /// The identity to take once the markers are written, where it is not the one that they carry.
    pub(super) next_identity: Option<(i64, i16)>,
    /// The identity that may end this prepared transaction (KIP-939), whose records and markers keep their own.
    pub(crate) kept_by: Option<(i64, i16)>,
    /// -1 before the first InitProducerId is done.
    pub(crate) epoch: i16,
    pub(super) last_epoch: i16,
    pub(crate) timeout_ms: i32,
    pub(crate) status: Status,
    pub(crate) participants: BTreeSet<Participant>,
    /// Wall clock, -1 while none is open.
    pub(crate) start_ms: i64,
    pub(crate) last_update_ms: i64,
    pub(super) deadline: Option<Duration>,
    /// The last EndTxn came in a version of TV2.
    pub(super) epoch_per_transaction: bool,
}

impl Txn {
    pub(super) fn new(id: Str, producer_id: i64, timeout_ms: i32, now: Now) -> Self {
        Txn {
            id,
            producer_id,
            previous_producer_id: -1,
            next_identity: None,
            kept_by: None,
            epoch: -1,
            last_epoch: -1,
            timeout_ms,
            status: Status::Empty,
            participants: BTreeSet::new(),
            start_ms: -1,
            last_update_ms: now.wall_ms,
            deadline: None,
            epoch_per_transaction: false,
        }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.epoch >= LAST_EPOCH
    }

    /// The identity that requests must come with.
    pub(super) fn client(&self) -> (i64, i16) {
        self.kept_by.unwrap_or((self.producer_id, self.epoch))
    }

    pub(super) fn begin(&mut self, now: Now) {
        self.status = Status::Ongoing;
        self.start_ms = now.wall_ms;
        // The longest timeout stands for none (KIP-939).
        self.deadline = (self.timeout_ms != i32::MAX).then(|| now.after_ms(i64::from(self.timeout_ms)));
    }
}
