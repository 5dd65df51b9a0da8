//! The end of a transaction: prepared, committed or aborted, and what each answer to EndTxn means.

use super::errors::{self, Answer};
use super::{End, PreparedTransaction, ProducerIdentity, State, Transaction, TxnError, TxnErrorKind, Verdict, wrong};
use kafka_share_messages::{EndTxnRequest, EndTxnResponse, ErrorCode};
use std::time::Instant;

impl Transaction {
    /// Nothing more comes into the transaction, and all that was sent has been answered. Answers what another process
    /// needs to end it; again and again until the end is begun. A transaction that was resumed keeps the time of its papers.
    ///
    /// # Errors
    /// No open transaction, or one that can only be aborted.
    pub fn prepare(&mut self, cluster_id: String, expires_ms: i64) -> Result<PreparedTransaction, TxnError> {
        self.check()?;
        if self.state != State::Prepared {
            self.check_open()?;
            self.state = State::Prepared;
        }
        Ok(PreparedTransaction {
            cluster_id,
            transactional_id: self.id.as_str().to_owned(),
            identity: self.identity,
            v2: self.v2,
            started: self.started,
            expires_ms: self.expires_ms.unwrap_or(expires_ms),
        })
    }

    /// Starts a commit. Records still waiting to be sent must be sent before its request.
    ///
    /// # Errors
    /// No open transaction, or one that can only be aborted.
    pub fn start_commit(&mut self) -> Result<(), TxnError> {
        self.check()?;
        match self.state {
            State::Open | State::Prepared => {
                self.state = State::Ending { commit: true, sent: false };
                Ok(())
            }
            State::Ending { commit: true, .. } | State::Judging { .. } => Ok(()),
            State::Ending { commit: false, .. } => Err(wrong("the transaction is being aborted")),
            _ => Err(wrong("no transaction is open")),
        }
    }

    /// Starts an abort.
    ///
    /// # Errors
    /// No open transaction; a commit that may have reached the coordinator.
    pub fn start_abort(&mut self) -> Result<(), TxnError> {
        match &self.state {
            State::Dead(error) => Err(error.clone()),
            State::Ending { commit: true, sent: true } | State::Judging { .. } => Err(self.unknown_outcome()),
            State::Failed { over: true, .. } | State::Ending { commit: false, .. } => Ok(()),
            State::Open
            | State::Prepared
            | State::Failed { over: false, .. }
            | State::Ending { commit: true, sent: false } => {
                self.wanted.clear();
                self.state = State::Ending { commit: false, sent: false };
                Ok(())
            }
            State::New | State::Ready => Err(wrong("no transaction is open")),
        }
    }

    /// The request that carries out the commit or abort that was started; the same one on every call.
    ///
    /// # Errors
    /// Nothing was started, or the transaction has failed meanwhile.
    pub fn end(&mut self) -> Result<End, TxnError> {
        if self.is_judging() {
            return self.end_judged();
        }
        if self.is_settled() {
            self.finish();
            return Ok(End::Nothing);
        }
        match &mut self.state {
            State::Failed { over: true, .. } => Ok(End::NewEpoch(self.init_again())),
            State::Ending { .. } if !self.started && !self.needs_epoch => {
                self.finish();
                Ok(End::Nothing)
            }
            State::Ending { commit: false, .. } if !self.started => Ok(End::NewEpoch(self.init_request(self.identity))),
            State::Ending { commit, sent } => {
                *sent = true;
                self.contention.commit_sent |= *commit;
                self.doubt |= std::mem::replace(&mut self.awaited, true) && *commit;
                Ok(End::EndTxn(EndTxnRequest {
                    transactional_id: self.id.clone(),
                    producer_id: self.identity.id,
                    producer_epoch: self.identity.epoch,
                    committed: *commit,
                    ..EndTxnRequest::default()
                }))
            }
            State::Failed { error, .. } | State::Dead(error) => Err(error.clone()),
            _ => Err(wrong("no transaction is being committed or aborted")),
        }
    }

