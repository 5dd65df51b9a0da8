//! The table of slots: states written by the application, taken into requests, and ended by answers.

use super::renewals::{self, settle_followed, settle_renewed};
use super::slot::{
    ASIDE, EXTEND, FOLLOWS, FOLLOWS_EXTENSION, HELD, LOST, Outcomes, PENDING, SENT, STAGED, Slot, phase, renews,
    type_of,
};
use super::{AckBatch, AckOutcome, AckType, AcquiredRange, GAP, Outcome, RecordHandle};
use crate::metadata::TopicIdPartition;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Names a slot; a freed slot that is used again has another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotRef {
    index: u32,
    generation: u32,
}

/// Why an acknowledgement was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AckError {
    /// Acknowledged before with a type that ends the delivery.
    #[error("the record was acknowledged before")]
    AlreadyAcknowledged,
    /// The lock, the session or the leader was lost: the record comes again.
    #[error("the acquisition lock was lost; the record will be delivered again")]
    LockLost,
    /// No delivered record has this offset.
    #[error("the record is not held by this consumer (acknowledged before, lock lost, or never delivered)")]
    NotHeld,
    /// The acknowledgement is part of a transaction.
    #[error("the record's acknowledgement is part of a transaction")]
    InTransaction,
    /// The broker that the record came from cannot renew locks.
    #[error(
        "RENEW is not supported by the broker that leads the partition: it needs ShareAcknowledge version 2 (Kafka 4.2)"
    )]
    NoRenewal,
}

/// Acknowledgements taken out for a request: the slot and the batches, in ascending offset order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Where they came from.
    pub slot: SlotRef,
    /// Number of the ShareFetch that acquired the records.
    pub ask: u64,
    /// The share-partition.
    pub tp: TopicIdPartition,
    /// The batches.
    pub batches: Vec<AckBatch>,
}

/// The table.
#[derive(Debug, Default)]
pub struct AckTable {
    pub(super) slots: Vec<Slot>,
    free: Vec<u32>,
    pub(super) by_partition: BTreeMap<TopicIdPartition, Vec<SlotRef>>,
    pub(super) outcomes: Outcomes,
    pub(super) pending: usize,
    /// Renewed at the application's wish and not handed out again yet.
    pub(super) renewed: BTreeSet<RecordHandle>,
    /// A slot without pending acknowledgements got its first.
    pub(super) news: bool,
    /// An acknowledgement that had to follow a renewal is pending now.
    followed: bool,
    /// Brokers that cannot renew locks, in a cluster of several releases.
    without_renewal: BTreeSet<i32>,
}

