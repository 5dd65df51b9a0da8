//! Acknowledgements on their way into a transaction, and the identity of the member that gives them (KIP-1289).

use crate::ledger::{LedgerMember, LedgerPart};
use crate::{Error, ErrorKind, Result};
use kafka_share_core::ledger::Conflict;
pub use kafka_share_core::metadata::TopicIdPartition;
pub use kafka_share_core::share_acks::AckType;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Who acknowledges: a member of a share group, at an epoch.
///
/// A share consumer gives its own ([`share_group_metadata`](crate::KafkaShareConsumer::share_group_metadata)). One that was
/// put together from its parts serves for brokers with transactional acknowledgements only: the
/// [ledger](crate::ledger) needs to know the consumer.
#[derive(Clone)]
pub struct ShareGroupMetadata {
    group_id: String,
    member_id: String,
    member_epoch: i32,
    member: Option<Arc<dyn LedgerMember>>,
}

impl ShareGroupMetadata {
    fn parts(&self) -> (&str, &str, i32) {
        (&self.group_id, &self.member_id, self.member_epoch)
    }
}

impl PartialEq for ShareGroupMetadata {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for ShareGroupMetadata {}

impl Hash for ShareGroupMetadata {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl fmt::Debug for ShareGroupMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group_id, member_id, member_epoch) = self.parts();
        let mut s = f.debug_struct("ShareGroupMetadata");
        s.field("group_id", &group_id).field("member_id", &member_id).field("member_epoch", &member_epoch).finish()
    }
}

impl ShareGroupMetadata {
    /// From its parts; a share consumer gives its own.
    #[must_use]
    pub fn new(group_id: impl Into<String>, member_id: impl Into<String>, member_epoch: i32) -> Self {
        ShareGroupMetadata { group_id: group_id.into(), member_id: member_id.into(), member_epoch, member: None }
    }

    /// The consumer that it is of.
    pub(crate) fn of_member(mut self, member: Arc<dyn LedgerMember>) -> Self {
        self.member = Some(member);
        self
    }

    pub(crate) fn member(&self) -> Option<&Arc<dyn LedgerMember>> {
        self.member.as_ref()
    }

    /// `group.id`.
    #[must_use]
    pub fn group_id(&self) -> &str {
        &self.group_id
    }

    /// Id of the member, chosen by the client.
    #[must_use]
    pub fn member_id(&self) -> &str {
        &self.member_id
    }

    /// Epoch that the group coordinator gave the member; brokers fence others.
    #[must_use]
    pub fn member_epoch(&self) -> i32 {
        self.member_epoch
    }
}

/// Acknowledgements of a range of offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareAcknowledgementBatch {
    first_offset: i64,
    last_offset: i64,
    types: Vec<AckType>,
}

impl ShareAcknowledgementBatch {
    /// First offset.
    #[must_use]
    pub fn first_offset(&self) -> i64 {
        self.first_offset
    }

    /// Last offset, inclusive.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.last_offset
    }

    /// One type for all offsets, or one per offset.
    #[must_use]
    pub fn types(&self) -> &[AckType] {
        &self.types
    }

    /// Number of offsets.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.last_offset.abs_diff(self.first_offset) + 1
    }

    /// Never: a batch has at least one offset.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    fn check(&self) -> Result<()> {
        let (first, last) = (self.first_offset, self.last_offset);
        let fail = |text: String| Err(Error::new(ErrorKind::InvalidInput, text));
        if first < 0 || last < first {
            return fail(format!("acknowledgement of offsets {first} to {last}: not a range of offsets"));
        }
        if self.types.len() != 1 && self.types.len() as u64 != self.len() {
            let (types, offsets) = (self.types.len(), self.len());
            return fail(format!("acknowledgement of offsets {first} to {last}: {types} types for {offsets} offsets"));
        }
        if let Some(bad) = self.types.iter().find(|t| !matches!(t, AckType::Accept | AckType::Reject)) {
            return fail(format!(
                "acknowledgement of offsets {first} to {last}: {bad:?} cannot be part of a transaction, only Accept and Reject can"
            ));
        }
        Ok(())
    }
}

/// How a transaction ended that acknowledgements were staged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionEnd {
    /// They hold.
    Committed,
    /// The records are available again.
    Aborted,
    /// Some or all may be staged in a transaction whose end is not known.
    Unknown,
    /// They never reached a broker, and the transaction has output that belongs to them: the records are still acquired, and
    /// as good as never acknowledged.
    NotStaged,
    /// The same, without output anywhere: what the application had acknowledged it has acknowledged still.
    GivenBack,
}

