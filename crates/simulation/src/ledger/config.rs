//! What a run of the ledger's model varies: sizes, variants of the protocol, planted faults.

use super::state::{MEMBERS, Mode};
use crate::faults::{Fault, Kinds};

/// A rule of the ledger left out or broken, to show that the model would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Planted {
    /// EndTxn without reading the ledger.
    CheckSkipped,
    /// The check does not wait until the reader has come to the intent's own offset.
    CheckBehindOffset,
    /// A member takes all that lies before its intent as read once that is written, whoever wrote it.
    OwnReadBlind,
    /// The check reads with `read_committed`: it does not see open intents.
    ReadCommitted,
    /// The check passes over the member's own earlier intents.
    OwnIntentsIgnored,
    /// A tombstone frees its intent at once (no rule R1).
    ForgetAtTombstone,
    /// R1 counts a ShareFetch from its answer on: an answer in a socket does not count.
    AskCountedAtAnswer,
    /// R1 takes the ask number when the tombstone is read, not when it commits.
    AskCountedAtTombstone,
    /// A gap in the log is passed over (no rule R2).
    NoGapRule,
    /// After a gap the records are dropped, but the picture is kept.
    PictureKeptAtGap,
    /// Records are asked for while the ledger is read again from its start.
    AskedWhileReading,
    /// While reading from the start, a marker counts although the intent it seems to end is gone from the log.
    SuspectsTrusted,
    /// A live reader passes over a control batch that compaction has emptied.
    EmptyMarkerSkipped,
    /// The tombstone is written before the broker has confirmed the acknowledgements.
    TombstoneBeforeConfirmed,
    /// A tombstone counts although its transaction was aborted.
    AbortedTombstoneCounts,
    /// RELEASE is written as an intent.
    ReleaseIntent,
    /// Whoever has sent InitProducerId for an intent's owner takes the intent for aborted.
    VerdictFromFencing,
    /// Whoever has sent InitProducerId after an EndTxn of unknown outcome takes the transaction for aborted.
    VerdictFromInit,
    /// No InitProducerId after an abort with the intent still under way (transaction.version 1).
    NoInitAfterAbort,
    /// A reader does not begin again when the last stable offset tells that it has missed a marker.
    NoReread,
    /// A member whose producer was fenced does not ask for a new epoch.
    FencedForEver,
    /// A record that was delivered to a member twice goes into one transaction twice.
    TwiceInOneTransaction,
    /// A member that acknowledges natively alone works beside one that uses the ledger alone.
    NativeBesideLedger,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::CheckSkipped,
        Self::CheckBehindOffset,
        Self::OwnReadBlind,
        Self::ReadCommitted,
        Self::OwnIntentsIgnored,
        Self::ForgetAtTombstone,
        Self::AskCountedAtAnswer,
        Self::AskCountedAtTombstone,
        Self::NoGapRule,
        Self::PictureKeptAtGap,
        Self::AskedWhileReading,
        Self::SuspectsTrusted,
        Self::EmptyMarkerSkipped,
        Self::TombstoneBeforeConfirmed,
        Self::AbortedTombstoneCounts,
        Self::ReleaseIntent,
        Self::VerdictFromFencing,
        Self::VerdictFromInit,
        Self::NoInitAfterAbort,
        Self::NoReread,
        Self::FencedForEver,
        Self::TwiceInOneTransaction,
        Self::NativeBesideLedger,
    ];

    /// The smallest model in which it shows.
    pub fn config(self) -> Config {
        let base = Config { planted: Some(self), ..Config::default() };
        match self {
            Self::NoInitAfterAbort => Config { transaction_version: 1, ..base },
            Self::AbortedTombstoneCounts | Self::AskCountedAtTombstone => Config { early_tombstones: true, ..base },
            Self::OwnIntentsIgnored => Config { set_aside: false, ..base },
            Self::SuspectsTrusted => Config { members: 1, faults: 2, single_batches: SingleBatches::AtStart, ..base },
            Self::NoReread => {
                Config { held: 1, kinds: Kinds::of(&[Fault::Crash]), single_batches: SingleBatches::AtStart, ..base }
            }
            Self::FencedForEver => Config { members: 1, ..base },
            Self::AskedWhileReading => Config {
                single_batches: SingleBatches::AtStart,
                kinds: Kinds::of(&[Fault::Crash, Fault::Expire]),
                faults: 3,
                compactions: 1,
                ..base
            },
            Self::EmptyMarkerSkipped => Config { empty_markers: true, ..base },
            Self::NativeBesideLedger => Config { modes: [Mode::Ledger, Mode::Native, Mode::Ledger], ..base },
            _ => base,
        }
    }
}

impl Planted {
    /// Whether a few million states are enough to find it.
    #[must_use]
    pub fn is_quickly_found(self) -> bool {
        self != Self::AskedWhileReading
    }

    /// Whether it stops progress and harms nothing else: not a property breaks, but an end gets out of reach.
    pub fn stops_progress(self) -> bool {
        matches!(self, Self::NoReread | Self::FencedForEver)
    }
}

/// When a fetch of the ledger brings one batch only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SingleBatches {
    /// Each fetch brings all there is.
    Never,
    /// While reading from the start.
    AtStart,
    /// Always.
    Always,
}

/// One model of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Members, 1 to 3.
    pub members: u8,
    /// What they use.
    pub modes: [Mode; MEMBERS],
    /// Number of faults.
    pub faults: u8,
    /// Which kinds there are.
    pub kinds: Kinds,
    /// Times that compaction passes a reader that is behind. Where none is behind it is always done.
    pub compactions: u8,
    /// Records a member may hold at once, an answer in its socket counted; up to 3.
    pub held: u8,
    /// 1 or 2: whether each transaction has its own epoch.
    pub transaction_version: u8,
    /// Step 0: records with an open intent are set aside.
    pub set_aside: bool,
    /// When a fetch brings one batch only; otherwise it brings all there is.
    pub single_batches: SingleBatches,
    /// Compaction leaves emptied control batches.
    pub empty_markers: bool,
    /// Any member tombstones committed intents below the share-partition's start offset.
    pub foreign_tombstones: bool,
    /// Variant: a tombstone may be written before its acknowledgements are confirmed; the commit waits for them.
    pub early_tombstones: bool,
    /// A broken rule.
    pub planted: Option<Planted>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            members: 2,
            modes: [Mode::Ledger; MEMBERS],
            faults: 1,
            kinds: Kinds::ALL,
            compactions: 1,
            held: 2,
            transaction_version: 2,
            set_aside: true,
            single_batches: SingleBatches::Never,
            empty_markers: false,
            foreign_tombstones: false,
            early_tombstones: false,
            planted: None,
        }
    }
}

impl Config {
    /// Whether there may be a fault of this kind, with that many left.
    pub(super) fn may(&self, left: u8, kind: Fault) -> bool {
        left > 0 && self.kinds.has(kind)
    }

    /// Whether a fetch brings one batch.
    pub(super) fn one_batch(&self, reading_from_start: bool) -> bool {
        match self.single_batches {
            SingleBatches::Never => false,
            SingleBatches::AtStart => reading_from_start,
            SingleBatches::Always => true,
        }
    }

    pub(super) fn planted(&self, fault: Planted) -> bool {
        self.planted == Some(fault)
    }
}
