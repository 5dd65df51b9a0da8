//! One state for all that differ by names alone, or by what nobody can ever look at again.
//!
//! Each reduction keeps what every action may do from here on: it is a bisimulation, not an abstraction.

use super::config::{Config, Planted};
use super::log::key_bit;
use super::state::{Batch, Coordinator, Entry, Keys, MEMBERS, Member, Phase, Record, State, bit};
use crate::list::List;

impl State {
    /// This state, with what follows from it at once.
    pub(super) fn settled(mut self, config: &Config) -> Self {
        self.drop_dead_wires();
        self.members.iter_mut().for_each(|member| member.forget(config));
        self
    }

    /// The state that stands for this one.
    pub(super) fn normal(mut self, config: &Config) -> Self {
        self.drop_dead_wires();
        let acknowledged = self.acknowledged();
        for member in self.members.iter_mut() {
            member.forget(config);
            member.target = if member.reading { member.target } else { 0 };
            member.txn.reach = if member.txn.phase == Phase::Checking { member.txn.reach } else { 0 };
            let concerned = member.concerned();
            let own = (member.txn.phase != Phase::Idle).then_some(member.txn.key);
            if !config.foreign_tombstones {
                member.picture.retain(|known| {
                    known.claims & !acknowledged != 0 || known.claims & concerned != 0 || own == Some(known.key)
                });
            }
            member.rank_asks();
            member.chunks.sort_unstable();
            for known in member.picture.iter_mut() {
                known.current &= !known.committed;
                known.suspect &= !known.committed;
            }
        }
        self.trim_log(config);
        self.least_permutation()
    }

    /// Requests whose epoch is out of date will be refused; only a sender that waits sees it.
    fn drop_dead_wires(&mut self) {
        for (member, wires) in self.members.iter().zip(self.wires.iter_mut()) {
            let txn = member.txn;
            wires.retain(|wire| wire.current || (txn.phase == Phase::Writing && txn.key == wire.key));
        }
    }

    /// What every live reader has passed, and what a reader that starts anew would not see, is removed.
    fn trim_log(&mut self, config: &Config) {
        let passed = self.members.iter().filter(|m| m.up && m.reads()).map(|m| m.position).min();
        let passed = usize::from(passed.unwrap_or(self.log.len() as u8));
        if !config.one_batch(true) {
            // Who reads from the start in one go cannot tell. In steps, compaction may come between them.
            self.compact_passed(config, passed);
        }
        let mut open_owners = 0_u8;
        for at in 0..passed {
            match self.log[at] {
                Entry::Data(batch) => open_owners |= bit(batch.owner),
                Entry::Marker { owner, .. } if open_owners & bit(owner) != 0 => open_owners &= !bit(owner),
                _ => self.log[at] = Entry::Hole,
            }
        }
        for at in (0..passed).rev().filter(|at| self.log[*at] == Entry::Hole).collect::<List<usize, 16>>().iter() {
            self.log.remove(*at);
            for member in self.members.iter_mut() {
                member.position -= u8::from(member.up && member.reads());
                member.txn.reach -= u8::from(usize::from(member.txn.reach) > *at);
                member.target -= u8::from(usize::from(member.target) > *at);
            }
        }
    }

    /// Within what all have passed: ended transactions lose what a reader from the start would forget at once.
    fn compact_passed(&mut self, config: &Config, passed: usize) {
        let acknowledged = self.acknowledged();
        let mut needed: Keys = 0;
        for member in self.members.iter().filter(|m| m.txn.phase != Phase::Idle) {
            needed |= key_bit(member.txn.key);
        }
        let mut committed: Keys = 0;
        let mut intents: Keys = 0;
        for (at, entry) in self.log.iter().enumerate() {
            if let Entry::Data(batch) = entry {
                let ended = at < passed && self.outcome_before(at, batch.owner, passed) == Some(true);
                committed |= if ended { batch.tombstones } else { 0 };
                intents |= batch.key.map_or(0, key_bit);
            }
        }
        for at in 0..passed {
            let Entry::Data(mut batch) = self.log[at] else { continue };
            let Some(commit) = self.outcome_before(at, batch.owner, passed) else { continue };
            batch.partial = false;
            batch.current = false;
            if !commit && !config.planted(Planted::AbortedTombstoneCounts) {
                self.log[at] = Entry::Hole;
                continue;
            }
            if let Some(key) = batch.key {
                let settled = batch.claims & !acknowledged == 0 && !config.foreign_tombstones;
                let dead = committed & key_bit(key) != 0 || settled;
                if dead && needed & key_bit(key) == 0 {
                    (batch.key, batch.claims) = (None, 0);
                }
            }
            batch.tombstones &= intents;
            self.log[at] = Entry::Data(batch);
        }
        self.drop_spent(passed);
    }

