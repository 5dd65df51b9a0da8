//! What the model of the ledger keeps: one input share-partition, one ledger partition, the members and their producers.
//!
//! Only what can make a difference is kept. Offsets, keys, epochs and ask numbers are unbounded in Kafka; here they are
//! renumbered after every step (`normal.rs`), so that states which differ by names alone are one.

use crate::list::List;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Most members a model can have.
pub(super) const MEMBERS: usize = 3;
/// Records of the input partition.
pub(super) const RECORDS: usize = 2;

/// A set of records, one bit each.
pub(super) type Records = u8;
/// A set of intent keys, one bit each.
pub(super) type Keys = u16;

/// A state of a record at the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Record {
    /// Free to be acquired.
    #[default]
    Available,
    /// Acquired by a member.
    Acquired(u8),
    /// Acknowledged in the open transaction of a member's producer (KIP-1289).
    Staged(u8),
    /// Acquired by a member that is gone or has closed its session: the lock will expire.
    Orphaned,
    /// Finished.
    Acknowledged,
}

/// The transaction coordinator's state for one transactional id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Coordinator {
    /// No transaction, or all markers of the last one are written.
    #[default]
    Empty,
    /// A transaction is open.
    Ongoing,
    /// Committed; the ledger's marker is not written yet.
    PrepareCommit,
    /// Aborted; the ledger's marker is not written yet.
    PrepareAbort,
}

/// A batch of the ledger partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Entry {
    /// Removed by compaction: the next batch does not begin where a reader expects it.
    #[default]
    Hole,
    /// A transaction's tombstones and its intent.
    Data(Batch),
    /// A transaction's end.
    Marker {
        /// The member whose producer it is.
        owner: u8,
        /// Commit, or abort.
        commit: bool,
    },
    /// A marker's control batch that compaction has emptied and kept for its producer's sake.
    EmptyMarker,
}

/// Tombstones and intent of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Batch {
    /// The member whose producer wrote it.
    pub owner: u8,
    /// Whether its epoch is still the producer's (what fencing with it needs).
    pub current: bool,
    /// The intent's key, if compaction has left it.
    pub key: Option<u8>,
    /// The records that the intent claims.
    pub claims: Records,
    /// The keys whose tombstones it holds.
    pub tombstones: Keys,
    /// Whether compaction took a part: fewer records than the offset span.
    pub partial: bool,
}

/// A delivered record in a member's hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Chunk {
    /// Which record.
    pub record: u8,
    /// How far it has come.
    pub stage: Stage,
    /// The number of the ShareFetch that brought it.
    pub ask: u8,
}

/// How far a delivered record has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Stage {
    /// Not in a transaction.
    #[default]
    Held,
    /// In the open transaction.
    Staged,
    /// Its transaction has committed, its acknowledgement is not answered.
    Acking,
}

/// An intent in a member's picture, in log order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Known {
    /// Its key.
    pub key: u8,
    /// The member whose producer wrote it.
    pub owner: u8,
    /// Whether the epoch of its batch is still the producer's.
    pub current: bool,
    /// Committed, or open.
    pub committed: bool,
    /// The records that it claims.
    pub claims: Records,
    /// Whether its marker may have been missed: it was open at the end of a fetch, and then something was gone.
    pub suspect: bool,
    /// Members whose open transactions hold a tombstone for it.
    pub tombstoning: u8,
    /// The ask number at which a committed tombstone for it was read; 0 if none was.
    pub tombstoned: u8,
}

/// An intent of this member that committed and has no committed tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Mine {
    /// Its key.
    pub key: u8,
    /// The records it claimed.
    pub claims: Records,
    /// Those of them whose output was written.
    pub outputs: Records,
    /// Whether its acknowledgements have been answered.
    pub acknowledged: bool,
    /// Whether the broker has confirmed all acknowledgements.
    pub confirmed: bool,
    /// Whether the open transaction holds its tombstone.
    pub tombstoning: bool,
}

/// Where a member's transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Phase {
    /// None is open.
    #[default]
    Idle,
    /// Outputs are written; the intent is on its way.
    Writing,
    /// The intent's offset is known; the ledger is read up to it.
    Checking,
    /// The check has passed; EndTxn(commit) is on its way.
    Committing,
    /// It must abort.
    Doomed,
    /// EndTxn had no clear answer.
    Unknown,
}

