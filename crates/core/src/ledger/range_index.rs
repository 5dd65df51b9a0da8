//! Which intents claim an offset: ranges that may overlap, found without looking at all of them.

use super::format::ClaimedRange;
use crate::metadata::TopicIdPartition;
use crate::share_acks::AckType;
use std::collections::{BTreeMap, HashMap};

/// By first offset and intent.
type Ranges = BTreeMap<(i64, i64), (i64, AckType)>;

/// Ranges of intents, which are known by their offset in the ledger.
#[derive(Debug, Default)]
pub(super) struct RangeIndex {
    /// Ranges of like length lie together, so that one long range does not make every search a long one.
    partitions: HashMap<TopicIdPartition, BTreeMap<u32, Ranges>>,
    count: usize,
}

/// Bits of a range's length: it ends less than `2^class` offsets after its start.
fn class(range: &ClaimedRange) -> u32 {
    u64::BITS - range.last.abs_diff(range.first).leading_zeros()
}

impl RangeIndex {
    /// Number of ranges.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn insert(&mut self, tp: TopicIdPartition, range: &ClaimedRange, intent: i64) {
        let ranges = self.partitions.entry(tp).or_default().entry(class(range)).or_default();
        if ranges.insert((range.first, intent), (range.last, range.ack)).is_none() {
            self.count += 1;
        }
    }

    pub(super) fn remove(&mut self, tp: TopicIdPartition, range: &ClaimedRange, intent: i64) {
        let Some(classes) = self.partitions.get_mut(&tp) else { return };
        if let Some(ranges) = classes.get_mut(&class(range)) {
            if ranges.remove(&(range.first, intent)).is_some() {
                self.count -= 1;
            }
            if ranges.is_empty() {
                classes.remove(&class(range));
            }
        }
        if classes.is_empty() {
            self.partitions.remove(&tp);
        }
    }

    /// Intents with what they claim of the offsets from `first` to `last`, in no order.
    pub(super) fn overlapping(
        &self,
        tp: TopicIdPartition,
        first: i64,
        last: i64,
    ) -> impl Iterator<Item = (i64, ClaimedRange)> + '_ {
        let classes = self.partitions.get(&tp).into_iter().flatten();
        classes.flat_map(move |(class, ranges)| {
            let reach = if *class >= 63 { i64::MAX } else { (1 << class) - 1 };
            let from = first.saturating_sub(reach);
            ranges
                .range((from.min(last), i64::MIN)..=(last, i64::MAX))
                .filter(move |(_, (end, _))| *end >= first)
                .map(|((start, intent), (end, ack))| (*intent, ClaimedRange { first: *start, last: *end, ack: *ack }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_share_wire::Uuid;

    const TP: TopicIdPartition = TopicIdPartition { topic_id: Uuid([1; 16]), partition: 0 };

    fn range(first: i64, last: i64) -> ClaimedRange {
        ClaimedRange { first, last, ack: AckType::Accept }
    }

    #[test]
    fn finds_what_a_look_at_all_finds() {
        let mut random = 7_u64;
        let mut next = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % limit) as i64
        };
        let (mut index, mut all) = (RangeIndex::default(), Vec::new());
        for intent in 0..400 {
            let first = next(1000);
            let length = if intent % 50 == 0 { i64::MAX - 1 - first } else { next(1 << (intent % 9)) };
            let claimed = range(first, first + length);
            index.insert(TP, &claimed, intent);
            all.push((intent, claimed));
        }
        for round in 0..400 {
            let first = next(1100);
            let last = first + next(40);
            let mut found: Vec<i64> = index.overlapping(TP, first, last).map(|(intent, _)| intent).collect();
            found.sort_unstable();
            let hit = |(intent, r): &(i64, ClaimedRange)| (r.first <= last && r.last >= first).then_some(*intent);
            assert_eq!(found, all.iter().filter_map(hit).collect::<Vec<_>>(), "{first} to {last}");
            let (intent, claimed) = all.remove(0);
            index.remove(TP, &claimed, intent);
            assert_eq!(index.len(), 399 - round);
        }
        assert!(index.partitions.is_empty());
    }
}
