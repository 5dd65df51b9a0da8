//! A transactional producer's life with its coordinator (KIP-98, KIP-360, KIP-890): which call is allowed when, which
//! request it makes, and what each answer means.
//!
//! The caller sends the requests that the machine makes, again for as long as the answer's [`Verdict`] is `Retry` and
//! its own deadline has not passed; then it tells so with [`Transaction::handle_end_given_up`].

mod errors;

pub use errors::{TxnError, TxnErrorKind, Verdict};

use errors::Answer;
use kafka_share_messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_share_messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, EndTxnRequest, EndTxnResponse, ErrorCode,
    InitProducerIdRequest, InitProducerIdResponse,
};
use kafka_share_wire::Str;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Id and epoch of a producer; -1 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIdentity {
    /// Producer id.
    pub id: i64,
    /// Producer epoch.
    pub epoch: i16,
}

impl ProducerIdentity {
    /// None yet.
    pub const NONE: ProducerIdentity = ProducerIdentity { id: -1, epoch: -1 };
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    New,
    Ready,
    Open,
    /// EndTxn is due, or its answer is awaited. `sent`: it may have reached the coordinator.
    Ending {
        commit: bool,
        sent: bool,
    },
    /// Only an abort helps. `over`: the coordinator has ended the transaction already; only a new epoch is needed.
    Failed {
        error: TxnError,
        over: bool,
    },
    Dead(TxnError),
}

/// The machine.
#[derive(Debug)]
pub struct Transaction {
    id: Str,
    timeout_ms: i32,
    state: State,
    identity: ProducerIdentity,
    /// transaction.version 2 or later: partitions join by Produce, and every end bumps the epoch.
    v2: bool,
    added: BTreeSet<(Str, i32)>,
    wanted: BTreeSet<(Str, i32)>,
    /// Whether the coordinator may know of the open transaction, so that it needs an end.
    started: bool,
    /// When the open transaction was begun.
    began: Option<Instant>,
    /// Whether the next abort must end with a new epoch, as sequences are in doubt.
    needs_epoch: bool,
}

/// What ends a transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The coordinator knows nothing of it; it is over.
    Nothing,
    /// Send this to the coordinator.
    EndTxn(EndTxnRequest),
    /// The coordinator has ended it already; send this, to go on with a new epoch.
    NewEpoch(InitProducerIdRequest),
}

impl Transaction {
    /// A producer that has not spoken to its coordinator yet. `timeout_ms`: `transaction.timeout.ms`.
    #[must_use]
    pub fn new(id: Str, timeout_ms: i32) -> Self {
        Transaction {
            id,
            timeout_ms,
            state: State::New,
            identity: ProducerIdentity::NONE,
            v2: false,
            added: BTreeSet::new(),
            wanted: BTreeSet::new(),
            started: false,
            began: None,
            needs_epoch: false,
        }
    }

    /// Takes the cluster's finalised `transaction.version`. It counts from the next transaction on.
    pub fn handle_feature(&mut self, transaction_version: i16) {
        if matches!(self.state, State::New | State::Ready) {
            self.v2 = transaction_version >= 2;
        }
    }

    /// Whether the transaction runs on transaction.version 2 or later.
    #[must_use]
    pub fn is_v2(&self) -> bool {
        self.v2
    }

    /// `transactional.id`.
    #[must_use]
    pub fn id(&self) -> &Str {
        &self.id
    }

    /// Producer id and epoch.
    #[must_use]
    pub fn identity(&self) -> ProducerIdentity {
        self.identity
    }

