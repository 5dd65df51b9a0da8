//! InitProducerId: a new identity, fencing, and resumption after an error (KIP-360).

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

impl Transactions {
    /// Gives an identity: producer id and epoch.
    pub(crate) fn init(&mut self, now: Now, request: &InitRequest<'_>) -> Result<(i64, i16), ErrorCode> {
        let Some(txn_id) = request.txn_id else { return Ok((self.allocate(), 0)) };
        let timeout_ms = self.check_init(txn_id, request)?;
        if !self.txns.contains_key(txn_id) {
            let producer_id = self.allocate();
            let id = txn_id.detached();
            self.txns.insert(id.clone(), Txn::new(id, producer_id, timeout_ms, now));
        }
        let Some(txn) = self.txns.get(txn_id) else { return Err(ErrorCode::UNKNOWN_SERVER_ERROR) };
        let mine = |id: i64| txn.epoch == -1 || id == txn.producer_id || id == txn.previous_producer_id;
        if request.current.is_some_and(|(id, _)| !mine(id)) {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        match txn.status {
            Status::PrepareCommit | Status::PrepareAbort => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            Status::Ongoing => {
                // The epoch of the fence is never given out: the caller comes again and gets the next one.
                self.fence_and_abort(now, txn_id);
                Err(ErrorCode::CONCURRENT_TRANSACTIONS)
            }
            _ => self.next_identity(now, txn_id, timeout_ms, request.current.map(|(_, epoch)| epoch)),
        }
    }

    fn check_init(&self, txn_id: &Str, request: &InitRequest<'_>) -> Result<i32, ErrorCode> {
        if txn_id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        if request.enable_two_phase_commit && !self.two_phase_commit {
            return Err(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
        }
        // As Kafka 4.4.0: the field is there, what it asks for is not.
        if request.keep_prepared {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        if request.enable_two_phase_commit {
            return Ok(i32::MAX);
        }
        if request.timeout_ms <= 0 || request.timeout_ms > self.max_timeout_ms {
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
