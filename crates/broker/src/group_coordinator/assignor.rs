//! The simple assignor: all subscribed partitions are assigned, members get about equally many, what a member has it
//! keeps where that is fair. With more members than partitions, members share them.

use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};

/// A partition of a topic.
pub(crate) type TopicPartition = (Uuid, i32);

/// What the assignor knows of a member.
#[derive(Debug, Clone)]
pub(crate) struct Subscriber<'a> {
    pub(crate) member: &'a Str,
    /// Partitions of its topics that exist, sorted.
    pub(crate) wants: Vec<TopicPartition>,
    /// What it has.
    pub(crate) has: &'a BTreeSet<TopicPartition>,
}

/// Assigns partitions; the result has an entry for every subscriber.
pub(crate) fn assign(subscribers: &[Subscriber<'_>]) -> BTreeMap<Str, BTreeSet<TopicPartition>> {
    let mut wanted: BTreeMap<TopicPartition, usize> = BTreeMap::new();
    for subscriber in subscribers {
        for partition in &subscriber.wants {
            *wanted.entry(*partition).or_default() += 1;
        }
    }
    if let [first, rest @ ..] = subscribers
        && !first.wants.is_empty()
        && rest.iter().all(|other| other.wants == first.wants)
    {
        return assign_evenly(subscribers, &first.wants);
    }
    let members = subscribers.iter().filter(|s| !s.wants.is_empty()).count();
    if wanted.is_empty() || members == 0 {
        return subscribers.iter().map(|s| (s.member.clone(), BTreeSet::new())).collect();
    }
    let most_partitions = wanted.len().div_ceil(members);
    let most_members = members.div_ceil(wanted.len());
    let mut shared: BTreeMap<TopicPartition, usize> = wanted.keys().map(|partition| (*partition, 0)).collect();
    let mut result: BTreeMap<Str, BTreeSet<TopicPartition>> = BTreeMap::new();
    for subscriber in subscribers {
        let mine = result.entry(subscriber.member.clone()).or_default();
        for partition in subscriber.has {
            let wants = subscriber.wants.binary_search(partition).is_ok();
            if let Some(users) = shared.get_mut(partition).filter(|users| wants && **users < most_members)
                && mine.len() < most_partitions
            {
                *users += 1;
                mine.insert(*partition);
            }
        }
    }
    fill(subscribers, most_partitions, &mut shared, &mut result);
    cover(subscribers, &mut shared, &mut result);
    result
}

/// All subscribe to the same: every partition gets equally many members, as many as it takes for each member to have
/// one, and members get equally many partitions, or one more.
fn assign_evenly(
    subscribers: &[Subscriber<'_>],
    partitions: &[TopicPartition],
) -> BTreeMap<Str, BTreeSet<TopicPartition>> {
    let readers = subscribers.len().div_ceil(partitions.len());
    let total = partitions.len() * readers;
    let (each, mut more) = (total / subscribers.len(), total % subscribers.len());
    let mut shared: BTreeMap<TopicPartition, usize> = partitions.iter().map(|partition| (*partition, 0)).collect();
    let mut result: BTreeMap<Str, BTreeSet<TopicPartition>> = BTreeMap::new();
    for subscriber in subscribers {
        let mine = result.entry(subscriber.member.clone()).or_default();
        for partition in subscriber.has {
            let room = mine.len() < each || (mine.len() == each && more > 0);
            if let Some(users) = shared.get_mut(partition).filter(|users| room && **users < readers) {
                *users += 1;
                mine.insert(*partition);
                more -= usize::from(mine.len() > each);
            }
        }
    }
    let mut by_use = ByUse::new(shared);
    for mine in result.values_mut() {
        let quota = if mine.len() <= each && more > 0 { each + 1 } else { each };
        more -= usize::from(quota > each);
        let best: Vec<_> = by_use.least(quota.saturating_sub(mine.len()), |partition| !mine.contains(partition));
        for partition in best {
            mine.insert(partition);
            by_use.used(partition);
        }
    }
    result
}

/// Partitions in the order of how many members they have.
struct ByUse {
    users: BTreeMap<TopicPartition, usize>,
    order: BTreeSet<(usize, TopicPartition)>,
}

impl ByUse {
    fn new(users: BTreeMap<TopicPartition, usize>) -> Self {
        let order = users.iter().map(|(partition, users)| (*users, *partition)).collect();
        ByUse { users, order }
    }

    /// The `count` that are used least among those that `fits`.
    fn least(&self, count: usize, fits: impl Fn(&TopicPartition) -> bool) -> Vec<TopicPartition> {
        self.order.iter().map(|(_, partition)| *partition).filter(fits).take(count).collect()
    }

    fn used(&mut self, partition: TopicPartition) {
        let users = self.users.entry(partition).or_default();
        self.order.remove(&(*users, partition));
        *users += 1;
        self.order.insert((*users, partition));
    }
}

/// Gives members that have least what is used least.
fn fill(
    subscribers: &[Subscriber<'_>],
    most_partitions: usize,
    shared: &mut BTreeMap<TopicPartition, usize>,
    result: &mut BTreeMap<Str, BTreeSet<TopicPartition>>,
) {
    // What a subscriber wants before its cursor is in use already.
    let mut cursors = vec![0; subscribers.len()];
    let mut unused = shared.values().filter(|users| **users == 0).count();
    for round in 0..most_partitions {
        if round > 0 && unused == 0 {
            return;
        }
        for (subscriber, cursor) in subscribers.iter().zip(&mut cursors) {
            let Some(mine) = result.get_mut(subscriber.member) else { continue };
            if mine.len() > round {
                continue;
            }
            let wants = &subscriber.wants;
            *cursor += wants[*cursor..].iter().take_while(|partition| shared[partition] > 0).count();
            let best = match wants.get(*cursor) {
                Some(partition) => Some(*partition),
                // A partition is shared further only for a member that would have none.
                None if mine.is_empty() => wants.iter().min_by_key(|partition| shared[partition]).copied(),
                None => None,
            };
            let Some(users) = best.and_then(|partition| shared.get_mut(&partition)) else { continue };
            unused -= usize::from(*users == 0);
            *users += 1;
            mine.extend(best);
        }
    }
}

/// Members with different subscriptions may leave partitions over.
fn cover(
    subscribers: &[Subscriber<'_>],
    shared: &mut BTreeMap<TopicPartition, usize>,
    result: &mut BTreeMap<Str, BTreeSet<TopicPartition>>,
) {
    let left: Vec<TopicPartition> = shared.iter().filter(|(_, users)| **users == 0).map(|(p, _)| *p).collect();
    for partition in left {
        let takers = subscribers.iter().filter(|s| s.wants.binary_search(&partition).is_ok());
        let load = |s: &&Subscriber<'_>| result.get(s.member).map_or(0, BTreeSet::len);
        if let Some(taker) = takers.min_by_key(load) {
            result.entry(taker.member.clone()).or_default().insert(partition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(n: u64) -> Uuid {
        Uuid::from_halves(n, n)
    }

    fn run(
        members: &[(&str, &[(u64, i32)])],
        had: &BTreeMap<Str, BTreeSet<TopicPartition>>,
    ) -> BTreeMap<Str, BTreeSet<TopicPartition>> {
        let names: Vec<Str> = members.iter().map(|(name, _)| Str::from(*name)).collect();
        let none = BTreeSet::new();
        let subscribers: Vec<Subscriber<'_>> = members
            .iter()
            .zip(&names)
            .map(|((_, topics), member)| Subscriber {
                member,
                wants: topics.iter().flat_map(|(t, n)| (0..*n).map(move |p| (topic(*t), p))).collect(),
                has: had.get(member).unwrap_or(&none),
            })
            .collect();
        assign(&subscribers)
    }

    fn loads(result: &BTreeMap<Str, BTreeSet<TopicPartition>>) -> Vec<usize> {
        result.values().map(BTreeSet::len).collect()
    }

    #[test]
    fn partitions_are_spread_evenly_and_kept() {
        let none = BTreeMap::new();
        let two = run(&[("a", &[(1, 4)]), ("b", &[(1, 4)])], &none);
        assert_eq!(loads(&two), [2, 2]);
        let three = run(&[("a", &[(1, 4)]), ("b", &[(1, 4)]), ("c", &[(1, 4)])], &two);
        let mut load = loads(&three);
        load.sort_unstable();
        assert_eq!(load, [1, 1, 2]);
        let all: BTreeSet<_> = three.values().flatten().collect();
        assert_eq!(all.len(), 4, "every partition has a member");
        assert!(three[&Str::from("a")].is_subset(&two[&Str::from("a")]), "a keeps what it had");
    }

    #[test]
    fn more_members_than_partitions_share() {
        let members: Vec<String> = (0..7).map(|n| format!("m{n}")).collect();
        let members: Vec<(&str, &[(u64, i32)])> = members.iter().map(|m| (m.as_str(), &[(1, 3)][..])).collect();
        let result = run(&members, &BTreeMap::new());
        assert_eq!(loads(&result).iter().sum::<usize>(), 9, "as in Kafka, partitions have equally many members");
        assert!(loads(&result).iter().all(|load| (1..=2).contains(load)));
        for partition in 0..3 {
            let users = result.values().filter(|set| set.contains(&(topic(1), partition))).count();
            assert_eq!(users, 3, "partition {partition}");
        }
    }

    #[test]
    fn different_subscriptions_leave_nothing_over() {
        let result = run(&[("a", &[(1, 1)]), ("b", &[(2, 9)]), ("c", &[])], &BTreeMap::new());
        assert_eq!(loads(&result), [1, 9, 0]);
    }
}