    /// Tombstones whose intent has just been removed go with it.
    fn drop_spent(&mut self, passed: usize) {
        let keys = |entry: &Entry| match entry {
            Entry::Data(Batch { key: Some(key), .. }) => key_bit(*key),
            _ => 0,
        };
        let intents: Keys = self.log.iter().fold(0, |all, entry| all | keys(entry));
        for at in 0..passed {
            let Entry::Data(mut batch) = self.log[at] else { continue };
            if self.outcome_before(at, batch.owner, passed).is_some() {
                batch.tombstones &= intents;
                let gone = batch.key.is_none() && batch.tombstones == 0;
                self.log[at] = if gone { Entry::Hole } else { Entry::Data(batch) };
            }
        }
    }

    fn outcome_before(&self, at: usize, owner: u8, end: usize) -> Option<bool> {
        self.log[at + 1..end].iter().find_map(|entry| match entry {
            Entry::Marker { owner: ended, commit } if *ended == owner => Some(*commit),
            _ => None,
        })
    }

    /// Members are alike: of all orders, the least state stands for all.
    fn least_permutation(self) -> Self {
        let count = self.members.len();
        let weights: List<Weight, MEMBERS> = (0..count).map(|at| self.weight(at)).collect();
        let orders: &[[usize; MEMBERS]] = match count {
            1 => &[[0, 1, 2]],
            2 => &[[0, 1, 2], [1, 0, 2]],
            _ => &[[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]],
        };
        let sorted = |order: &&[usize; MEMBERS]| order[..count].is_sorted_by_key(|at| weights[*at]);
        let all = orders.iter().filter(sorted).map(|order| self.permuted(order).with_keys_renumbered());
        all.min().unwrap_or(self)
    }

    /// Something cheap that tells most members apart and does not depend on their order.
    fn weight(&self, at: usize) -> Weight {
        let member = &self.members[at];
        let owned = |record: &Record| *record == Record::Acquired(at as u8);
        let holdings = self.records.iter().fold(0, |all, record| all << 1 | u8::from(owned(record)));
        let own_wires = self.wires[at].len() as u8;
        let states = (member.up, member.epoch_ok, member.txn.phase, member.txn.claims, member.position);
        (states, member.socket, self.coordinators[at], [holdings, own_wires, member.chunks.len() as u8])
    }

    fn permuted(&self, order: &[usize; MEMBERS]) -> Self {
        let count = self.members.len();
        let mut new = [0_u8; MEMBERS];
        let mut state = *self;
        for (to, from) in order[..count].iter().enumerate() {
            new[*from] = to as u8;
            state.members[to] = self.members[*from];
            state.coordinators[to] = self.coordinators[*from];
            state.wires[to] = self.wires[*from];
            state.names.members[to] = self.names.members[*from];
        }
        let name = |owner: u8| new[usize::from(owner)];
        for record in &mut state.records {
            if let Record::Acquired(member) | Record::Staged(member) = record {
                *member = name(*member);
            }
        }
        for entry in state.log.iter_mut() {
            match entry {
                Entry::Data(Batch { owner, .. }) | Entry::Marker { owner, .. } => *owner = name(*owner),
                Entry::Hole | Entry::EmptyMarker => {}
            }
        }
        for known in state.members.iter_mut().flat_map(|member| member.picture.iter_mut()) {
            known.owner = name(known.owner);
            let named = |all: u8, from: usize| all | (known.tombstoning >> from & 1) << new[from];
            known.tombstoning = (0..count).fold(0, named);
        }
        state
    }

