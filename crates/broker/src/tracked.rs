//! A map that remembers which of its keys were changed, so that a data directory can be brought up to date.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Deref;

/// A map read like any other. Keys are noted only after [`Tracked::record`]; what hands out `&mut V` counts as a change,
/// and whoever takes the keys compares the values.
#[derive(Debug, Clone)]
pub(crate) struct Tracked<K: Ord + Clone, V> {
    map: BTreeMap<K, V>,
    changed: Option<BTreeSet<K>>,
}

impl<K: Ord + Clone, V> Default for Tracked<K, V> {
    fn default() -> Self {
        Tracked { map: BTreeMap::new(), changed: None }
    }
}

impl<K: Ord + Clone, V> Deref for Tracked<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        &self.map
    }
}

impl<K: Ord + Clone, V> Tracked<K, V> {
    /// Notes changes from now on. What is there counts as unchanged.
    pub(crate) fn record(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// Keys that were changed, added or removed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<K> {
        self.changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if let Some(changed) = &mut self.changed
            && let Some((key, _)) = self.map.get_key_value(key)
            && !changed.contains(key.borrow())
        {
            changed.insert(key.clone());
        }
    }

    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.note(key);
        self.map.get_mut(key)
    }

    pub(crate) fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        if let Some(changed) = &mut self.changed {
            changed.insert(key.clone());
        }
        self.map.entry(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(changed) = &mut self.changed {
            changed.insert(key.clone());
        }
        self.map.insert(key, value)
    }

    #[allow(dead_code)]
    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    pub(crate) fn remove_entry<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        self.note(key);
        self.map.remove_entry(key)
    }

    /// Every value counts as changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        if let Some(changed) = &mut self.changed {
            changed.extend(self.map.keys().cloned());
        }
        self.map.values_mut()
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let changed = &mut self.changed;
        self.map.retain(|key, value| {
            let kept = keep(key, value);
            if let Some(changed) = changed
                && !kept
            {
                changed.insert(key.clone());
            }
            kept
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Tracked;

    #[test]
    fn changes_are_noted_once_recording_is_on() {
        let mut map: Tracked<u8, u8> = Tracked::default();
        map.insert(1, 1);
        assert!(map.take_changed().is_empty());
        map.record();
        map.insert(2, 2);
        map.get_mut(&1);
        map.get_mut(&9);
        *map.entry(3).or_default() = 3;
        map.remove(&2);
        assert_eq!(map.take_changed().into_iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert!(map.take_changed().is_empty());
        map.retain(|key, _| *key != 3);
        assert_eq!((map.take_changed().into_iter().collect::<Vec<_>>(), map.len()), (vec![3], 1));
    }
}