    /// Whether a transaction is open and may take records.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether a transaction was begun and its end is not known yet.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        matches!(self.state, State::Open | State::Ending { .. } | State::Failed { .. })
    }

    /// The error that a call must give now, if the transaction or the producer has failed.
    ///
    /// # Errors
    /// That error.
    pub fn check(&self) -> Result<(), TxnError> {
        match &self.state {
            State::Failed { error, .. } | State::Dead(error) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Checks that records and acknowledgements may be added now.
    ///
    /// # Errors
    /// An error that the transaction has met, or that none is open.
    pub fn check_open(&self) -> Result<(), TxnError> {
        self.check()?;
        match self.state {
            State::Open => Ok(()),
            State::New => Err(wrong("call init_transactions and begin_transaction first")),
            State::Ready => Err(wrong("no transaction is open: call begin_transaction first")),
            _ => Err(wrong("the transaction is being committed or aborted")),
        }
    }

    /// The request of `init_transactions`.
    ///
    /// # Errors
    /// A dead producer, an open transaction.
    pub fn start_init(&mut self) -> Result<InitProducerIdRequest, TxnError> {
        match &self.state {
            State::New => Ok(self.init_request(ProducerIdentity::NONE)),
            State::Failed { over: true, .. } => Ok(self.init_request(self.identity)),
            State::Dead(error) => Err(error.clone()),
            State::Ready => Err(wrong("init_transactions was called before")),
            _ => Err(wrong("a transaction is open: commit or abort it")),
        }
    }

    fn init_request(&self, expected: ProducerIdentity) -> InitProducerIdRequest {
        InitProducerIdRequest {
            transactional_id: Some(self.id.clone()),
            transaction_timeout_ms: self.timeout_ms,
            producer_id: expected.id,
            producer_epoch: expected.epoch,
            ..InitProducerIdRequest::default()
        }
    }

    /// Takes the answer of InitProducerId, which begins a producer's life or gives it a new epoch after an abort.
    pub fn handle_init(&mut self, response: &InitProducerIdResponse) -> Verdict {
        if let State::Dead(error) = &self.state {
            return Verdict::Failed(error.clone());
        }
        let answer = errors::init(response.error_code);
        self.settle(answer, response.error_code, "initialising the transactional producer", |this| {
            this.identity = ProducerIdentity { id: response.producer_id, epoch: response.producer_epoch };
            this.finish();
        })
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// Wrong order of calls, earlier errors.
    pub fn begin(&mut self, now: Instant) -> Result<(), TxnError> {
        self.check()?;
        match self.state {
            State::Ready => {
                self.began = Some(now);
                self.state = State::Open;
                Ok(())
            }
            State::New => Err(wrong("call init_transactions first")),
            State::Ending { sent: true, commit: true } => Err(self.unknown_outcome()),
            _ => Err(wrong("a transaction is open: commit or abort it first")),
        }
    }

    /// Whether records may be produced to the partition now. On transaction.version 1 the partition must have been
    /// added first; it is then among the next [`Transaction::add_request`].
    pub fn admit(&mut self, topic: &Str, partition: i32) -> bool {
        if self.v2 {
            self.started = true;
            return true;
        }
        let key = (topic.clone(), partition);
        if self.added.contains(&key) {
            return true;
        }
        self.wanted.insert(key);
        false
    }

    /// Request that adds the partitions which records wait for; `None` where there are none.
    pub fn add_request(&mut self) -> Option<AddPartitionsToTxnRequest> {
        if self.wanted.is_empty() || !matches!(self.state, State::Open | State::Ending { sent: false, commit: true }) {
            return None;
        }
        // From here on the coordinator may know of the transaction, whatever becomes of the answer.
        self.started = true;
        let mut topics: BTreeMap<&Str, Vec<i32>> = BTreeMap::new();
        for (topic, partition) in &self.wanted {
            topics.entry(topic).or_default().push(*partition);
        }
        let row = |(name, partitions): (&Str, Vec<i32>)| AddPartitionsToTxnTopic {
            name: name.clone(),
            partitions,
            ..AddPartitionsToTxnTopic::default()
        };
        Some(AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.id.clone(),
            v3_and_below_producer_id: self.identity.id,
            v3_and_below_producer_epoch: self.identity.epoch,
            v3_and_below_topics: topics.into_iter().map(row).collect(),
            ..AddPartitionsToTxnRequest::default()
        })
    }

    /// Takes the answer to [`Transaction::add_request`]. Partitions that were added before stay in the transaction
    /// whatever it says.
    pub fn handle_added(&mut self, response: &AddPartitionsToTxnResponse) -> Verdict {
        if let Err(error) = self.check() {
            return Verdict::Failed(error);
        }
        let mut worst: Option<(Answer, ErrorCode, String)> = None;
        for topic in &response.results_by_topic_v3_and_below {
            for p in &topic.results_by_partition {
                let code = p.partition_error_code;
                let key = (topic.name.detached(), p.partition_index);
                if code.is_ok() {
                    self.wanted.remove(&key);
                    self.added.insert(key);
                    continue;
                }
                let answer = errors::add(code);
                if worst.as_ref().is_none_or(|(w, ..)| answer > *w) {
                    worst = Some((answer, code, format!("adding {}-{} to the transaction", key.0, key.1)));
                }
            }
        }
        match worst {
            None => Verdict::Done,
            Some((answer, code, what)) => self.settle(answer, code, what, |_| {}),
        }
    }

    /// Something was sent to a broker that makes it join the transaction (acknowledgements).
    pub fn handle_joined(&mut self) {
        self.started = true;
    }

    /// Whether an end must be told to the coordinator.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Starts a commit. Records still waiting to be sent must be sent before its request.
    ///
    /// # Errors
    /// No open transaction, or one that can only be aborted.
    pub fn start_commit(&mut self) -> Result<(), TxnError> {
        self.check()?;
        match self.state {
            State::Open => {
                self.state = State::Ending { commit: true, sent: false };
                Ok(())
            }
            State::Ending { commit: true, .. } => Ok(()),
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
            State::Ending { commit: true, sent: true } => Err(self.unknown_outcome()),
            State::Failed { over: true, .. } | State::Ending { commit: false, .. } => Ok(()),
            State::Open | State::Failed { over: false, .. } | State::Ending { commit: true, sent: false } => {
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
        match &mut self.state {
            State::Failed { over: true, .. } => Ok(End::NewEpoch(self.init_request(self.identity))),
            State::Ending { .. } if !self.started && !self.needs_epoch => {
                self.finish();
                Ok(End::Nothing)
            }
            State::Ending { commit: false, .. } if !self.started => Ok(End::NewEpoch(self.init_request(self.identity))),
            State::Ending { commit, sent } => {
                *sent = true;
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
        let code = response.error_code;
        let what = if commit { "committing the transaction" } else { "aborting the transaction" };
        let mut answer = errors::end(code, commit);
        if answer == Answer::Fenced && self.timed_out(now) {
            // The coordinator fences a producer whose transaction it aborts for its age. Whether it was another
            // producer instead, the request for a new epoch will tell.
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

    fn timed_out(&self, now: Instant) -> bool {
        let limit = Duration::from_millis(u64::try_from(self.timeout_ms).unwrap_or(0));
        self.began.is_some_and(|began| now.saturating_duration_since(began) >= limit)
    }

    /// Whether the abort that has just succeeded needs [`Transaction::end`] once more, for a new epoch.
    #[must_use]
    pub fn needs_new_epoch(&self) -> bool {
        matches!(self.state, State::Failed { over: true, .. })
    }

    /// The caller's deadline passed before the end was known. The error to give: only the same call may follow.
    pub fn handle_end_given_up(&mut self, why: &str) -> TxnError {
        match self.state {
            State::Ending { commit: true, sent: true } => {
                let error = self.unknown_outcome();
                TxnError { text: format!("{} ({why})", error.text), ..error }
            }
            _ => TxnError::new(TxnErrorKind::Retriable, format!("the transaction has not ended in time: {why}")),
        }
    }

    /// Whether a commit may have reached the coordinator already, by an earlier try.
    #[must_use]
    pub fn may_be_committed(&self) -> bool {
        matches!(self.state, State::Ending { commit: true, sent: true })
    }

    /// The request was certainly not sent, so its outcome is not in doubt.
    pub fn handle_end_unsent(&mut self) {
        if let State::Ending { sent, .. } = &mut self.state {
            *sent = false;
        }
    }

    fn unknown_outcome(&self) -> TxnError {
        let text = "whether the transaction was committed is not known: only commit_transaction may be called again, \
                    or this producer be closed and a new one with the same transactional id be initialised";
        TxnError::new(TxnErrorKind::OutcomeUnknown, text)
    }

    /// Something in the transaction failed; it can only be aborted. `needs_epoch`: sequences are in doubt.
    pub fn fail(&mut self, error: TxnError, needs_epoch: bool) {
        self.needs_epoch |= needs_epoch;
        match (&self.state, error.kind) {
            (State::Dead(_), _) => {}
            (_, TxnErrorKind::Fatal | TxnErrorKind::Fenced) => self.state = State::Dead(error),
            (State::Open | State::Ending { commit: true, sent: false }, _) => {
                self.state = State::Failed { error, over: false };
            }
            _ => {}
        }
    }

    fn finish(&mut self) {
        self.state = State::Ready;
        self.added.clear();
        self.wanted.clear();
        self.started = false;
        self.began = None;
        self.needs_epoch = false;
    }

    fn settle(
        &mut self,
        answer: Answer,
        code: ErrorCode,
        what: impl std::fmt::Display,
        done: impl FnOnce(&mut Self),
    ) -> Verdict {
        let error = |kind, more: &str| {
            let text = format!("{what}: {code}: {}{more}", code.about());
            TxnError { kind, code: Some(code), text }
        };
        match answer {
            Answer::Done => {
                done(self);
                Verdict::Done
            }
            Answer::Retry => Verdict::Retry(code),
            Answer::Aborted => {
                let error = error(TxnErrorKind::Aborted, "; not committed: the transaction was aborted before");
                self.state = State::Failed { error: error.clone(), over: true };
                Verdict::Failed(error)
            }
            Answer::Abort => {
                let error = error(TxnErrorKind::Abortable, "");
                if matches!(self.state, State::Ending { sent: true, .. }) {
                    self.state = State::Failed { error: error.clone(), over: false };
                }
                self.fail(error.clone(), false);
                Verdict::Failed(error)
            }
            Answer::AbortWithNewEpoch => {
                let error = error(TxnErrorKind::Abortable, "");
                self.state = State::Failed { error: error.clone(), over: true };
                Verdict::Failed(error)
            }
            Answer::Fenced => {
                self.die(error(TxnErrorKind::Fenced, "; another producer with this transactional id took over"))
            }
            Answer::Fatal => self.die(error(TxnErrorKind::Fatal, "")),
        }
    }

    fn die(&mut self, error: TxnError) -> Verdict {
        self.state = State::Dead(error.clone());
        Verdict::Failed(error)
    }
}

fn wrong(text: &str) -> TxnError {
    TxnError::new(TxnErrorKind::WrongOrder, text)
}

#[cfg(test)]
mod tests;
