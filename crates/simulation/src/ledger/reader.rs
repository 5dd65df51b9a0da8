//! A member's reader: the picture it forms of the ledger, and the two rules of forgetting.

use super::config::{Config, Planted};
use super::log::key_bit;
use super::state::{Batch, Entry, Known, Member, Mode, Phase, Records, Stage, State, bit};

/// What stands against committing a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Free,
    /// The intent's own offset has not been reached yet.
    Unread,
    /// An earlier intent on one of its records is open.
    Wait,
    /// An earlier intent on one of its records is committed, or its own transaction has been aborted.
    Abort,
}

impl State {
    /// The member's reader goes on: to the end, or by one batch.
    pub(super) fn read(&mut self, config: &Config, at: usize) {
        while usize::from(self.members[at].position) < self.log.len() {
            let one = config.one_batch(self.members[at].reading);
            self.read_batch(config, at);
            if one || config.one_batch(self.members[at].reading) {
                break;
            }
        }
    }

    fn read_batch(&mut self, config: &Config, at: usize) {
        let entry = self.log[usize::from(self.members[at].position)];
        let gap = match entry {
            Entry::Hole => true,
            Entry::EmptyMarker => !config.planted(Planted::EmptyMarkerSkipped),
            Entry::Data(batch) => batch.partial,
            Entry::Marker { .. } => false,
        };
        let member = &mut self.members[at];
        if gap && member.reading && config.one_batch(true) {
            // What is gone may be the marker of an intent that an earlier fetch has brought. One fetch shows one state of
            // the log, so that there this cannot be.
            member.picture.iter_mut().for_each(|known| known.suspect |= !known.committed);
        }
        if gap && !member.reading && !config.planted(Planted::NoGapRule) {
            member.drop_all();
            if !config.planted(Planted::PictureKeptAtGap) {
                return self.read_from_start(at);
            }
        }
        if let Entry::Marker { owner, .. } = entry
            && self.has_missed(config, at, owner)
        {
            return self.reread(at);
        }
        let member = &mut self.members[at];
        member.position += 1;
        member.reading &= member.position < member.target;
        member.apply(config, entry);
    }

    /// A marker was missed, so something is gone from the log, and what the picture kept for the records in hand (R1) may be
    /// gone too: it is a gap.
    pub(super) fn reread(&mut self, at: usize) {
        self.members[at].drop_all();
        self.read_from_start(at);
    }

    /// Begins with an empty picture: at start, and after a gap. Until the end that the log has now, holes mean nothing.
    pub(super) fn read_from_start(&mut self, at: usize) {
        let member = &mut self.members[at];
        if !member.reads() {
            return;
        }
        member.picture.clear();
        member.position = 0;
        member.target = self.log.len() as u8;
        member.reading = member.target > 0;
    }

    /// Whether this marker cannot be trusted to be that of the producer's open intent: the intent is no longer in the log,
    /// so that its own marker may have gone with it.
    fn has_missed(&self, config: &Config, at: usize, owner: u8) -> bool {
        let open = |known: &&Known| known.suspect && known.owner == owner && !known.committed;
        let there = |key: u8| self.log.iter().any(|e| matches!(e, Entry::Data(batch) if batch.key == Some(key)));
        let gone = self.members[at].picture.iter().filter(open).any(|known| !there(known.key));
        gone && !config.planted(Planted::SuspectsTrusted)
    }

    /// The rule of the last stable offset: an intent that is open in the picture is not so in the log.
    pub(super) fn must_reread(&self, at: usize) -> bool {
        let member = &self.members[at];
        let open = |known: &&Known| known.suspect && !known.committed;
        let there = |key: u8| self.log.iter().any(|e| matches!(e, Entry::Data(batch) if batch.key == Some(key)));
        let past = !member.reading && usize::from(member.position) == self.log.len();
        past && member.picture.iter().filter(open).any(|known| !there(known.key))
    }
}

impl Member {
    /// Whether it reads the ledger.
    pub(super) fn reads(&self) -> bool {
        self.mode != Mode::Native
    }

    /// Rule R2: nothing that was asked for before the gap may go on. What has been checked already may still commit,
    /// but is not tried again if it does not.
    fn drop_all(&mut self) {
        self.socket = None;
        self.chunks.clear();
        if matches!(self.txn.phase, Phase::Writing | Phase::Checking) {
            self.txn.phase = Phase::Doomed;
        }
    }