/// The giver's memory of acknowledgements that it handed over; told once how they ended.
///
/// A part that is dropped untold was not staged; nothing may come of it that a commit had to bring about.
pub(crate) trait StagedPart: Send + Sync {
    /// Brokers may not have staged those of the share-partitions that `which` names; only an abort can follow.
    fn refused(&mut self, which: &dyn Fn(TopicIdPartition) -> bool);

    /// What the ledger's check needs; `None` for givers that know no ledger.
    fn ledger(&self) -> Option<LedgerPart> {
        None
    }

    /// They were staged by the ledger: brokers know nothing of them until they are told after the end.
    fn staged_by_ledger(&mut self) {}

    /// Other transactions stand in the way, so that this one is aborted: what they have committed for the group is to be
    /// acknowledged as they did, and the rest comes again.
    fn contended(&mut self, _group: &str, _done: &[Conflict]) {}

    /// Has the locks of the records renewed, where they may end during the commit and that is possible.
    fn renew(&self) {}

    /// The end.
    fn ended(self: Box<Self>, end: TransactionEnd);
}

/// Acknowledgements for [`send_share_acks_to_transaction`](crate::TransactionalProducer::send_share_acks_to_transaction):
/// per share-partition ordered ranges of offsets that do not overlap, with ACCEPT or REJECT.
///
/// A share consumer gives them with `acknowledgements_for_transaction()`; they can be built by hand too:
///
/// ```
/// use kafka_share::acknowledgements::{AckType, ShareAcknowledgements, TopicIdPartition};
/// # fn main() -> kafka_share::Result<()> {
/// # let topic_id = kafka_share::Uuid::from_halves(1, 2);
/// let tp = TopicIdPartition { topic_id, partition: 0 };
/// let mut acks = ShareAcknowledgements::new();
/// acks.add(tp, 0, 9, AckType::Accept)?;
/// acks.add(tp, 10, 10, AckType::Reject)?;
/// assert!(acks.add(tp, 5, 12, AckType::Accept).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct ShareAcknowledgements {
    batches: BTreeMap<TopicIdPartition, BTreeMap<i64, ShareAcknowledgementBatch>>,
    origins: Vec<Box<dyn StagedPart>>,
    /// Some were added one by one, and no origin answers for them.
    by_hand: bool,
}

impl ShareAcknowledgements {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one type for a range of offsets, both ends inclusive.
    ///
    /// # Errors
    /// Types other than ACCEPT and REJECT, a range that is none, offsets that are already there; nothing is added then.
    pub fn add(&mut self, tp: TopicIdPartition, first: i64, last: i64, ack: AckType) -> Result<()> {
        self.add_types(tp, first, last, vec![ack])
    }

    /// As [`ShareAcknowledgements::add`], with one type per offset (or one for all).
    ///
    /// # Errors
    /// As [`ShareAcknowledgements::add`], and a number of types that does not fit.
    pub fn add_types(&mut self, tp: TopicIdPartition, first: i64, last: i64, types: Vec<AckType>) -> Result<()> {
        self.add_given(tp, first, last, types)?;
        self.by_hand = true;
        Ok(())
    }

    /// As [`ShareAcknowledgements::add_types`], of records that an origin answers for.
    pub(crate) fn add_given(&mut self, tp: TopicIdPartition, first: i64, last: i64, types: Vec<AckType>) -> Result<()> {
        let batch = ShareAcknowledgementBatch { first_offset: first, last_offset: last, types };
        batch.check()?;
        self.check_free(tp, &batch)?;
        self.batches.entry(tp).or_default().insert(first, batch);
        Ok(())
    }

    fn check_free(&self, tp: TopicIdPartition, batch: &ShareAcknowledgementBatch) -> Result<()> {
        let before = self.batches.get(&tp).and_then(|b| b.range(..=batch.last_offset).next_back());
        match before.filter(|(_, b)| b.last_offset >= batch.first_offset) {
            None => Ok(()),
            Some((_, b)) => {
                let text = format!(
                    "{}-{}: acknowledgement of offsets {} to {} overlaps {} to {}, which is there already",
                    tp.topic_id, tp.partition, batch.first_offset, batch.last_offset, b.first_offset, b.last_offset
                );
                Err(Error::new(ErrorKind::InvalidInput, text))
            }
        }
    }

