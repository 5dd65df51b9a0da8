//! A share session with one broker (KIP-932): its epoch, and the partitions that the broker has in it.

use crate::metadata::TopicIdPartition;
use std::collections::BTreeSet;

/// Epoch that closes a session.
pub const FINAL_EPOCH: i32 = -1;

/// What a request must list, so that the broker's session matches what is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPlan {
    /// Session epoch of the request; 0 opens a session.
    pub epoch: i32,
    /// Partitions to name: new ones, and those with acknowledgements.
    pub listed: BTreeSet<TopicIdPartition>,
    /// Partitions to forget.
    pub forgotten: BTreeSet<TopicIdPartition>,
}

/// The client's view of a session.
#[derive(Debug, Clone, Default)]
pub struct ShareSession {
    epoch: i32,
    members: BTreeSet<TopicIdPartition>,
}

impl ShareSession {
    /// No session yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the broker has a session.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.epoch > 0
    }

    /// Partitions that the broker has in the session.
    #[must_use]
    pub fn members(&self) -> &BTreeSet<TopicIdPartition> {
        &self.members
    }

    /// Plans a fetch. A partition named only for its acknowledgements joins the broker's session too, so it is forgotten
    /// in the same request where it is not wanted; brokers apply acknowledgements first.
    #[must_use]
    pub fn plan_fetch(&self, wanted: &BTreeSet<TopicIdPartition>, acked: &BTreeSet<TopicIdPartition>) -> SessionPlan {
        let mut listed: BTreeSet<_> = wanted.difference(&self.members).copied().collect();
        listed.extend(acked.iter().copied());
        let mut forgotten: BTreeSet<_> = self.members.difference(wanted).copied().collect();
        forgotten.extend(listed.difference(wanted).copied());
        SessionPlan { epoch: self.epoch, listed, forgotten }
    }

    /// A fetch succeeded.
    pub fn fetch_done(&mut self, plan: &SessionPlan) {
        self.members.extend(plan.listed.iter().copied());
        if !plan.forgotten.is_empty() {
            self.members.retain(|tp| !plan.forgotten.contains(tp));
        }
        self.advance();
    }

    /// An acknowledge request succeeded; it lists partitions without adding them.
    pub fn acknowledge_done(&mut self) {
        self.advance();
    }

    fn advance(&mut self) {
        self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
    }

    /// Epoch of the next request.
    #[must_use]
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// The session is gone.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_share_wire::Uuid;

    fn tps(partitions: &[i32]) -> BTreeSet<TopicIdPartition> {
        partitions.iter().map(|p| TopicIdPartition { topic_id: Uuid::from_halves(0, 1), partition: *p }).collect()
    }

    //= SHARE-CLIENT-25
    #[test]
    fn r001_partitions_that_joined_by_an_acknowledgement_are_forgotten() {
        let mut session = ShareSession::new();
        let plan = session.plan_fetch(&tps(&[1, 2]), &tps(&[]));
        assert_eq!((plan.epoch, &plan.listed), (0, &tps(&[1, 2])));
        session.fetch_done(&plan);
        // 1 is revoked: forgotten at once, and again if its acknowledgement rides on a later request.
        let plan = session.plan_fetch(&tps(&[2]), &tps(&[]));
        assert_eq!((&plan.listed, &plan.forgotten), (&tps(&[]), &tps(&[1])));
        session.fetch_done(&plan);
        let plan = session.plan_fetch(&tps(&[2]), &tps(&[1]));
        assert_eq!((&plan.listed, &plan.forgotten), (&tps(&[1]), &tps(&[1])));
        session.fetch_done(&plan);
        assert_eq!(session.members(), &tps(&[2]));
    }

    //= SHARE-SESSION-14
    #[test]
    fn epochs_wrap_to_one() {
        let mut session = ShareSession { epoch: i32::MAX, members: tps(&[1]) };
        session.acknowledge_done();
        assert_eq!(session.epoch(), 1);
        session.reset();
        assert!(!session.is_open());
    }
}
