//! Transactions that other members may end: whoever waits for the records of an open one has it aborted, with its own
//! producer id and epoch (the acknowledgement ledger). That is no new producer, and this one goes on with a new epoch.
//!
//! What brokers answer to the owner then, as Kafka 4.1 and 4.4 do: under transaction.version 2 INVALID_TXN_STATE to its commit
//! (PRODUCER_FENCED if it was asked more than once), and its own InitProducerId succeeds. Under version 1 the coordinator
//! forgets the epoch before a fence, so that InitProducerId succeeds with the next epoch only. A new producer that takes
//! over an open transaction is two epochs further, and is told apart by that; one that takes over when nothing is open is
//! not, so the next epoch is tried only where the transaction is known to have been open until it was aborted.

use super::{End, State, Transaction, TxnError, TxnErrorKind, Verdict};
use kafka_share_messages::{ErrorCode, InitProducerIdRequest, InitProducerIdResponse};

/// How far it is known what became of a commit that the coordinator cannot tell of any more.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Judging {
    /// A new epoch comes first: after it nothing is under way any more.
    NewEpoch,
    /// There is a new epoch; what became of the transaction is to be found elsewhere.
    Verdict,
    /// The same, and there is another producer: this one is at its end.
    LastVerdict(TxnError),
    /// It was aborted, and with the next epoch this producer may go on.
    NextEpoch,
    /// It was aborted, and there is a new epoch.
    Aborted,
}

/// Other members, and what is known of them.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// Others may end transactions of this producer.
    pub(super) expected: bool,
    /// How the open transaction ends can be found elsewhere.
    judged: bool,
    /// A commit of it may have reached the coordinator.
    pub(super) commit_sent: bool,
    /// Of a failed transaction: a new epoch has been given already.
    fresh: bool,
    /// The epoch after this producer's own is asked with.
    next_epoch: bool,
}

impl Contention {
    pub(super) fn finish(&mut self) {
        *self = Contention { expected: self.expected, ..Contention::default() };
    }
}

impl Transaction {
    /// From here on other members may end transactions of this producer, to go on with records that they wait for. A fence
    /// can be survived then.
    pub fn expect_contenders(&mut self) {
        self.contention.expected = true;
    }

    /// How the open transaction ends can be found elsewhere, see [`End::Verdict`].
    pub fn expect_verdict(&mut self) {
        self.contention.judged = true;
    }

    /// Takes what was found elsewhere about the commit that [`End::Verdict`] asks about.
    pub fn handle_verdict(&mut self, committed: bool) -> Verdict {
        let State::Judging { error, step } = &self.state else {
            return self.check().map_or_else(Verdict::Failed, |()| Verdict::Done);
        };
        let (error, step) = (error.clone(), step.clone());
        match (step, committed) {
            (Judging::Verdict, true) => self.finish(),
            (Judging::LastVerdict(fenced), true) => {
                self.finish();
                self.state = State::Dead(fenced);
            }
            (Judging::Verdict, false) => {
                let text = format!("{}; it was aborted", error.text);
                return Verdict::Failed(self.aborted(TxnError { text, ..error }));
            }
            (Judging::LastVerdict(_), false) if !self.v2 => {
                self.contention.next_epoch = true;
                self.state = State::Judging { error, step: Judging::NextEpoch };
                return Verdict::Undecided;
            }
            (Judging::LastVerdict(fenced), false) => return self.die(fenced),
            (Judging::NewEpoch | Judging::NextEpoch | Judging::Aborted, _) => return Verdict::Undecided,
        }
        Verdict::Done
    }

    /// Nobody can say what became of the commit. The error to give.
    pub fn handle_no_verdict(&mut self, why: &str) -> TxnError {
        let code = match &self.state {
            State::Judging { error, .. } => error.code,
            _ => None,
        };
        let text = format!("whether the transaction was committed is not known, and nothing can tell any more: {why}");
        let error = TxnError { kind: TxnErrorKind::Fatal, code, text };
        self.state = State::Dead(error.clone());
        error
    }

    /// Whether a commit was refused in a way that only what is found elsewhere can explain: more of
    /// [`Transaction::end`] is to be done.
    #[must_use]
    pub fn is_judging(&self) -> bool {
        matches!(self.state, State::Judging { .. })
    }