    /// Keys are numbered by first appearance.
    fn with_keys_renumbered(mut self) -> Self {
        let mut names = Renumbering::default();
        for entry in self.log.iter_mut() {
            if let Entry::Data(batch) = entry {
                batch.key = batch.key.map(|key| names.name(key));
            }
        }
        for wire in self.wires.iter_mut().flat_map(|wires| wires.iter_mut()) {
            wire.key = names.name(wire.key);
        }
        for member in self.members.iter_mut() {
            for known in member.picture.iter_mut() {
                known.key = names.name(known.key);
            }
            if member.txn.phase != Phase::Idle {
                member.txn.key = names.name(member.txn.key);
            }
            for mine in member.mine.iter_mut() {
                mine.key = names.name(mine.key);
            }
        }
        for entry in self.log.iter_mut() {
            if let Entry::Data(batch) = entry {
                batch.tombstones = names.set(batch.tombstones);
            }
        }
        for wire in self.wires.iter_mut().flat_map(|wires| wires.iter_mut()) {
            wire.tombstones = names.set(wire.tombstones);
        }
        let old = self.names.intents;
        for (from, to) in names.new.iter().enumerate() {
            if let Some(to) = to {
                self.names.intents[usize::from(*to)] = old[from];
            }
        }
        self
    }

    /// The next unused key of a normal state.
    pub(super) fn fresh_key(&self) -> u8 {
        let mut used: Keys = 0;
        for entry in self.log.iter() {
            if let Entry::Data(batch) = entry {
                used |= batch.key.map_or(0, key_bit) | batch.tombstones;
            }
        }
        for wire in self.wires.iter().flat_map(|wires| wires.iter()) {
            used |= key_bit(wire.key) | wire.tombstones;
        }
        for member in self.members.iter() {
            let picture = member.picture.iter().map(|known| known.key);
            let mine = member.mine.iter().map(|mine| mine.key);
            let own = (member.txn.phase != Phase::Idle).then_some(member.txn.key);
            used = picture.chain(mine).chain(own).fold(used, |all, key| all | key_bit(key));
        }
        (!used).trailing_zeros() as u8
    }
}

/// See [`State::weight`].
type Weight = ((bool, bool, Phase, u8, u8), Option<(u8, u8)>, Coordinator, [u8; 3]);

#[derive(Default)]
struct Renumbering {
    new: [Option<u8>; 16],
    next: u8,
}

impl Renumbering {
    fn name(&mut self, key: u8) -> u8 {
        let next = &mut self.next;
        *self.new[usize::from(key)].get_or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    fn set(&mut self, keys: Keys) -> Keys {
        (0..16).filter(|key| keys & key_bit(*key) != 0).fold(0, |all, key| all | key_bit(self.name(key)))
    }
}

impl Member {
    /// Ask numbers matter only beside the numbers at which tombstones were read.
    fn rank_asks(&mut self) {
        let mut marks: List<u8, 8> = self.picture.iter().map(|known| known.tombstoned).filter(|n| *n != 0).collect();
        marks.sort_unstable();
        let mut last = 0;
        marks.retain(|mark| std::mem::replace(&mut last, *mark) != *mark);
        let rank = |ask: u8| marks.iter().filter(|mark| **mark <= ask).count() as u8;
        let top = marks.len() as u8;
        let mut asked = false;
        let asks = self.chunks.iter_mut().map(|chunk| &mut chunk.ask);
        for ask in asks.chain(self.socket.as_mut().map(|(_, ask)| ask)) {
            *ask = rank(*ask);
            asked |= *ask == top;
        }
        for known in self.picture.iter_mut().filter(|known| known.tombstoned != 0) {
            known.tombstoned = rank(known.tombstoned);
        }
        self.next_ask = (top + u8::from(asked)).max(1);
    }
}
