//! The input share-partition and the transaction coordinator, as far as members meet them.

use super::state::{Coordinator, Phase, RECORDS, Record, Records, State, bit, each};

impl State {
    /// A ShareFetch acquires the first available record.
    pub(super) fn acquire(&mut self, at: usize) -> Option<u8> {
        let record = self.records.iter().position(|record| *record == Record::Available)?;
        self.records[record] = Record::Acquired(at as u8);
        Some(record as u8)
    }

    /// Records below the share-partition's start offset.
    pub(super) fn below_start(&self) -> Records {
        let done = self.records.iter().take_while(|record| **record == Record::Acknowledged).count();
        (1_u8 << done) - 1
    }

    /// ACCEPT for one record; whether the answer is code 0. Below the start offset it is, whoever asks.
    pub(super) fn acknowledge(&mut self, at: usize, record: u8) -> bool {
        let state = &mut self.records[usize::from(record)];
        if *state == Record::Acquired(at as u8) {
            *state = Record::Acknowledged;
            return true;
        }
        self.below_start() & bit(record) != 0
    }

    /// RELEASE for some records; those that the member does not hold are refused.
    pub(super) fn release(&mut self, at: usize, records: Records) {
        for record in each(records) {
            let state = &mut self.records[usize::from(record)];
            if *state == Record::Acquired(at as u8) {
                *state = Record::Available;
            }
        }
    }

    /// TxnShareAcknowledge: takes all of the records into the member's transaction, or none.
    pub(super) fn stage(&mut self, at: usize, records: Records) -> bool {
        let held = each(records).all(|record| self.records[usize::from(record)] == Record::Acquired(at as u8));
        for record in each(records).filter(|_| held) {
            self.records[usize::from(record)] = Record::Staged(at as u8);
        }
        held
    }

    /// The marker of a member's transaction reaches the share-partition.
    pub(super) fn complete(&mut self, at: u8, commit: bool) {
        let end = if commit { Record::Acknowledged } else { Record::Available };
        self.records.iter_mut().filter(|record| **record == Record::Staged(at)).for_each(|record| *record = end);
    }

    /// Whether a lock can expire without a fault: nobody alive works under it.
    pub(super) fn abandoned(&self, record: usize) -> bool {
        match self.records[record] {
            Record::Orphaned => true,
            Record::Acquired(owner) => {
                let member = &self.members[usize::from(owner)];
                let staged = if member.txn.phase == Phase::Idle { 0 } else { member.txn.claims };
                (member.holds() | staged) & bit(record as u8) == 0
            }
            Record::Available | Record::Staged(_) | Record::Acknowledged => false,
        }
    }

    /// A member's process is gone: its locks stay until they expire.
    pub(super) fn orphan(&mut self, at: usize) {
        for record in self.records.iter_mut().filter(|record| **record == Record::Acquired(at as u8)) {
            *record = Record::Orphaned;
        }
    }

    /// EndTxn(abort) of the current epoch.
    pub(super) fn end_by_abort(&mut self, at: usize) {
        if self.members[at].epoch_ok && self.coordinators[at] == Coordinator::Ongoing {
            self.coordinators[at] = Coordinator::PrepareAbort;
        }
    }

    /// The coordinator aborts an open transaction with a new epoch: its timeout, or InitProducerId by somebody else.
    pub(super) fn abort_by_force(&mut self, at: usize) {
        self.coordinators[at] = Coordinator::PrepareAbort;
        self.outdate(at as u8);
        self.members[at].epoch_ok = false;
    }

    /// EndTxn(commit): whether the coordinator takes it. This is the atomic point of outputs and intent.
    pub(super) fn end_by_commit(&mut self, at: usize) -> bool {
        if !self.members[at].epoch_ok || self.coordinators[at] != Coordinator::Ongoing {
            return false;
        }
        self.coordinators[at] = Coordinator::PrepareCommit;
        let txn = self.members[at].txn;
        for record in 0..RECORDS as u8 {
            let written = u8::from(txn.outputs & bit(record) != 0) + u8::from(txn.twice & bit(record) != 0);
            let outputs = &mut self.outputs[usize::from(record)];
            *outputs = (*outputs + written).min(2);
        }
        true
    }
}
