//! Promises of the batches that are not settled yet, found by the batch's number.

use super::delivery::Promise;
use kafka_share_core::producer::BatchId;
use std::collections::VecDeque;
use std::sync::Arc;

/// Batches are numbered in the order in which they begin, and most are settled in about that order: a promise's place is a
/// difference of two numbers. A place takes 16 bytes until the oldest batch is settled, which `delivery.timeout.ms` bounds.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// Number of the first place.
    first: u64,
    places: VecDeque<Option<(Arc<Promise>, u32)>>,
}

impl Promises {
    /// One more record of a batch.
    pub(super) fn count(&mut self, batch: BatchId) -> Arc<Promise> {
        let (promise, records) = self.place(batch).get_or_insert_default();
        *records += 1;
        Arc::clone(promise)
    }

    /// The records of a batch are in smaller ones from now on; each with the place of its first record.
    pub(super) fn split(&mut self, batch: BatchId, parts: &[(BatchId, u32)]) {
        let Some((whole, records)) = self.remove(batch) else { return };
        let ends = parts.iter().skip(1).map(|(_, first)| *first).chain([records]);
        let promises: Vec<(u32, Arc<Promise>)> = parts.iter().map(|(_, first)| (*first, Arc::default())).collect();
        for (((part, first), end), (_, promise)) in parts.iter().zip(ends).zip(&promises) {
            *self.place(*part) = Some((Arc::clone(promise), end - first));
        }
        whole.split(promises);
    }

    /// The promise of a batch that is settled, with the number of its records.
    pub(super) fn remove(&mut self, batch: BatchId) -> Option<(Arc<Promise>, u32)> {
        let at = usize::try_from(batch.0.checked_sub(self.first)?).ok()?;
        let found = self.places.get_mut(at)?.take();
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first += 1;
        }
        found
    }

    /// Those of all batches up to this one.
    pub(super) fn up_to(&self, last: BatchId) -> Vec<Arc<Promise>> {
        let numbered = (self.first..=last.0).zip(&self.places);
        numbered.filter_map(|(_, place)| place.as_ref().map(|(promise, _)| Arc::clone(promise))).collect()
    }

    /// Those of all batches.
    pub(super) fn into_all(self) -> impl Iterator<Item = Arc<Promise>> {
        self.places.into_iter().flatten().map(|(promise, _)| promise)
    }

    fn place(&mut self, batch: BatchId) -> &mut Option<(Arc<Promise>, u32)> {
        if self.places.is_empty() {
            self.first = batch.0;
        }
        for _ in batch.0..self.first {
            self.places.push_front(None);
        }
        self.first = self.first.min(batch.0);
        let at = (batch.0 - self.first) as usize;
        if at >= self.places.len() {
            self.places.resize_with(at + 1, || None);
        }
        &mut self.places[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_found_by_number_in_any_order() {
        let mut all = Promises::default();
        for number in [7, 9, 8, 5, 9] {
            all.count(BatchId(number));
        }
        assert_eq!(all.up_to(BatchId(8)).len(), 3);
        assert_eq!(all.remove(BatchId(9)).map(|(_, records)| records), Some(2));
        assert!(
            all.remove(BatchId(9)).is_none() && all.remove(BatchId(6)).is_none() && all.remove(BatchId(4)).is_none()
        );
        assert!(all.remove(BatchId(5)).is_some() && all.remove(BatchId(7)).is_some());
        assert_eq!((all.first, all.places.len()), (8, 2), "places before the oldest are given back");
        assert_eq!(all.into_all().count(), 1);
    }

    #[test]
    fn parts_of_a_batch_have_their_own() {
        let mut all = Promises::default();
        for _ in 0..10 {
            all.count(BatchId(1));
        }
        all.split(BatchId(1), &[(BatchId(2), 0), (BatchId(3), 4)]);
        assert!(all.remove(BatchId(1)).is_none());
        assert_eq!(all.remove(BatchId(2)).map(|(_, records)| records), Some(4));
        assert_eq!(all.remove(BatchId(3)).map(|(_, records)| records), Some(6));
        assert!(all.places.is_empty());
    }
}
