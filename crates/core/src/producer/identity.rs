//! Producer id, epoch and sequence numbers: when they begin anew, and the partitions a transaction must add first.

use super::partition::Phase;
use super::types::{Output, ProduceFailure};
use super::{IdentityState, Producer};
use crate::transaction::{ProducerIdentity, TxnError, TxnErrorKind, Verdict};
use kafka_share_messages::{AddPartitionsToTxnResponse, ErrorCode, InitProducerIdRequest};
use std::collections::VecDeque;
use std::time::Instant;

/// Epoch at which a new producer id is asked for: 32,767 is never used.
const LAST_EPOCH: i16 = i16::MAX - 1;

impl Producer {
    /// Takes the identity that an idempotent producer was given.
    pub fn handle_identity(&mut self, identity: ProducerIdentity) {
        self.adopt(identity);
    }

    /// No identity was given; it is asked for again when [`Producer::poll_output`] is called next.
    pub fn handle_identity_failure(&mut self) {
        if self.identity_state == IdentityState::Asked {
            self.identity_state = IdentityState::Missing;
        }
    }

    /// Begins a new epoch: every partition's sequence starts at 0, used before or not.
    pub(super) fn adopt(&mut self, identity: ProducerIdentity) {
        self.identity_state = IdentityState::Valid;
        self.note_all();
        if self.identity == identity {
            return;
        }
        self.identity = identity;
        for partition in &mut self.partitions {
            partition.next_sequence = 0;
            partition.confirmed = false;
            let renumber: VecDeque<_> = partition.sent.drain(..).collect();
            partition.renumbered = renumber.into_iter().chain(partition.renumbered.drain(..)).collect();
        }
    }

    /// Sequences are in doubt: an idempotent producer goes to the next epoch once all that was sent is settled.
    pub(super) fn doubt(&mut self) {
        if self.transaction.is_none() && self.identity_state == IdentityState::Valid {
            self.identity_state = IdentityState::Doubtful;
        }
    }

    pub(super) fn drive_identity(&mut self) {
        if self.transaction.is_some() {
            return;
        }
        let settled = |p: &Producer| {
            p.requests.is_empty() && p.partitions.iter().flat_map(|p| &p.sent).all(|b| b.phase == Phase::Renumber)
        };
        if self.identity_state == IdentityState::Doubtful && settled(self) {
            if self.identity.epoch < LAST_EPOCH {
                let next = ProducerIdentity { epoch: self.identity.epoch + 1, ..self.identity };
                self.adopt(next);
            } else {
                self.identity_state = IdentityState::Missing;
            }
        }
        let wanted = self.agenda.batches > 0;
        if self.identity_state == IdentityState::Missing && wanted {
            self.identity_state = IdentityState::Asked;
            let request = InitProducerIdRequest {
                transactional_id: None,
                transaction_timeout_ms: i32::MAX,
                producer_id: -1,
                producer_epoch: -1,
                ..InitProducerIdRequest::default()
            };
            self.outputs.push_back(Output::NewIdentity(request));
        }
    }

    /// Whether new batches may be given sequence numbers now.
    pub(super) fn may_number(&self) -> bool {
        self.identity_state == IdentityState::Valid
    }

    /// Asks for the partitions that the drain before found missing in the transaction.
    pub(super) fn drive_adds(&mut self, now: Instant) {
        let Some(transaction) = &mut self.transaction else { return };
        if self.adding || self.add_not_before.is_some_and(|at| at > now) {
            return;
        }
        self.add_not_before = None;
        if let Some(request) = transaction.add_request() {
            self.adding = true;
            self.outputs.push_back(Output::AddPartitions(request));
        }
    }

    /// Takes the answer to AddPartitionsToTxn.
    pub fn handle_added(&mut self, now: Instant, response: &AddPartitionsToTxnResponse) {
        self.adding = false;
        self.note_held();
        let Some(transaction) = &mut self.transaction else { return };
        match transaction.handle_added(response) {
            Verdict::Done | Verdict::Undecided => self.add_failures = 0,
            Verdict::Retry(code) => self.retry_add(now, code),
            Verdict::Failed(error) => {
                self.add_failures = 0;
                self.fail_transaction_inner(error, false);
            }
        }
    }

    /// AddPartitionsToTxn was not answered.
    pub fn handle_add_failure(&mut self, now: Instant, failure: &ProduceFailure) {
        self.adding = false;
        self.note_held();
        if failure.fatal {
            self.fail_transaction_inner(TxnError::new(TxnErrorKind::Abortable, failure.text.clone()), false);
        } else {
            self.retry_add(now, ErrorCode::NONE);
        }
    }

    fn retry_add(&mut self, now: Instant, code: ErrorCode) {
        self.add_failures += 1;
        self.add_not_before = Some(self.pause_after(now, code, self.add_failures));
    }
}
