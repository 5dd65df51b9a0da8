//! The ledger partition: appends, outcomes, compaction.
//!
//! Compaction is the broker's: only below the first open transaction, aborted batches vanish at once, an intent goes
//! once a committed tombstone follows, a tombstone and a marker go once nothing needs them.

use super::state::{Batch, Coordinator, Entry, Keys, State, Wire, bit};
use super::step::Pass;

pub(super) fn key_bit(key: u8) -> Keys {
    1 << key
}

impl State {
    /// Whether the log has an open transaction of this producer.
    fn is_open(&self, owner: u8) -> bool {
        for entry in self.log.iter().rev() {
            match entry {
                Entry::Marker { owner: ended, .. } if *ended == owner => return false,
                Entry::Data(batch) if batch.owner == owner => return true,
                _ => {}
            }
        }
        false
    }

    /// How the transaction of the batch at `at` ended; none while it is open.
    fn outcome(&self, at: usize, owner: u8) -> Option<bool> {
        self.log[at + 1..].iter().find_map(|entry| match entry {
            Entry::Marker { owner: ended, commit } if *ended == owner => Some(*commit),
            _ => None,
        })
    }

    /// Appends a produce request's batch; gives its offset.
    pub(super) fn append(&mut self, owner: u8, wire: Wire) -> u8 {
        let Wire { current, key, claims, tombstones } = wire;
        let batch = Batch { owner, current, key: Some(key), claims, tombstones, partial: false };
        self.log.push(Entry::Data(batch));
        self.log.len() as u8 - 1
    }

    /// The coordinator writes its decision to the ledger partition.
    pub(super) fn write_marker(&mut self, owner: u8, tv1: bool) {
        let commit = self.coordinators[usize::from(owner)] == Coordinator::PrepareCommit;
        if self.is_open(owner) {
            self.log.push(Entry::Marker { owner, commit });
        }
        self.complete(owner, commit);
        self.coordinators[usize::from(owner)] = Coordinator::Empty;
        if !tv1 {
            // Under transaction.version 2 the next transaction has the next epoch; its own producer learns it.
            self.outdate(owner);
        }
    }

    /// The producer's epoch moves on: whatever refers to the old one is out of date. Its own member is told apart from
    /// this by the caller.
    pub(super) fn outdate(&mut self, owner: u8) {
        for wire in self.wires[usize::from(owner)].iter_mut() {
            wire.current = false;
        }
        for entry in self.log.iter_mut() {
            if let Entry::Data(batch) = entry
                && batch.owner == owner
            {
                batch.current = false;
            }
        }
        for known in self.members.iter_mut().flat_map(|member| member.picture.iter_mut()) {
            known.current &= known.owner != owner;
        }
    }

    /// Where compaction ends: at the first open transaction, and before the last batch (the active segment is not compacted).
    fn cleanable(&self) -> usize {
        let open = |(at, entry): (usize, &Entry)| match entry {
            Entry::Data(batch) => self.outcome(at, batch.owner).is_none(),
            _ => false,
        };
        self.log.iter().enumerate().position(open).unwrap_or(self.log.len().saturating_sub(1))
    }

    /// The broker's cleaner runs; what it does is cumulative.
    pub(super) fn compact(&mut self, pass: Pass) {
        self.compact_records();
        if pass != Pass::Records {
            self.compact_deletes(pass);
        }
    }

    /// One pass of compaction over records: aborted batches, and intents with a committed tombstone.
    fn compact_records(&mut self) {
        let end = self.cleanable();
        let mut tombstones: Keys = 0;
        for at in (0..end).rev() {
            let Entry::Data(mut batch) = self.log[at] else { continue };
            let committed = self.outcome(at, batch.owner) == Some(true);
            if !committed {
                self.log[at] = Entry::Hole;
                continue;
            }
            if batch.key.is_some_and(|key| tombstones & key_bit(key) != 0) {
                (batch.key, batch.claims, batch.partial) = (None, 0, true);
            }
            tombstones |= batch.tombstones;
            self.log[at] = if batch.key.is_none() && batch.tombstones == 0 { Entry::Hole } else { Entry::Data(batch) };
        }
    }

    /// A later pass: tombstones without an intent before them, and markers of transactions of which nothing is left.
    fn compact_deletes(&mut self, pass: Pass) {
        let mut keys: Keys = 0;
        let mut owners = 0_u8;
        for at in 0..self.cleanable() {
            match self.log[at] {
                Entry::Data(mut batch) => {
                    let kept = batch.tombstones & keys;
                    batch.partial |= kept != batch.tombstones;
                    batch.tombstones = kept;
                    keys |= batch.key.map_or(0, key_bit);
                    let gone = batch.key.is_none() && batch.tombstones == 0;
                    owners |= if gone { 0 } else { bit(batch.owner) };
                    self.log[at] = if gone { Entry::Hole } else { Entry::Data(batch) };
                }
                Entry::Marker { owner, .. } => {
                    if owners & bit(owner) == 0 {
                        let empty = pass == Pass::DeletesKeepingBatches;
                        self.log[at] = if empty { Entry::EmptyMarker } else { Entry::Hole };
                    }
                    owners &= !bit(owner);
                }
                Entry::Hole | Entry::EmptyMarker => {}
            }
        }
    }
}
