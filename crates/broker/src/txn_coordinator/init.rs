//! InitProducerId: a new identity, fencing, resumption after an error (KIP-360), keeping what is prepared (KIP-939).

use super::state::LAST_EPOCH;
use super::{Status, Transactions, Txn};
use crate::Now;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Str;

/// A request for an identity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InitRequest<'a> {
    pub(crate) txn_id: Option<&'a Str>,
    pub(crate) timeout_ms: i32,
    /// The identity that the caller has, if it wants to go on with it.
    pub(crate) current: Option<(i64, i16)>,
    pub(crate) enable_two_phase_commit: bool,
    pub(crate) keep_prepared: bool,
}

/// An identity that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    /// Whose records the prepared transaction has that was kept.
    pub(crate) ongoing: Option<(i64, i16)>,
}

impl From<(i64, i16)> for Identity {
    fn from((producer_id, epoch): (i64, i16)) -> Self {
        Identity { producer_id, epoch, ongoing: None }
    }
}

impl Transactions {
    /// Gives an identity: producer id and epoch.
    pub(crate) fn init(&mut self, now: Now, request: &InitRequest<'_>) -> Result<Identity, ErrorCode> {
        let Some(txn_id) = request.txn_id else { return Ok((self.allocate(), 0).into()) };
        let timeout_ms = self.check_init(txn_id, request)?;
        if !self.txns.contains_key(txn_id) {
            if self.txns.len() >= self.limits.max_ids {
                return Err(ErrorCode::POLICY_VIOLATION);
            }
            let producer_id = self.allocate();
            let id = txn_id.detached();
            self.txns.insert(id.clone(), Txn::new(id, producer_id, timeout_ms, now));
        }
        let Some(txn) = self.txns.get(txn_id) else { return Err(ErrorCode::UNKNOWN_SERVER_ERROR) };
        // The previous id is named by who never got the answer that exhausted it.
        let mine = |(id, epoch): (i64, i16)| {
            txn.epoch == -1 || id == txn.client().0 || (id == txn.previous_producer_id && epoch >= LAST_EPOCH)
        };
        if request.current.is_some_and(|current| !mine(current)) {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        match txn.status {
            Status::PrepareCommit | Status::PrepareAbort => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            Status::Ongoing if request.keep_prepared => Ok(self.keep(txn_id, request.enable_two_phase_commit)),
            Status::Ongoing => {
                // The epoch of the fence is never given out: the caller comes again and gets the next one.
                self.fence_and_abort(now, txn_id);
                Err(ErrorCode::CONCURRENT_TRANSACTIONS)
            }
            _ => {
                let expected = request.current.map(|(_, epoch)| epoch);
                self.next_identity(now, txn_id, timeout_ms, expected).map(Identity::from)
            }
        }
    }

    /// Hands the open transaction over to a new identity, which can only end it (KIP-939).
    fn keep(&mut self, txn_id: &Str, without_timeout: bool) -> Identity {
        let last = self.txns.get(txn_id).map_or((-1, -1), Txn::client);
        let (producer_id, epoch) = self.after(last);
        let mut ongoing = None;
        if let Some(txn) = self.txns.get_mut(txn_id) {
            ongoing = Some((txn.producer_id, txn.epoch));
            txn.kept_by = Some((producer_id, epoch));
            if without_timeout {
                txn.timeout_ms = i32::MAX;
                if let Some(deadline) = txn.deadline.take() {
                    self.timeouts.remove(&(deadline, txn.id.clone()));
                }
            }
        }
        Identity { producer_id, epoch, ongoing }
    }

    /// The identity after this one: the next epoch, or a new id at the end of the epochs.
    pub(super) fn after(&mut self, (id, epoch): (i64, i16)) -> (i64, i16) {
        if epoch >= LAST_EPOCH { (self.allocate(), 0) } else { (id, epoch + 1) }
    }

    fn check_init(&self, txn_id: &Str, request: &InitRequest<'_>) -> Result<i32, ErrorCode> {
        if txn_id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        if request.enable_two_phase_commit && !self.limits.two_phase_commit {
            return Err(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
        }
        if request.keep_prepared {
            // As Kafka 4.4.0: the field is there, what it asks for is not.
            if !self.limits.keep_prepared {
                return Err(ErrorCode::UNSUPPORTED_VERSION);
            }
            // Only who comes back without an identity can ask for it.
            if request.current.is_some() {
                return Err(ErrorCode::INVALID_REQUEST);
            }
        }
        if request.enable_two_phase_commit {
            return Ok(i32::MAX);
        }
        if request.timeout_ms <= 0 || request.timeout_ms > self.limits.max_timeout_ms {
            return Err(ErrorCode::INVALID_TRANSACTION_TIMEOUT);
        }
        Ok(request.timeout_ms)
    }

    fn next_identity(
        &mut self,
        now: Now,
        txn_id: &Str,
        timeout_ms: i32,
        expected: Option<i16>,
    ) -> Result<(i64, i16), ErrorCode> {
        let exhausted = self
            .txns
            .get(txn_id)
            .is_some_and(|txn| txn.is_exhausted() && expected.is_none_or(|epoch| epoch == txn.epoch));
        let fresh = if exhausted { Some(self.allocate()) } else { None };
        let txn = self.txns.get_mut(txn_id).ok_or(ErrorCode::UNKNOWN_SERVER_ERROR)?;
        if let Some(producer_id) = fresh {
            txn.previous_producer_id = txn.producer_id;
            txn.producer_id = producer_id;
            txn.last_epoch = if expected.is_some() { txn.epoch } else { -1 };
            txn.epoch = 0;
        } else {
            txn.bump(expected)?;
        }
        txn.status = Status::Empty;
        txn.timeout_ms = timeout_ms;
        txn.start_ms = -1;
        txn.last_update_ms = now.wall_ms;
        txn.participants.clear();
        Ok((txn.producer_id, txn.epoch))
    }
}

impl Txn {
    fn bump(&mut self, expected: Option<i16>) -> Result<(), ErrorCode> {
        let next = self.epoch.checked_add(1).ok_or(ErrorCode::PRODUCER_FENCED)?;
        match expected {
            None => (self.epoch, self.last_epoch) = (next, -1),
            Some(epoch) if self.epoch == -1 || epoch == self.epoch => {
                (self.epoch, self.last_epoch) = (next, self.epoch);
            }
            // The answer to the first attempt was lost.
            Some(epoch) if epoch == self.last_epoch => {}
            Some(_) => return Err(ErrorCode::PRODUCER_FENCED),
        }
        Ok(())
    }
}