    /// Takes the answer of EndTxn. After `Done` ask [`Transaction::needs_new_epoch`].
    pub fn handle_end(&mut self, now: Instant, response: &EndTxnResponse) -> Verdict {
        let State::Ending { commit, .. } = self.state else {
            return self.check().map_or_else(Verdict::Failed, |()| Verdict::Done);
        };
        self.awaited = false;
        let code = response.error_code;
        self.handle_end_moved(code);
        let what = if commit { "committing the transaction" } else { "aborting the transaction" };
        let mut answer = errors::end(code, commit);
        let elsewhere = matches!(answer, Answer::Fenced | Answer::Aborted | Answer::AbortWithNewEpoch);
        if commit && elsewhere && self.can_be_judged() {
            let text = format!("{what}: {code}: {}", code.about());
            return self.judge(TxnError { kind: TxnErrorKind::OutcomeUnknown, code: Some(code), text });
        }
        if commit && self.may_have_ended() {
            // It may have been committed, by an earlier call or another process: nothing may be said of it.
            let ended = matches!(answer, Answer::Fenced | Answer::AbortWithNewEpoch);
            answer = if ended { Answer::Fenced } else { answer };
        } else if answer == Answer::Fenced && (self.timed_out(now) || self.contention.expected) {
            // The coordinator fences a producer whose transaction it aborts for its age, or because another member waits
            // for it. Whether it was another producer instead, the request for a new epoch will tell.
            answer = if commit { Answer::Aborted } else { Answer::AbortWithNewEpoch };
        }
        if answer == Answer::AbortWithNewEpoch && !commit {
            let error = TxnError::new(TxnErrorKind::Abortable, "the transaction was aborted; a new epoch is needed");
            self.state = State::Failed { error, over: true };
            return Verdict::Done;
        }
        self.settle(answer, code, what, |this| {
            if this.v2 && response.producer_id >= 0 {
                this.identity = ProducerIdentity { id: response.producer_id, epoch: response.producer_epoch };
                this.needs_epoch = false;
            }
            if this.needs_epoch {
                let error =
                    TxnError::new(TxnErrorKind::Abortable, "the transaction was aborted; a new epoch is needed");
                this.state = State::Failed { error, over: true };
                this.started = false;
            } else {
                this.finish();
            }
        })
    }

    /// An answer to EndTxn that has the coordinator looked up anew. A coordinator that loses its place, or whose log is not
    /// replicated in time, answers so with the commit in its log already: the next one completes it.
    pub fn handle_end_moved(&mut self, code: ErrorCode) {
        let before = matches!(code, ErrorCode::CONCURRENT_TRANSACTIONS | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        let commit = matches!(self.state, State::Ending { commit: true, .. });
        self.doubt |= commit && code.is_retriable() && !before;
    }

    /// Whether the transaction may be over already: another process had its papers, or an end was not answered.
    pub(super) fn may_have_ended(&self) -> bool {
        self.resumed || self.doubt
    }

    fn timed_out(&self, now: Instant) -> bool {
        self.began.is_some_and(|began| now.saturating_duration_since(began) >= self.timeout())
    }

    /// Whether the abort that has just succeeded needs [`Transaction::end`] once more, for a new epoch.
    #[must_use]
    pub fn needs_new_epoch(&self) -> bool {
        matches!(self.state, State::Failed { over: true, .. })
    }

    /// The caller's deadline passed before the end was known. The error to give: only the same call may follow.
    pub fn handle_end_given_up(&mut self, why: &str) -> TxnError {
        match self.state {
            State::Ending { commit: true, sent: true } | State::Judging { .. } => {
                let error = self.unknown_outcome();
                TxnError { text: format!("{} ({why})", error.text), ..error }
            }
            _ => TxnError::new(TxnErrorKind::Retriable, format!("the transaction has not ended in time: {why}")),
        }
    }

    /// Whether a commit may have reached the coordinator already, by an earlier try.
    #[must_use]
    pub fn may_be_committed(&self) -> bool {
        matches!(self.state, State::Ending { commit: true, sent: true } | State::Judging { .. })
    }

    /// Whether an abort was begun whose end is not known yet.
    #[must_use]
    pub fn is_aborting(&self) -> bool {
        matches!(self.state, State::Ending { commit: false, .. })
    }

    /// The request was certainly not sent, so that its outcome is not in doubt; `before`: whether one before it may have
    /// been.
    pub fn handle_end_unsent(&mut self, before: bool) {
        if let State::Ending { sent, commit } = &mut self.state {
            *sent = before || self.doubt;
            self.contention.commit_sent &= *sent || !*commit;
        }
        self.awaited = false;
    }

    pub(super) fn unknown_outcome(&self) -> TxnError {
        let text = "whether the transaction was committed is not known: only commit_transaction may be called again, \
                    or this producer be closed and a new one with the same transactional id be initialised";
        TxnError::new(TxnErrorKind::OutcomeUnknown, text)
    }
}
