//! What the model of the native RPC keeps: the source share-partition with its pending records, members, coordinator.

use super::NativePlanted;
use crate::ledger::Coordinator;
use crate::list::List;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

pub(super) const MEMBERS: usize = 3;
pub(super) const RECORDS: usize = 2;

/// A set of records, one bit each.
pub(super) type Records = u8;

/// A state of a record at the share-partition's leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Record {
    /// Free to be acquired.
    #[default]
    Available,
    /// Acquired by a member.
    Acquired(u8),
    /// Acquired by a member that is gone: the lock will expire.
    Orphaned,
    /// Staged (TX_PENDING) by a producer at an epoch.
    Pending {
        /// The member whose producer it is.
        owner: u8,
        /// Its epoch when it staged.
        epoch: u8,
    },
    /// Finished.
    Acknowledged,
}

/// A transaction's request to stage acknowledgements, on its way to the share-partition's leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Stage {
    /// The producer's epoch.
    pub epoch: u8,
    /// What is acknowledged.
    pub records: Records,
    /// Whether its sender still waits for the answer.
    pub awaited: bool,
}

/// A transaction's end on its way to the share-partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Marker {
    /// The member whose producer it is.
    pub owner: u8,
    /// The epoch in the marker.
    pub epoch: u8,
    /// Commit, or abort.
    pub commit: bool,
}

/// Where a member's transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Phase {
    /// None is open.
    #[default]
    Idle,
    /// Outputs are written; the acknowledgements are being staged.
    Staging,
    /// Everything is staged; EndTxn(commit) is on its way.
    Committing,
    /// Staging was refused: it must abort.
    Doomed,
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Member {
    /// Whether it runs.
    pub up: bool,
    /// Whether it must send InitProducerId before its next transaction.
    pub must_init: bool,
    /// Its producer's epoch, as it knows it.
    pub epoch: u8,
    /// Where its transaction stands.
    pub phase: Phase,
    /// A ShareFetch answer that waits in the socket.
    pub socket: Option<u8>,
    /// Records in its hands.
    pub held: Records,
    /// Records in its transaction.
    pub staged: Records,
}

/// Everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct State {
    /// Faults that may still happen.
    pub faults: u8,
    /// The records at the leader.
    pub records: [Record; RECORDS],
    /// Committed outputs of each record; 2 means two or more.
    pub outputs: [u8; RECORDS],
    /// The members.
    pub members: List<Member, MEMBERS>,
    /// Their transactions at the coordinator.
    pub coordinators: [Coordinator; MEMBERS],
    /// Their producers' epochs at the coordinator.
    pub epochs: [u8; MEMBERS],
    /// Requests to stage, by member.
    pub stages: [List<Stage, 2>; MEMBERS],
    /// Markers under way.
    pub markers: List<Marker, 6>,
    /// Names for traces.
    pub names: Names,
}

/// Names of the members in traces, exchanged with them where states are made one by symmetry.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names(pub [u8; MEMBERS]);

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

pub(super) fn bit(at: u8) -> u8 {
    1 << at
}

impl State {
    pub(super) fn ended(&self) -> bool {
        let quiet = |m: &Member| m.held == 0 && m.socket.is_none() && m.phase == Phase::Idle;
        self.records.iter().all(|record| *record == Record::Acknowledged) && self.members.iter().all(quiet)
    }

    /// Records below the share-partition's start offset.
    pub(super) fn below_start(&self) -> Records {
        let done = self.records.iter().take_while(|record| **record == Record::Acknowledged).count();
        (1_u8 << done) - 1
    }

    /// Whether a lock can expire without a fault: nobody alive works under it.
    pub(super) fn abandoned(&self, record: usize) -> bool {
        match self.records[record] {
            Record::Orphaned => true,
            Record::Acquired(owner) => {
                let member = &self.members[usize::from(owner)];
                let socket = member.socket == Some(record as u8);
                !socket && (member.held | member.staged) & bit(record as u8) == 0
            }
            _ => false,
        }
    }

    /// Whether a marker decides what was staged at `staged`. With transaction.version 2 a transaction ends with a greater
    /// epoch than its own, so that an equal one is the end of the transaction before.
    pub(super) fn decides(&self, marker: Marker, staged: u8, version: u8, planted: Option<NativePlanted>) -> bool {
        match planted {
            Some(NativePlanted::AnyMarkerEpoch) => true,
            Some(NativePlanted::EqualMarkerEpoch) => staged <= marker.epoch,
            _ if version == 1 => staged <= marker.epoch,
            _ => staged < marker.epoch,
        }
    }

    /// The state that stands for this one: epochs by rank, members in the least order.
    pub(super) fn normal(mut self) -> Self {
        for owner in 0..self.members.len() {
            self.rank_epochs(owner);
        }
        self.markers.sort_unstable();
        let count = self.members.len();
        let orders: &[[usize; MEMBERS]] = match count {
            1 => &[[0, 1, 2]],
            2 => &[[0, 1, 2], [1, 0, 2]],
            _ => &[[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]],
        };
        orders.iter().map(|order| self.permuted(order)).min().unwrap_or(self)
    }

    fn rank_epochs(&mut self, owner: usize) {
        let mut used: u64 = 0;
        self.each_epoch(owner, |epoch| used |= 1 << *epoch);
        self.each_epoch(owner, |epoch| *epoch = (used & ((1 << *epoch) - 1)).count_ones() as u8);
    }

    fn each_epoch(&mut self, owner: usize, mut each: impl FnMut(&mut u8)) {
        each(&mut self.epochs[owner]);
        each(&mut self.members[owner].epoch);
        self.stages[owner].iter_mut().for_each(|stage| each(&mut stage.epoch));
        for record in &mut self.records {
            if let Record::Pending { owner: by, epoch } = record
                && usize::from(*by) == owner
            {
                each(epoch);
            }
        }
        self.markers.iter_mut().filter(|m| usize::from(m.owner) == owner).for_each(|m| each(&mut m.epoch));
    }

    fn permuted(&self, order: &[usize; MEMBERS]) -> Self {
        let count = self.members.len();
        let mut new = [0_u8; MEMBERS];
        let mut state = *self;
        for (to, from) in order[..count].iter().enumerate() {
            new[*from] = to as u8;
            state.members[to] = self.members[*from];
            state.coordinators[to] = self.coordinators[*from];
            state.epochs[to] = self.epochs[*from];
            state.stages[to] = self.stages[*from];
            state.names.0[to] = self.names.0[*from];
        }
        for record in &mut state.records {
            if let Record::Acquired(owner) | Record::Pending { owner, .. } = record {
                *owner = new[usize::from(*owner)];
            }
        }
        state.markers.iter_mut().for_each(|marker| marker.owner = new[usize::from(marker.owner)]);
        state.markers.sort_unstable();
        state
    }
}
