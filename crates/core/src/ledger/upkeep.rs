//! Which intents are not needed any more: their owner's, once the broker has confirmed every range, and anybody's, once the
//! group's start offsets have passed all of theirs.

use super::format::{ClaimedRange, Claims, IntentKey};
use super::picture::{Entry, IntentState};
use super::reader::LedgerReader;
use crate::metadata::TopicIdPartition;
use kafka_share_wire::Str;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// A share-partition whose start offset decides about tombstones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SweepPartition {
    /// `group.id`.
    pub group: Str,
    /// The share-partition.
    pub tp: TopicIdPartition,
}

/// What is to be tombstoned.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    /// Own committed intents, with what the broker has not confirmed yet.
    unconfirmed: HashMap<IntentKey, Unconfirmed>,
    due: BTreeSet<IntentKey>,
}

#[derive(Debug)]
struct Unconfirmed {
    claims: Claims,
    /// Other readers have a part in it.
    shared: bool,
}

impl LedgerReader {
    /// Forgets what somebody else has tombstoned, or what does not count any more.
    pub(super) fn forget_needless(&mut self) {
        if self.is_caught_up() {
            let picture = &self.picture;
            self.upkeep.unconfirmed.retain(|key, _| picture.get(key).is_some_and(|(_, e)| !e.retired));
        }
    }

    /// The transaction of an own intent was committed; the broker is being told. `shared`: confirmations of a part of it come to other
    /// readers, and whoever knows them all says when it is [done](Self::handle_done).
    pub fn handle_committed(&mut self, key: &IntentKey, shared: bool) {
        self.note_committed(key);
        let Some((_, entry)) = self.picture.get(key) else { return };
        if entry.native {
            // Once that is decided none of the records is acquired any more.
            self.upkeep.due.insert(*key);
            return;
        }
        self.upkeep.unconfirmed.insert(*key, Unconfirmed { claims: entry.claims.clone(), shared });
    }

    /// What the broker has not confirmed to this reader of an own committed intent of its group; `None` for those that are not
    /// waited for (any more).
    #[must_use]
    pub fn unconfirmed(&self, key: &IntentKey) -> Option<&Claims> {
        self.upkeep.unconfirmed.get(key).map(|u| &u.claims)
    }

    /// All of an own committed intent is confirmed, to this reader or to others.
    pub fn handle_done(&mut self, key: &IntentKey) {
        if self.upkeep.unconfirmed.remove(key).is_some() {
            self.upkeep.due.insert(*key);
        }
    }

    /// The broker has acknowledged these offsets with code 0: they do not come again.
    pub fn handle_confirmed(&mut self, tp: TopicIdPartition, first: i64, last: i64) {
        let keys: BTreeSet<IntentKey> = self.picture.overlapping(tp, first, last).map(|(_, e, _)| e.key).collect();
        for key in keys {
            let Some(Unconfirmed { claims, shared }) = self.upkeep.unconfirmed.get_mut(&key) else { continue };
            if let Some(ranges) = claims.get_mut(&tp) {
                *ranges = ranges.iter().flat_map(|range| without(range, first, last)).collect();
                if ranges.is_empty() {
                    claims.remove(&tp);
                }
            }
            if claims.is_empty() && !*shared {
                self.upkeep.unconfirmed.remove(&key);
                self.upkeep.due.insert(key);
            }
        }
    }

    /// Keys of intents that the next transaction tombstones, at most that many. If it is not committed they must be given
    /// [back](Self::return_tombstones).
    pub fn take_tombstones(&mut self, most: usize) -> Vec<IntentKey> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let Some(key) = self.upkeep.due.pop_first() else { break };
            // Somebody else may have done it.
            if self.picture.get(&key).is_some_and(|(_, e)| !e.retired) {
                taken.push(key);
            }
        }
        taken
    }

    /// The transaction with these tombstones was not committed.
    pub fn return_tombstones(&mut self, keys: impl IntoIterator<Item = IntentKey>) {
        self.upkeep.due.extend(keys);
    }

    /// Number of intents to be tombstoned.
    #[must_use]
    pub fn tombstones_due(&self) -> usize {
        self.upkeep.due.len()
    }

    /// Share-partitions of committed intents that were read at least `age` ago and that nobody has tombstoned since: their
    /// owner is dead, or cannot acknowledge. Intents that brokers know of with their commit are due without more ado.
    pub fn sweep(&mut self, now: Instant, age: Duration) -> BTreeSet<SweepPartition> {
        let known: Vec<IntentKey> = self.left_over(now, age).filter(|e| e.native).map(|e| e.key).collect();
        self.upkeep.due.extend(known);
        let unknown = self.left_over(now, age).filter(|e| !e.native);
        unknown.flat_map(|entry| self.places(entry).map(|(place, _)| place)).collect()
    }

    /// Start offsets as DescribeShareGroupOffsets reports them: what lies below does not come again. They may be late, and are
    /// never early.
    pub fn handle_start_offsets(&mut self, now: Instant, age: Duration, starts: &HashMap<SweepPartition, i64>) {
        let passed = |entry: &&Entry| {
            self.places(entry).all(|(place, last)| starts.get(&place).is_some_and(|start| *start > last))
        };
        let due: Vec<IntentKey> = self.left_over(now, age).filter(passed).map(|entry| entry.key).collect();
        for key in due {
            self.upkeep.unconfirmed.remove(&key);
            self.upkeep.due.insert(key);
        }
    }

    fn left_over(&self, now: Instant, age: Duration) -> impl Iterator<Item = &Entry> {
        let old = move |entry: &Entry| now.saturating_duration_since(entry.since) >= age;
        let entries = self.picture.entries().map(|(_, entry)| entry);
        entries.filter(move |e| e.state == IntentState::Committed && !e.retired && old(e))
    }

    /// Share-partitions of an intent, with the last offset claimed of each.
    fn places<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = (SweepPartition, i64)> + 'a {
        let others = entry.others.iter().map(|part| (&part.group, &part.claims));
        std::iter::once((self.group(), &entry.claims)).chain(others).flat_map(|(group, claims)| {
            claims.iter().filter_map(move |(tp, ranges)| {
                let place = SweepPartition { group: group.clone(), tp: *tp };
                Some((place, ranges.last()?.last))
            })
        })
    }
}

/// What two share in: offsets that are claimed in both.
#[must_use]
pub fn common_claims(one: &Claims, other: &Claims) -> Claims {
    let mut common = Claims::new();
    for (tp, ranges) in one {
        let Some(others) = other.get(tp) else { continue };
        let (mut found, mut from) = (Vec::new(), 0);
        for range in ranges {
            from += others[from..].partition_point(|o| o.last < range.first);
            for o in others[from..].iter().take_while(|o| o.first <= range.last) {
                found.push(ClaimedRange { first: o.first.max(range.first), last: o.last.min(range.last), ..*range });
            }
        }
        if !found.is_empty() {
            common.insert(*tp, found);
        }
    }
    common
}

/// What is left of a range without the offsets from `first` to `last`.
fn without(range: &ClaimedRange, first: i64, last: i64) -> impl Iterator<Item = ClaimedRange> {
    let before = ClaimedRange { last: range.last.min(first.saturating_sub(1)), ..*range };
    let after = ClaimedRange { first: range.first.max(last.saturating_add(1)), ..*range };
    [before, after].into_iter().filter(|r| r.first <= r.last)
}