    /// A commit was refused by a coordinator that knows another epoch, or another state.
    pub(super) fn judge(&mut self, error: TxnError) -> Verdict {
        self.state = State::Judging { error, step: Judging::NewEpoch };
        Verdict::Undecided
    }

    pub(super) fn can_be_judged(&self) -> bool {
        self.contention.judged
    }

    /// What is to be done about a commit that is judged.
    pub(super) fn end_judged(&mut self) -> Result<End, TxnError> {
        let State::Judging { error, step } = &self.state else { return Ok(End::Nothing) };
        match step {
            Judging::NewEpoch | Judging::NextEpoch => Ok(End::NewEpoch(self.init_again())),
            Judging::Verdict | Judging::LastVerdict(_) => Ok(End::Verdict),
            Judging::Aborted => {
                let error = TxnError { text: format!("{}; it was aborted", error.text), ..error.clone() };
                Err(self.aborted(error))
            }
        }
    }

    /// The transaction is over and not committed, and there is an epoch to go on with.
    fn aborted(&mut self, error: TxnError) -> TxnError {
        let error = TxnError { kind: TxnErrorKind::Aborted, ..error };
        self.contention.fresh = true;
        self.state = State::Failed { error: error.clone(), over: true };
        error
    }

    /// Whether the abort of a failed transaction has nothing left to do.
    pub(super) fn is_settled(&self) -> bool {
        self.contention.fresh && matches!(self.state, State::Failed { over: true, .. })
    }

    /// The request for a new epoch, as it is to be sent now.
    #[must_use]
    pub fn init_again(&self) -> InitProducerIdRequest {
        let mut identity = self.identity;
        identity.epoch = identity.epoch.saturating_add(i16::from(self.contention.next_epoch));
        self.init_request(identity)
    }

    /// The answer to a request for a new epoch, where other members may be behind a refusal; `None` where it is nothing
    /// special.
    pub(super) fn handle_contended_init(&mut self, response: &InitProducerIdResponse) -> Option<Verdict> {
        if !self.contention.expected {
            return None;
        }
        let code = response.error_code;
        let fenced = matches!(code, ErrorCode::PRODUCER_FENCED | ErrorCode::INVALID_PRODUCER_EPOCH);
        match &self.state {
            State::Judging { error, step } if code.is_ok() => {
                let step = if *step == Judging::NextEpoch { Judging::Aborted } else { Judging::Verdict };
                self.state = State::Judging { error: error.clone(), step };
                self.identity = super::ProducerIdentity { id: response.producer_id, epoch: response.producer_epoch };
                Some(Verdict::Done)
            }
            // What became of the transaction can be learned all the same.
            State::Judging { error, step: Judging::NewEpoch } if fenced => {
                let text = format!("initialising the transactional producer: {code}: {}{}", code.about(), FENCED);
                let fenced = TxnError { kind: TxnErrorKind::Fenced, code: Some(code), text };
                self.state = State::Judging { error: error.clone(), step: Judging::LastVerdict(fenced) };
                Some(Verdict::Done)
            }
            // It was open for sure, and nobody tried to commit it: whoever raised the epoch has aborted it.
            State::Failed { over: true, .. } | State::Ending { commit: false, .. }
                if fenced && self.was_open_to_the_last() && !self.contention.next_epoch =>
            {
                self.contention.next_epoch = true;
                Some(Verdict::Retry(code))
            }
            _ => None,
        }
    }

    fn was_open_to_the_last(&self) -> bool {
        !self.v2 && !self.added.is_empty() && !self.contention.commit_sent
    }

    /// Makes a fence an error that an abort helps against, where others may be behind it.
    pub(super) fn soften(&self, error: TxnError) -> TxnError {
        let fence = matches!(error.code, Some(ErrorCode::PRODUCER_FENCED | ErrorCode::INVALID_PRODUCER_EPOCH));
        if self.contention.expected && fence && error.kind == TxnErrorKind::Fenced {
            let text =
                format!("{}; another member may have ended the transaction to go on with its records", error.text);
            return TxnError { kind: TxnErrorKind::Abortable, text, ..error };
        }
        error
    }
}

pub(crate) const FENCED: &str = "; another producer with this transactional id took over: close this one, and give each producer \
     that runs at the same time a transactional.id of its own";