impl AckTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a slot for offsets acquired by the ShareFetch with number `ask`. `ranges` ascend, do not overlap, and number
    /// their offsets from 0. Where an older slot has some of the offsets, its lock on them has ended: they cannot be
    /// acknowledged by it any more.
    pub fn open(
        &mut self,
        node: i32,
        tp: TopicIdPartition,
        ask: u64,
        ranges: Vec<AcquiredRange>,
        lock_until: Instant,
    ) -> SlotRef {
        self.supersede(tp, &ranges);
        let count = ranges.last().map_or(0, |r| r.start as usize + (r.last - r.first) as usize + 1);
        let slot = Slot {
            generation: 0,
            ask,
            node,
            tp,
            ranges,
            states: vec![HELD; count],
            open: count as u32,
            pending: 0,
            pending_since: None,
            follows_since: None,
            lock_until,
            renewed: BTreeMap::new(),
            base_expired: false,
            delivery: None,
            handed: 0,
            extend: None,
            stale: false,
            referenced: true,
            lost: 0,
        };
        let at = match self.free.pop() {
            Some(index) => {
                let Slot { generation, lost, .. } = self.slots[index as usize];
                self.slots[index as usize] = Slot { generation, lost, ..slot };
                SlotRef { index, generation }
            }
            None => {
                self.slots.push(slot);
                SlotRef { index: self.slots.len() as u32 - 1, generation: 0 }
            }
        };
        self.by_partition.entry(tp).or_default().push(at);
        at
    }

    fn supersede(&mut self, tp: TopicIdPartition, ranges: &[AcquiredRange]) {
        for at in self.by_partition.get(&tp).cloned().unwrap_or_default() {
            let slot = &mut self.slots[at.index as usize];
            let overlaps = |r: &AcquiredRange| slot.ranges.iter().any(|s| s.first <= r.last && r.first <= s.last);
            if slot.stale || !ranges.iter().any(overlaps) {
                continue;
            }
            let before = slot.pending;
            for r in ranges {
                slot.finish(PENDING, r.first, r.last, Outcome::LockLost, &mut self.outcomes);
                slot.give_up_held(r.first, r.last);
            }
            if slot.pending == 0 {
                slot.pending_since = None;
            }
            self.pending -= (before - slot.pending) as usize;
            self.release_slot(at);
        }
    }

    pub(super) fn slot(&self, at: SlotRef) -> Option<&Slot> {
        self.slots.get(at.index as usize).filter(|s| s.generation == at.generation)
    }

    #[inline]
    pub(super) fn slot_mut(&mut self, at: SlotRef) -> Option<&mut Slot> {
        self.slots.get_mut(at.index as usize).filter(|s| s.generation == at.generation)
    }

    /// Why the slot of a handle is not there any more. The uses of a slot before its last 63 are forgotten.
    pub(super) fn gone(&self, at: SlotRef) -> AckError {
        let slot = self.slots.get(at.index as usize);
        let lost = slot.and_then(|s| s.lost.checked_shr(s.generation.wrapping_sub(at.generation)));
        if lost.is_some_and(|lost| lost & 1 == 1) { AckError::LockLost } else { AckError::NotHeld }
    }

    /// Whether a broker can renew locks; the last word on it counts.
    pub fn set_renewal(&mut self, node: i32, offered: bool) {
        if offered {
            self.without_renewal.remove(&node);
        } else {
            self.without_renewal.insert(node);
        }
    }

    /// # Errors
    /// [`AckError::NoRenewal`] where `ack` is RENEW and the slot's broker cannot.
    pub fn check_renewal(&self, at: SlotRef, ack: AckType) -> Result<(), AckError> {
        let refused = ack == AckType::Renew && self.slot(at).is_some_and(|s| self.without_renewal.contains(&s.node));
        if refused { Err(AckError::NoRenewal) } else { Ok(()) }
    }

    /// Acknowledges one delivered record.
    ///
    /// RENEW may be said again and again, and replaced by another type; the other types are final once said.
    ///
    /// # Errors
    /// See [`AckError`]; the state is unchanged then.
    pub fn acknowledge(&mut self, handle: RecordHandle, ack: AckType, now: Instant) -> Result<(), AckError> {
        self.acknowledge_by(handle, ack, || now)
    }

    /// As [`AckTable::acknowledge`], asking for the time only where it matters: it does for few, and reading a clock
    /// costs about as much as all else here.
    ///
    /// # Errors
    /// See [`AckError`].
    #[inline]
    pub fn acknowledge_by(
        &mut self,
        handle: RecordHandle,
        ack: AckType,
        now: impl FnOnce() -> Instant,
    ) -> Result<(), AckError> {
        self.check_renewal(handle.slot, ack)?;
        let Some(slot) = self.slot_mut(handle.slot) else { return Err(self.gone(handle.slot)) };
        if slot.stale {
            return Err(AckError::LockLost);
        }
        let state = slot.states.get_mut(handle.index as usize).ok_or(AckError::NotHeld)?;
        match phase(*state) {
            HELD => {
                *state = PENDING | ack as u8;
                slot.pending += 1;
                let first = slot.pending_since.is_none();
                slot.pending_since.get_or_insert_with(now);
                self.news |= first;
                self.pending += 1;
                Ok(())
            }
            PENDING | SENT if renews(type_of(*state)) => {
                if phase(*state) == PENDING {
                    *state = PENDING | ack as u8;
                } else if ack == AckType::Renew {
                    // What is on its way does it, and from now on the application waits for it.
                    *state = SENT | ack as u8;
                } else {
                    // The renewal is on its way; the final word follows it.
                    let follows = if type_of(*state) == EXTEND as i8 { FOLLOWS_EXTENSION } else { FOLLOWS };
                    *state = follows | ack as u8;
                    slot.follows_since.get_or_insert_with(now);
                }
                Ok(())
            }
            STAGED => Err(AckError::InTransaction),
            ASIDE => Err(AckError::NotHeld),
            LOST => Err(AckError::LockLost),
            _ => Err(AckError::AlreadyAcknowledged),
        }
    }

    /// Acknowledges those of `indexes` that nothing was said of yet; answers how many. A renewal that nobody asked for by a
    /// word of its own says nothing: where one is on its way, the acknowledgement follows it.
    pub fn acknowledge_held(
        &mut self,
        at: SlotRef,
        indexes: impl IntoIterator<Item = u32>,
        ack: AckType,
        now: Instant,
    ) -> usize {
        let Some(slot) = self.slot_mut(at).filter(|s| !s.stale) else { return 0 };
        let (mut marked, mut other) = (0, 0);
        for index in indexes {
            let Some(state) = slot.states.get_mut(index as usize) else { continue };
            if *state == HELD {
                *state = PENDING | ack as u8;
                marked += 1;
            } else if type_of(*state) == EXTEND as i8 && matches!(phase(*state), PENDING | SENT) {
                *state = match (phase(*state), ack) {
                    (PENDING, _) | (_, AckType::Renew) => phase(*state) | ack as u8,
                    _ => {
                        slot.follows_since.get_or_insert(now);
                        FOLLOWS_EXTENSION | ack as u8
                    }
                };
                other += 1;
            }
        }
        slot.pending += marked;
        self.note_pending(at, marked, now);
        marked as usize + other
    }

    /// Handle of a held record, by share-partition and offset.
    ///
    /// # Errors
    /// [`AckError::NotHeld`] where no live slot has the offset.
    pub fn find(&self, tp: TopicIdPartition, offset: i64) -> Result<RecordHandle, AckError> {
        let slots = self.by_partition.get(&tp).map_or(&[][..], Vec::as_slice);
        let found = slots.iter().rev().find_map(|at| {
            let slot = self.slot(*at).filter(|s| !s.stale)?;
            slot.index_of(offset).map(|index| RecordHandle { slot: *at, index })
        });
        found.ok_or(AckError::NotHeld)
    }

    /// Marks acquired offsets that hold nothing for the application, so that the broker can move on.
    pub fn mark_gaps(&mut self, at: SlotRef, indexes: impl IntoIterator<Item = u32>, now: Instant) {
        let Some(slot) = self.slot_mut(at).filter(|s| !s.stale) else { return };
        let mut marked = 0;
        for index in indexes {
            if let Some(state) = slot.states.get_mut(index as usize).filter(|s| **s == HELD) {
                *state = PENDING | GAP as u8;
                marked += 1;
            }
        }
        slot.pending += marked;
        self.note_pending(at, marked, now);
    }

    /// Acknowledgements given and not yet taken into a request.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Whether a slot got its first pending acknowledgement since this was asked last, so that there is a new age limit.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Whether acknowledgements that had to follow renewals have become pending since this was asked last.
    pub fn take_followed(&mut self) -> bool {
        std::mem::take(&mut self.followed)
    }

    /// Whether a renewal for `node` is pending.
    #[must_use]
    pub fn renewal_pending(&self, node: i32) -> bool {
        let mut slots = self.slots.iter().filter(|s| s.node == node && !s.stale && s.pending > 0);
        slots.any(|s| s.states.iter().any(|s| phase(*s) == PENDING && renews(type_of(*s))))
    }

    /// When the oldest pending acknowledgement for `node` was given.
    #[must_use]
    pub fn pending_since(&self, node: i32) -> Option<Instant> {
        let live = self.slots.iter().filter(|s| s.node == node && !s.stale);
        live.filter_map(|s| s.pending_since).min()
    }

    /// When the oldest pending acknowledgement for any node was given.
    #[must_use]
    pub fn oldest_pending(&self) -> Option<Instant> {
        self.slots.iter().filter(|s| !s.stale).filter_map(|s| s.pending_since).min()
    }

    /// Nodes that have pending acknowledgements, in id order.
    #[must_use]
    pub fn pending_nodes(&self) -> Vec<i32> {
        let mut nodes: Vec<i32> = self.slots.iter().filter(|s| s.pending > 0 && !s.stale).map(|s| s.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Takes the pending acknowledgements for a node into a request. RENEW goes only where `renew` says so.
    pub fn take(&mut self, node: i32, renew: bool) -> Vec<Taken> {
        self.take_phase(SENT, |s| s.node == node, |code| renew || !renews(code))
    }

    /// Takes pending ACCEPT and REJECT acknowledgements of all nodes into a transaction.
    pub fn take_for_transaction(&mut self) -> Vec<Taken> {
        let wanted = |code| code == AckType::Accept.code() || code == AckType::Reject.code();
        self.take_phase(STAGED, |_| true, wanted)
    }

    pub(super) fn take_phase(
        &mut self,
        to: u8,
        slots: impl Fn(&Slot) -> bool,
        types: impl Fn(i8) -> bool,
    ) -> Vec<Taken> {
        let mut taken = Vec::new();
        for list in self.by_partition.values() {
            for at in list {
                let slot = &mut self.slots[at.index as usize];
                if slot.stale || slot.pending == 0 || !slots(slot) {
                    continue;
                }
                let before = slot.pending;
                let batches = slot.move_phase(PENDING, to, &types);
                self.pending -= (before - slot.pending) as usize;
                if !batches.is_empty() {
                    taken.push(Taken { slot: *at, ask: slot.ask, tp: slot.tp, batches });
                }
            }
        }
        // Slots are in order of acquisition; the broker wants offsets to ascend within a partition.
        taken.sort_by_key(|t| (t.tp, t.batches[0].first));
        taken
    }

    /// Stages held records for a transaction, past the pending state. `None`, and nothing changed, where one of them
    /// is not held any more or was spoken of before.
    pub fn stage_held(
        &mut self,
        at: SlotRef,
        indexes: impl Iterator<Item = u32> + Clone,
        ack: AckType,
    ) -> Option<Taken> {
        let slot = self.slot_mut(at).filter(|s| !s.stale)?;
        if !indexes.clone().all(|i| slot.states.get(i as usize) == Some(&HELD)) {
            return None;
        }
        let mut batches: Vec<AckBatch> = Vec::new();
        for index in indexes {
            slot.states[index as usize] = STAGED | ack as u8;
            let offset = slot.offset(index);
            match batches.last_mut().filter(|b| b.last + 1 == offset) {
                Some(batch) => batch.last = offset,
                None => batches.push(AckBatch { first: offset, last: offset, types: vec![ack.code()] }),
            }
        }
        Some(Taken { slot: at, ask: slot.ask, tp: slot.tp, batches })
    }

    /// Stages single records for a transaction, each with its own type. `None`, and nothing changed, where one of them
    /// is not held any more, was spoken of before, or is named twice.
    pub fn stage_records(&mut self, records: &[(RecordHandle, AckType)]) -> Option<Vec<Taken>> {
        let mut taken = Vec::new();
        for run in records.chunk_by(|(a, s), (b, t)| a.slot == b.slot && s == t && a.index < b.index) {
            match self.stage_held(run[0].0.slot, run.iter().map(|(r, _)| r.index), run[0].1) {
                Some(part) => taken.push(part),
                None => {
                    self.unstage(&taken);
                    return None;
                }
            }
        }
        Some(taken)
    }

    /// Staged records go back to being held, as if nothing had been said of them.
    pub fn unstage(&mut self, taken: &[Taken]) {
        for taken in taken {
            let Some(slot) = self.slot_mut(taken.slot) else { continue };
            let stale = slot.stale;
            let mut given_up = 0;
            for batch in &taken.batches {
                for offset in batch.first..=batch.last {
                    let Some(index) = slot.index_of(offset) else { continue };
                    let state = &mut slot.states[index as usize];
                    if phase(*state) == STAGED {
                        *state = HELD;
                        given_up += u32::from(stale);
                    }
                }
            }
            slot.open -= given_up;
            self.release_slot(taken.slot);
        }
    }

    /// Puts acknowledgements that were taken back to pending, because the request was not sent. Where the lock was lost
    /// meanwhile they can never be sent, and end as lost.
    pub fn put_back(&mut self, taken: &Taken, now: Instant) {
        self.return_as(taken, None, now);
    }

    /// Makes acknowledgements that a transaction may not have taken a RELEASE, as the transaction was aborted: what a
    /// broker did not stage is held still. Where the lock was lost meanwhile they end as lost.
    pub fn release_staged(&mut self, taken: &Taken, now: Instant) {
        self.return_as(taken, Some(AckType::Release), now);
    }

    fn return_as(&mut self, taken: &Taken, ack: Option<AckType>, now: Instant) {
        if self.slot(taken.slot).is_some_and(|s| s.stale) {
            return self.finish(taken, Outcome::LockLost, None);
        }
        let mut moved = 0;
        if let Some(slot) = self.slot_mut(taken.slot) {
            for batch in &taken.batches {
                for offset in batch.first..=batch.last {
                    let Some(index) = slot.index_of(offset) else { continue };
                    let state = &mut slot.states[index as usize];
                    if matches!(phase(*state), SENT | STAGED) {
                        *state = PENDING | ack.map_or(*state & 0x0f, |ack| ack as u8);
                        moved += 1;
                    }
                }
            }
            slot.pending += moved;
            if moved > 0 {
                let first = slot.pending_since.is_none();
                slot.pending_since.get_or_insert(now);
                self.news |= first;
            }
        }
        self.pending += moved as usize;
    }

    /// Ends acknowledgements that were sent or staged. A renewal that was taken leaves the record held, with a new lock;
    /// one that was refused leaves it held with the lock it has.
    pub fn finish(&mut self, taken: &Taken, outcome: Outcome, renewed_until: Option<Instant>) {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        let mut renewed = std::mem::take(&mut self.renewed);
        let mut followed = 0;
        if let Some(slot) = self.slot_mut(taken.slot) {
            for batch in &taken.batches {
                let renewing = batch.types.iter().any(|t| renews(*t));
                if renewing {
                    followed += settle_followed(slot, batch, outcome, renewed_until, &mut outcomes);
                    let again = settle_renewed(slot, batch, outcome, renewed_until, &mut outcomes);
                    renewed.extend(again.into_iter().map(|index| RecordHandle { slot: taken.slot, index }));
                    slot.finish_renewing(batch, outcome, &mut outcomes);
                } else {
                    slot.finish(SENT, batch.first, batch.last, outcome, &mut outcomes);
                    slot.finish(STAGED, batch.first, batch.last, outcome, &mut outcomes);
                }
            }
        }
        self.news |= followed > 0;
        self.followed |= followed > 0;
        self.pending += followed as usize;
        self.outcomes = outcomes;
        self.renewed = renewed;
        self.release_slot(taken.slot);
    }

    /// The locks of a node's records (of one partition, or all) are gone. Pending acknowledgements end as lost; sent
    /// ones wait for what becomes of their request. Staged ones belong to their transaction.
    pub fn lose(&mut self, node: i32, tp: Option<TopicIdPartition>) {
        self.lose_where(|s| s.node == node && tp.is_none_or(|tp| tp == s.tp));
    }

    pub(super) fn lose_where(&mut self, which: impl Fn(&Slot) -> bool) {
        let all = self.by_partition.values().flatten().copied();
        let slots: Vec<SlotRef> = all.filter(|at| self.slot(*at).is_some_and(|s| !s.stale && which(s))).collect();
        for at in slots {
            let mut outcomes = std::mem::take(&mut self.outcomes);
            let mut ended = 0;
            if let Some(slot) = self.slot_mut(at) {
                ended = slot.pending;
                slot.stale = true;
                slot.delivery = None;
                slot.pending_since = None;
                slot.finish(PENDING, i64::MIN, i64::MAX, Outcome::LockLost, &mut outcomes);
                // Records that nobody spoke of have no outcome to report; they only cannot be acknowledged any more.
                slot.give_up_held(i64::MIN, i64::MAX);
            }
            self.pending -= ended as usize;
            self.outcomes = outcomes;
            self.release_slot(at);
        }
    }

    /// The application and the buffer let go of a slot's records (or they were discarded before delivery).
    pub fn unreference(&mut self, at: SlotRef) {
        if let Some(slot) = self.slot_mut(at) {
            slot.referenced = false;
        }
        self.release_slot(at);
    }

    /// Frees a slot whose offsets all have their outcome.
    pub(super) fn release_slot(&mut self, at: SlotRef) {
        let Some(slot) = self.slot(at) else { return };
        if slot.open > 0 {
            return;
        }
        let tp = slot.tp;
        // A handle that outlives its slot sees another generation; to tell "acknowledged before" of each of its records,
        // the slot of an application that still holds records is kept.
        if slot.referenced && !slot.stale {
            return;
        }
        if let Some(list) = self.by_partition.get_mut(&tp) {
            list.retain(|s| *s != at);
            if list.is_empty() {
                self.by_partition.remove(&tp);
            }
        }
        let slot = &mut self.slots[at.index as usize];
        slot.states = Vec::new();
        slot.ranges = Vec::new();
        slot.renewed = BTreeMap::new();
        slot.delivery = None;
        slot.stale = true;
        // From here on every handle and reference to this use of the slot is void.
        slot.generation = slot.generation.wrapping_add(1);
        slot.lost <<= 1;
        self.free.push(at.index);
    }

    /// When the lock of a slot ends, as far as this client knows.
    #[must_use]
    pub fn lock_until(&self, at: SlotRef) -> Option<Instant> {
        self.slot(at).filter(|s| !s.stale).map(|s| s.lock_until)
    }

    /// Whether the record can still be acknowledged.
    #[must_use]
    pub fn is_held(&self, handle: RecordHandle) -> bool {
        let slot = self.slot(handle.slot).filter(|s| !s.stale);
        slot.and_then(|s| s.states.get(handle.index as usize)).is_some_and(|s| phase(*s) == HELD)
    }

    /// Offset and share-partition of a record.
    #[must_use]
    pub fn locate(&self, handle: RecordHandle) -> Option<(TopicIdPartition, i64)> {
        let slot = self.slot(handle.slot).filter(|s| (handle.index as usize) < s.states.len())?;
        Some((slot.tp, slot.offset(handle.index)))
    }

    /// Lets go of records whose lock ended a while ago without a word from the application: the broker has handed
    /// them to others, and an acknowledgement would be refused.
    pub fn expire(&mut self, before: Instant) {
        for at in renewals::expired(&self.slots, before) {
            let mut outcomes = std::mem::take(&mut self.outcomes);
            let slot = &mut self.slots[at as usize];
            let generation = slot.generation;
            self.pending -= slot.expire(before, &mut outcomes) as usize;
            if slot.pending == 0 {
                slot.pending_since = None;
            }
            slot.stale |= slot.renewed.is_empty();
            self.outcomes = outcomes;
            self.release_slot(SlotRef { index: at, generation });
        }
    }

    /// Acknowledgements that are in a request or a transaction whose end is not known.
    #[must_use]
    pub fn unfinished(&self) -> bool {
        self.slots
            .iter()
            .any(|s| s.states.iter().any(|s| matches!(phase(*s), SENT | STAGED | FOLLOWS | FOLLOWS_EXTENSION)))
    }

    /// The next outcome.
    pub fn poll_outcome(&mut self) -> Option<AckOutcome> {
        self.outcomes.told.pop_front()
    }

    /// Slots in use, for tests of memory.
    #[must_use]
    pub fn live_slots(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