/// A member's open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Txn {
    /// Where it stands.
    pub phase: Phase,
    /// Its intent's key.
    pub key: u8,
    /// How far the ledger must be read: behind its intent's offset.
    pub reach: u8,
    /// The records of its intent.
    pub claims: Records,
    /// The records whose output it holds.
    pub outputs: Records,
    /// Records whose output it holds twice.
    pub twice: Records,
    /// Whether the coordinator has committed it, though its member may not know.
    pub committed: bool,
}

/// A produce request with tombstones and intent that has not reached the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Wire {
    /// Whether its epoch is still the producer's.
    pub current: bool,
    /// The intent's key.
    pub key: u8,
    /// The records that the intent claims.
    pub claims: Records,
    /// The keys whose tombstones it holds.
    pub tombstones: Keys,
}

/// How a member acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Mode {
    /// By the ledger; the broker is told after the commit.
    #[default]
    Ledger,
    /// In the transaction at the broker, with an intent in the ledger.
    Both,
    /// In the transaction at the broker; it reads no ledger.
    Native,
}

/// A process: share consumer, reader of the ledger, producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Member {
    /// How it acknowledges.
    pub mode: Mode,
    /// Whether it runs.
    pub up: bool,
    /// Whether its producer's epoch is the coordinator's; if not it needs InitProducerId.
    pub epoch_ok: bool,
    /// Whether its reader reads from the log's start and has not come to the end that the log had then.
    pub reading: bool,
    /// That end.
    pub target: u8,
    /// The transaction.
    pub txn: Txn,
    /// A ShareFetch answer that waits in the socket: its record, its ask number.
    pub socket: Option<(u8, u8)>,
    /// Delivered records.
    pub chunks: List<Chunk, 3>,
    /// The number of the next ShareFetch.
    pub next_ask: u8,
    /// Where its reader stands in the ledger.
    pub position: u8,
    /// What its reader knows.
    pub picture: List<Known, 8>,
    /// Its committed intents without a committed tombstone.
    pub mine: List<Mine, 4>,
}

/// Everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct State {
    /// Faults that may still happen.
    pub faults: u8,
    /// Times that compaction may still pass a reader that is behind.
    pub compactions: u8,
    /// The records at the broker.
    pub records: [Record; RECORDS],
    /// Committed outputs of each record; 2 means two or more.
    pub outputs: [u8; RECORDS],
    /// A committed transaction was reported as aborted.
    pub misreported: bool,
    /// The members.
    pub members: List<Member, MEMBERS>,
    /// Their transactions at the coordinator.
    pub coordinators: [Coordinator; MEMBERS],
    /// Produce requests under way, by member.
    pub wires: [List<Wire, 2>; MEMBERS],
    /// The ledger partition.
    pub log: List<Entry, 16>,
    /// The names of the members, which do not make states different.
    pub names: Names,
}

/// Names of members and intents in traces: they go with what they name where states are made one by renumbering.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names {
    /// By member.
    pub members: [u8; MEMBERS],
    /// By key.
    pub intents: [u8; 16],
    /// The next intent's.
    pub next: u8,
}

impl PartialEq for Names {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Names {}

impl PartialOrd for Names {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Names {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Hash for Names {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The bit of a record or member.
pub(super) fn bit(at: u8) -> u8 {
    1 << at
}

/// The records of a set, ascending.
pub(super) fn each(records: Records) -> impl Iterator<Item = u8> {
    (0..RECORDS as u8).filter(move |record| records & bit(*record) != 0)
}

impl Member {
    /// The records in its hands or in its socket.
    pub fn holds(&self) -> Records {
        let held = self.chunks.iter().fold(0, |all, chunk| all | bit(chunk.record));
        held | self.socket.map_or(0, |(record, _)| bit(record))
    }

    /// The smallest number of a ShareFetch that is unanswered or whose records are not settled; the next number if
    /// there is none (rule R1).
    pub fn lowest_ask(&self) -> u8 {
        let asks = self.chunks.iter().map(|chunk| chunk.ask).chain(self.socket.map(|(_, ask)| ask));
        asks.min().unwrap_or(self.next_ask)
    }
}

impl State {
    /// Records acknowledged at the broker.
    pub(super) fn acknowledged(&self) -> Records {
        let done = |record: &u8| self.records[usize::from(*record)] == Record::Acknowledged;
        (0..RECORDS as u8).filter(done).fold(0, |all, record| all | bit(record))
    }

    /// Every record is acknowledged and nobody has anything left to do.
    pub(super) fn ended(&self) -> bool {
        let quiet = |member: &Member| member.holds() == 0 && member.txn.phase == Phase::Idle;
        self.acknowledged().count_ones() as usize == RECORDS && self.members.iter().all(quiet)
    }
}
