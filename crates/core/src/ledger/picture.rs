//! The picture of one ledger partition: which intents of a group are open or committed, as the log has told so far.

use super::format::{ClaimedRange, Claims, GroupClaims, Intent, IntentKey};
use super::range_index::RangeIndex;
use crate::metadata::TopicIdPartition;
use crate::transaction::ProducerIdentity;
use kafka_share_wire::Str;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// What became of an intent's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentState {
    /// No marker has come yet.
    Open,
    /// Its acknowledgements hold.
    Committed,
}

/// An intent in the picture.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: IntentKey,
    pub(super) transactional_id: Str,
    pub(super) two_phase: bool,
    /// The brokers know of it with the commit.
    pub(super) native: bool,
    /// As in the header of its batch.
    pub(super) owner: ProducerIdentity,
    pub(super) state: IntentState,
    pub(super) claims: Claims,
    /// What it claims for other groups.
    pub(super) others: Vec<GroupClaims>,
    /// When it was read.
    pub(super) since: Instant,
    /// A committed tombstone came.
    pub(super) retired: bool,
}

impl Entry {
    fn other_ranges(&self) -> usize {
        self.others.iter().flat_map(|part| part.claims.values()).map(Vec::len).sum()
    }
}

/// An open transaction.
#[derive(Debug, Default)]
struct OpenTransaction {
    intents: Vec<i64>,
    tombstones: Vec<IntentKey>,
}

/// The picture.
#[derive(Debug, Default)]
pub(super) struct Picture {
    /// By offset in the ledger.
    entries: BTreeMap<i64, Entry>,
    keys: HashMap<IntentKey, i64>,
    /// By producer id: markers may carry a higher epoch than the data.
    open: HashMap<i64, OpenTransaction>,
    index: RangeIndex,
    /// Ranges of `others` in all entries.
    other_ranges: usize,
    /// Tombstoned intents that still count for what was asked for before (R1): by the number of the first request that
    /// they do not count for.
    retired: BTreeMap<u64, Vec<i64>>,
    /// Of the group.
    generation: u64,
    /// The group has left the ledger, in this generation.
    left: bool,
    /// Intents of transactions that brokers know nothing of.
    ledger_only: usize,
}

impl Picture {
    /// An empty one; intents of generations before do not count.
    pub(super) fn of_generation(generation: u64) -> Self {
        Picture { generation, ..Picture::default() }
    }

    /// Ranges that are remembered, those for other groups too.
    pub(super) fn ranges(&self) -> usize {
        self.index.len() + self.other_ranges
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the group has left the ledger.
    pub(super) fn has_left(&self) -> bool {
        self.left
    }

    /// Whether any intent, be it tombstoned and kept, is of a transaction that brokers know nothing of.
    pub(super) fn has_ledger_only(&self) -> bool {
        self.ledger_only > 0
    }

    pub(super) fn get(&self, key: &IntentKey) -> Option<(i64, &Entry)> {
        self.keys.get(key).and_then(|offset| Some((*offset, self.entries.get(offset)?)))
    }

    pub(super) fn at(&self, offset: i64) -> Option<&Entry> {
        self.entries.get(&offset)
    }

    /// All, by offset.
    pub(super) fn entries(&self) -> impl Iterator<Item = (i64, &Entry)> {
        self.entries.iter().map(|(offset, entry)| (*offset, entry))
    }

    /// The offsets of open intents, in no order.
    pub(super) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.values().flat_map(|t| &t.intents).copied()
    }

    /// Whether a transaction of this producer has no marker yet.
    pub(super) fn is_open(&self, producer_id: i64) -> bool {
        self.open.contains_key(&producer_id)
    }

    /// The producers of open transactions.
    pub(super) fn owners_open(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.keys().copied()
    }

    /// The lowest offset of an open intent.
    pub(super) fn first_open(&self) -> Option<i64> {
        self.open().min()
    }