    fn apply(&mut self, config: &Config, entry: Entry) {
        match entry {
            Entry::Data(batch) => self.apply_batch(config, batch),
            Entry::Marker { owner, commit } => self.apply_marker(config, owner, commit),
            Entry::Hole | Entry::EmptyMarker => {}
        }
    }

    fn apply_batch(&mut self, config: &Config, batch: Batch) {
        for known in self.picture.iter_mut() {
            if batch.tombstones & key_bit(known.key) != 0 {
                known.tombstoning |= bit(batch.owner);
                if config.planted(Planted::AskCountedAtTombstone) && known.tombstoned == 0 {
                    known.tombstoned = self.next_ask;
                }
            }
        }
        if let Some(key) = batch.key {
            let Batch { owner, current, claims, .. } = batch;
            self.picture.push(Known { key, owner, current, claims, ..Known::default() });
        }
    }

    fn apply_marker(&mut self, config: &Config, owner: u8, commit: bool) {
        self.picture.retain(|known| known.committed || known.owner != owner || commit);
        for known in self.picture.iter_mut() {
            known.committed |= known.owner == owner;
            let ended = known.tombstoning & bit(owner) != 0;
            known.tombstoning &= !bit(owner);
            let counts = commit || config.planted(Planted::AbortedTombstoneCounts);
            if ended && counts && known.tombstoned == 0 {
                known.tombstoned = self.next_ask;
            }
            if ended && !counts && config.planted(Planted::AskCountedAtTombstone) {
                known.tombstoned = 0;
            }
        }
        if config.planted(Planted::ForgetAtTombstone) {
            self.picture.retain(|known| known.tombstoned == 0);
        }
    }

    /// Rule R1: a tombstoned intent is forgotten once everything asked for before its tombstone is settled.
    pub(super) fn forget(&mut self, config: &Config) {
        let late = config.planted(Planted::AskCountedAtAnswer);
        let held = self.chunks.iter().map(|chunk| chunk.ask).min().unwrap_or(self.next_ask);
        let lowest = if late { held } else { self.lowest_ask() };
        let pending = config.planted(Planted::AskCountedAtTombstone);
        let free = |known: &Known| known.tombstoned != 0 && known.tombstoned <= lowest;
        self.picture.retain(|known| !free(known) || (pending && known.tombstoning != 0));
    }

    /// The committed intents on this record, if any: whether it is done.
    pub fn done(&self, record: u8) -> bool {
        self.picture.iter().any(|known| known.committed && known.claims & bit(record) != 0)
    }

    /// Whether an intent on this record is open (step 0 sets it aside).
    pub fn contested(&self, record: u8) -> bool {
        self.picture.iter().any(|known| !known.committed && known.claims & bit(record) != 0)
    }

    /// Step 3: what stands before the own intent.
    pub(super) fn check(&self, config: &Config) -> Verdict {
        if config.planted(Planted::CheckSkipped) {
            return Verdict::Free;
        }
        let own = self.picture.iter().position(|known| known.key == self.txn.key);
        let earlier = match own {
            _ if config.planted(Planted::CheckBehindOffset) => &self.picture[..own.unwrap_or(self.picture.len())],
            _ if self.reading || self.position < self.txn.reach => return Verdict::Unread,
            Some(own) => &self.picture[..own],
            None => return Verdict::Abort,
        };
        let me = self.picture.get(own.unwrap_or_default()).map(|known| known.owner);
        let counts = |known: &&Known| {
            let own = config.planted(Planted::OwnIntentsIgnored) && Some(known.owner) == me;
            known.claims & self.txn.claims != 0 && !own
        };
        let open_unseen = config.planted(Planted::ReadCommitted);
        if earlier.iter().filter(counts).any(|known| known.committed) {
            Verdict::Abort
        } else if !open_unseen && earlier.iter().filter(counts).any(|known| !known.committed) {
            Verdict::Wait
        } else {
            Verdict::Free
        }
    }

    /// Records of the transaction go back to be tried again.
    pub(super) fn unstage(&mut self) {
        if self.mode != Mode::Ledger {
            // The broker has them again.
            self.chunks.retain(|chunk| chunk.stage != Stage::Staged);
        }
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.stage == Stage::Staged) {
            chunk.stage = Stage::Held;
        }
        for mine in self.mine.iter_mut() {
            mine.tombstoning = false;
        }
    }

    /// Records that its open or just committed intents claim: what the picture must keep an answer for.
    pub(super) fn concerned(&self) -> Records {
        self.holds() | if self.txn.phase == Phase::Idle { 0 } else { self.txn.claims }
    }
}