    /// Takes all of `other` in.
    ///
    /// # Errors
    /// Offsets that are in both: gives `other` back unchanged with the error.
    pub fn merge(&mut self, other: ShareAcknowledgements) -> std::result::Result<(), (Error, ShareAcknowledgements)> {
        for (tp, batches) in &other.batches {
            for batch in batches.values() {
                if let Err(error) = self.check_free(*tp, batch) {
                    return Err((error, other));
                }
            }
        }
        for (tp, batches) in other.batches {
            self.batches.entry(tp).or_default().extend(batches);
        }
        self.origins.extend(other.origins);
        self.by_hand |= other.by_hand;
        Ok(())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Number of offsets.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.iter().map(|(_, b)| b.len()).sum()
    }

    /// Share-partitions, in order.
    pub fn partitions(&self) -> impl Iterator<Item = TopicIdPartition> + '_ {
        self.batches.keys().copied()
    }

    /// Batches of one share-partition, by offset.
    pub fn batches(&self, tp: TopicIdPartition) -> impl Iterator<Item = &ShareAcknowledgementBatch> {
        self.batches.get(&tp).into_iter().flat_map(BTreeMap::values)
    }

    /// All batches, by share-partition and offset.
    pub fn iter(&self) -> impl Iterator<Item = (TopicIdPartition, &ShareAcknowledgementBatch)> {
        self.batches.iter().flat_map(|(tp, batches)| batches.values().map(|b| (*tp, b)))
    }

    /// Has the giver told how these end.
    pub(crate) fn add_origin(&mut self, origin: Box<dyn StagedPart>) {
        self.origins.push(origin);
    }

    /// Whether some are of no consumer.
    pub(crate) fn is_by_hand(&self) -> bool {
        self.by_hand
    }

    /// An origin answers for all that was added by hand.
    pub(crate) fn set_adopted(&mut self) {
        self.by_hand = false;
    }

    pub(crate) fn origins(&self) -> &[Box<dyn StagedPart>] {
        &self.origins
    }

    pub(crate) fn take_origins(&mut self) -> Vec<Box<dyn StagedPart>> {
        std::mem::take(&mut self.origins)
    }
}

impl fmt::Debug for ShareAcknowledgements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origins = self.origins.len();
        f.debug_struct("ShareAcknowledgements").field("batches", &self.batches).field("origins", &origins).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uuid;

    const TP: TopicIdPartition = TopicIdPartition { topic_id: Uuid([7; 16]), partition: 3 };

    #[test]
    fn only_accept_and_reject_on_ranges_that_do_not_overlap() {
        let mut acks = ShareAcknowledgements::new();
        acks.add(TP, 5, 9, AckType::Accept).unwrap();
        for (first, last) in [(9, 9), (0, 5), (5, 5), (6, 8), (0, 20), (9, 30)] {
            assert!(acks.add(TP, first, last, AckType::Accept).is_err(), "{first}..{last}");
        }
        for (first, last, ack) in
            [(-1, 0, AckType::Accept), (4, 3, AckType::Accept), (20, 21, AckType::Release), (20, 21, AckType::Renew)]
        {
            assert!(acks.add(TP, first, last, ack).is_err());
        }
        assert!(acks.add_types(TP, 20, 22, vec![AckType::Accept; 2]).is_err());
        acks.add_types(TP, 20, 21, vec![AckType::Accept, AckType::Reject]).unwrap();
        acks.add(TP, 0, 4, AckType::Reject).unwrap();
        assert_eq!(acks.batches(TP).map(|b| b.first_offset()).collect::<Vec<_>>(), [0, 5, 20]);
        assert_eq!(acks.len(), 12);
    }

    #[test]
    fn merge_takes_all_or_nothing() {
        let mut one = ShareAcknowledgements::new();
        one.add(TP, 0, 4, AckType::Accept).unwrap();
        let mut two = ShareAcknowledgements::new();
        two.add(TP, 5, 6, AckType::Accept).unwrap();
        two.add(TP, 4, 4, AckType::Accept).unwrap();
        let (_, two) = one.merge(two).unwrap_err();
        assert_eq!((one.len(), two.len()), (5, 3));
        let mut three = ShareAcknowledgements::new();
        three.add(TP, 5, 5, AckType::Reject).unwrap();
        one.merge(three).unwrap();
        assert_eq!(one.len(), 6);
    }
}
