//! Markers: from a decided transaction to its partitions and to share state.

use super::{Cluster, CoordinatorKind, WaitKey};
use crate::Now;
use crate::log::Marker;
use crate::txn_coordinator::{Completion, Participant};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};
use std::time::Duration;

/// Pause before markers are tried again that found no leader.
const RETRY: Duration = Duration::from_millis(50);

impl Cluster {
    /// Adds partitions of `__share_group_state` to the producer's transaction, whose staged acknowledgements then end with
    /// it (KIP-1289 draft). `implicit` where the source leader enrols under transaction.version 2. The errors are those of AddPartitionsToTxn: `INVALID_PRODUCER_ID_MAPPING`,
    /// `PRODUCER_FENCED`, `CONCURRENT_TRANSACTIONS`, `INVALID_TXN_STATE`.
    pub(crate) fn txn_enrol_share_state(
        &mut self,
        now: Now,
        txn_id: &Str,
        producer: (i64, i16),
        partitions: &[i32],
        implicit: bool,
    ) -> Result<(), ErrorCode> {
        let members: Vec<_> = partitions.iter().map(|index| Participant::ShareState(*index)).collect();
        self.transactions.enrol(now, txn_id, producer, &members, implicit)
    }

    /// Checks that the producer's transaction holds a partition of `__share_group_state` (transaction.version 1, where
    /// AddShareAcksToTxn enrolled it): else `TRANSACTION_ABORTABLE`, or the errors of the identity.
    pub(crate) fn txn_verify_share_state(
        &mut self,
        txn_id: &Str,
        producer: (i64, i16),
        partition: i32,
    ) -> Result<(), ErrorCode> {
        self.transactions.verify(txn_id, producer, Participant::ShareState(partition))
    }

    /// Writes the markers that are due.
    pub(crate) fn complete_transactions(&mut self, now: Now) {
        while let Some(completion) = self.transactions.poll_completion(now) {
            if self.has_leaderless(&completion) {
                self.transactions.retry_completion(&completion.txn_id, now.mono + RETRY);
                continue;
            }
            let coordinator_epoch = self.coordinator_epoch(CoordinatorKind::Transaction, &completion.txn_id);
            for member in &completion.participants {
                match member {
                    Participant::Partition(topic, index) => {
                        let marker = completion.marker(coordinator_epoch);
                        if let Err(code) = self.write_marker(now, *topic, *index, &marker) {
                            tracing::debug!(txn = %completion.txn_id, %topic, index, %code, "marker refused");
                        }
                    }
                    Participant::ShareState(index) => {
                        let Completion { producer_id, epoch, committed, .. } = completion;
                        crate::share::apply_marker(self, now, *index, producer_id, epoch, committed);
                    }
                }
            }
            self.transactions.completed(now, &completion.txn_id);
        }
    }

    fn has_leaderless(&self, completion: &Completion) -> bool {
        let leaderless = |member: &Participant| match member {
            Participant::Partition(topic, index) => {
                self.topics.by_id(*topic).and_then(|t| t.partition(*index)).is_some_and(|p| p.leader < 0)
            }
            Participant::ShareState(_) => self.alive_nodes().next().is_none(),
        };
        completion.participants.iter().any(leaderless)
    }

    /// Writes a marker into a partition's log; one of a topic that is gone has nowhere to go.
    pub(crate) fn write_marker(&mut self, now: Now, topic: Uuid, index: i32, marker: &Marker) -> Result<(), ErrorCode> {
        let partition = self.topics.by_id_mut(topic).and_then(|t| t.partition_mut(index));
        let partition = partition.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let before = partition.log.bytes();
        partition.log.append_marker(marker, partition.leader_epoch, now.wall_ms)?;
        let grown = partition.log.bytes() - before;
        self.log_bytes += grown;
        self.wake(&WaitKey::Partition(topic, index));
        Ok(())
    }
}

impl Completion {
    fn marker(&self, coordinator_epoch: i32) -> Marker {
        Marker {
            producer_id: self.producer_id,
            epoch: self.epoch,
            committed: self.committed,
            coordinator_epoch,
            epoch_per_transaction: self.epoch_per_transaction,
        }
    }
}