    /// An intent of the group's generation, or of a later one that is thereby known.
    pub(super) fn handle_intent(
        &mut self,
        now: Instant,
        offset: i64,
        owner: ProducerIdentity,
        (key, intent): (IntentKey, Intent),
        group: &str,
    ) -> bool {
        let Some(at) = intent.groups.iter().position(|g| g.group == *group) else { return false };
        let mut others = intent.groups;
        let own = others.swap_remove(at);
        let raised = self.handle_generation(own.generation);
        if own.generation < self.generation {
            return raised;
        }
        for (tp, ranges) in &own.claims {
            ranges.iter().for_each(|range| self.index.insert(*tp, range, offset));
        }
        self.keys.insert(key, offset);
        self.open.entry(owner.id).or_default().intents.push(offset);
        let entry = Entry {
            key,
            transactional_id: intent.transactional_id,
            two_phase: intent.two_phase,
            native: intent.native,
            owner,
            state: IntentState::Open,
            claims: own.claims,
            others,
            since: now,
            retired: false,
        };
        self.ledger_only += usize::from(!entry.native);
        self.other_ranges += entry.other_ranges();
        if let Some(before) = self.entries.insert(offset, entry) {
            self.other_ranges -= before.other_ranges();
        }
        raised
    }

    /// Forgets intents of generations before. Answers whether it is a new one.
    pub(super) fn handle_generation(&mut self, generation: u64) -> bool {
        let newer = generation > self.generation;
        if newer {
            *self = Picture::of_generation(generation);
        }
        newer
    }

    /// The group has left the ledger in a generation. Answers whether that is a new one.
    pub(super) fn handle_left(&mut self, generation: u64) -> bool {
        let raised = self.handle_generation(generation);
        self.left |= generation == self.generation;
        raised
    }

    /// A tombstone inside a transaction: it counts if that commits.
    pub(super) fn handle_tombstone(&mut self, producer_id: i64, key: IntentKey) {
        // Others' need no memory.
        if self.keys.contains_key(&key) {
            self.open.entry(producer_id).or_default().tombstones.push(key);
        }
    }

    /// A marker. `next_ask`: the number of the next request for records. Answers whether any intent is tombstoned now.
    pub(super) fn handle_marker(&mut self, producer_id: i64, commit: bool, next_ask: u64) -> bool {
        let Some(transaction) = self.open.remove(&producer_id) else { return false };
        for offset in transaction.intents {
            if !commit {
                self.forget(offset);
            } else if let Some(entry) = self.entries.get_mut(&offset) {
                entry.state = IntentState::Committed;
            }
        }
        let mut any = false;
        for key in transaction.tombstones.iter().filter(|_| commit) {
            any |= self.retire(key, next_ask);
        }
        any
    }

    /// A tombstone counts from here on, for records that are asked for from `next_ask` on. Answers whether it is the first.
    pub(super) fn retire(&mut self, key: &IntentKey, next_ask: u64) -> bool {
        let Some(offset) = self.keys.get(key).copied() else { return false };
        let Some(entry) = self.entries.get_mut(&offset).filter(|e| !e.retired) else { return false };
        entry.retired = true;
        self.retired.entry(next_ask).or_default().push(offset);
        true
    }

    /// Forgets what is tombstoned, whatever was asked for before. Answers whether there was anything.
    pub(super) fn forget_retired(&mut self) -> bool {
        let retired = std::mem::take(&mut self.retired);
        let any = !retired.is_empty();
        retired.into_values().flatten().for_each(|offset| self.forget(offset));
        any
    }

    /// All requests before `lowest_ask` are answered, and what they brought is settled.
    pub(super) fn handle_settled(&mut self, lowest_ask: u64) {
        while let Some(first) = self.retired.first_entry().filter(|e| *e.key() <= lowest_ask) {
            first.remove().into_iter().for_each(|offset| self.forget(offset));
        }
    }

    fn forget(&mut self, offset: i64) {
        let Some(entry) = self.entries.remove(&offset) else { return };
        self.ledger_only -= usize::from(!entry.native);
        self.other_ranges -= entry.other_ranges();
        // A key that was used twice stays with its later intent.
        if self.keys.get(&entry.key) == Some(&offset) {
            self.keys.remove(&entry.key);
        }
        for (tp, ranges) in &entry.claims {
            ranges.iter().for_each(|range| self.index.remove(*tp, range, offset));
        }
    }

    /// Intents that claim any of the offsets, with what they claim of them.
    pub(super) fn overlapping(
        &self,
        tp: TopicIdPartition,
        first: i64,
        last: i64,
    ) -> impl Iterator<Item = (i64, &Entry, ClaimedRange)> {
        let found = self.index.overlapping(tp, first, last);
        found.filter_map(|(offset, range)| Some((offset, self.entries.get(&offset)?, range)))
    }
}
