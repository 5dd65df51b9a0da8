//! A transactional producer's life with its coordinator (KIP-98, KIP-360, KIP-890): which call is allowed when, which
//! request it makes, and what each answer means.
//!
//! The caller sends the requests that the machine makes, again for as long as the answer's [`Verdict`] is `Retry` and
//! its own deadline has not passed; then it tells so with [`Transaction::handle_end_given_up`].

mod checkpoints;
mod contended;
mod ending;
mod errors;
mod prepared;

pub use checkpoints::{CheckpointError, CheckpointState, Checkpoints, MAX_POOL};
pub(crate) use contended::FENCED;
pub use errors::{TxnError, TxnErrorKind, Verdict};
pub use prepared::{DamagedTransaction, PreparedTransaction};

use errors::Answer;
use kafka_share_messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_share_messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, EndTxnRequest, ErrorCode, InitProducerIdRequest,
    InitProducerIdResponse,
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
    /// All is with the brokers; only the end may follow.
    Prepared,
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
    /// A commit was refused, and how the transaction ended is found elsewhere.
    Judging {
        error: TxnError,
        step: contended::Judging,
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
    /// Another process sent the records: their sequence numbers are not known here.
    resumed: bool,
    /// When the coordinator aborts a resumed transaction, as its papers say.
    expires_ms: Option<i64>,
    /// The last end was sent and is not answered.
    awaited: bool,
    /// A commit may have taken effect though it was not confirmed: no answer came, or that of a coordinator which lost its
    /// place meanwhile.
    doubt: bool,
    /// The coordinator keeps transactions until they are ended (KIP-939).
    two_phase_commit: bool,
    contention: contended::Contention,
}

/// What ends a transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The coordinator knows nothing of it; it is over.
    Nothing,
    /// Send this to the coordinator.
    EndTxn(EndTxnRequest),
    /// The coordinator has ended it already; send this, to go on with a new epoch. Where [`Transaction::is_judging`] says so
    /// that is not all.
    NewEpoch(InitProducerIdRequest),
    /// The coordinator cannot tell how it ended. Who can is to be asked, and the answer goes to
    /// [`Transaction::handle_verdict`].
    Verdict,
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
            resumed: false,
            expires_ms: None,
            awaited: false,
            doubt: false,
            two_phase_commit: false,
            contention: contended::Contention::default(),
        }
    }

    /// Asks the coordinator for transactions without a time limit (KIP-939, `transaction.two.phase.commit.enable`).
    #[must_use]
    pub fn with_two_phase_commit(mut self, on: bool) -> Self {
        self.two_phase_commit = on;
        self
    }

    /// Whether transactions have no time limit.
    #[must_use]
    pub fn is_two_phase_commit(&self) -> bool {
        self.two_phase_commit
    }

    /// One that another process prepared, and that only its end is missing to.
    #[must_use]
    pub fn resumed(prepared: &PreparedTransaction, timeout_ms: i32) -> Self {
        Transaction {
            state: State::Prepared,
            identity: prepared.identity,
            v2: prepared.v2,
            started: prepared.started,
            resumed: true,
            expires_ms: Some(prepared.expires_ms),
            ..Transaction::new(Str::from(prepared.transactional_id.as_str()), timeout_ms)
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

    /// Age at which the coordinator aborts the transaction.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.timeout_ms).unwrap_or(0))
    }

    /// Whether the transactional id must be initialised before anything else.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.state == State::New
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
        !matches!(self.state, State::New | State::Ready | State::Dead(_))
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

    /// Whether the open transaction was prepared, so that only its end may follow.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.state == State::Prepared
    }

    /// When the open transaction was begun here.
    #[must_use]
    pub fn began(&self) -> Option<Instant> {
        self.began
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
            State::Prepared => Err(wrong("the transaction is prepared: it can only be committed or aborted")),
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
            enable2_pc: self.two_phase_commit,
            ..InitProducerIdRequest::default()
        }
    }

    /// The request that takes over what a former producer of this transactional id prepared (KIP-939): it fences that
    /// producer and leaves its transaction open.
    ///
    /// # Errors
    /// Anything but a producer that has not spoken to its coordinator yet.
    pub fn start_takeover(&mut self) -> Result<InitProducerIdRequest, TxnError> {
        let request = self.start_init()?;
        match self.state {
            State::New => Ok(InitProducerIdRequest { keep_prepared_txn: true, ..request }),
            _ => Err(wrong("this producer was initialised before")),
        }
    }

    /// Takes the answer to [`Transaction::start_takeover`]. Afterwards the transaction is prepared, or there was none and
    /// the producer is initialised.
    pub fn handle_takeover(&mut self, response: &InitProducerIdResponse) -> Verdict {
        let verdict = self.handle_init(response);
        if verdict == Verdict::Done && response.ongoing_txn_producer_id >= 0 {
            self.state = State::Prepared;
            self.started = true;
            self.resumed = true;
        }
        verdict
    }

    /// Takes the answer of InitProducerId, which begins a producer's life or gives it a new epoch after an abort.
    pub fn handle_init(&mut self, response: &InitProducerIdResponse) -> Verdict {
        if let State::Dead(error) = &self.state {
            return Verdict::Failed(error.clone());
        }
        if let Some(verdict) = self.handle_contended_init(response) {
            return verdict;
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
            State::Ending { sent: true, commit: true } | State::Judging { .. } => Err(self.unknown_outcome()),
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

    /// Something in the transaction failed; it can only be aborted. `needs_epoch`: sequences are in doubt.
    pub fn fail(&mut self, error: TxnError, needs_epoch: bool) {
        self.needs_epoch |= needs_epoch;
        let error = self.soften(error);
        match (&self.state, error.kind) {
            (State::Dead(_), _) => {}
            (_, TxnErrorKind::Fatal | TxnErrorKind::Fenced) => self.state = State::Dead(error),
            (State::Open | State::Prepared | State::Ending { commit: true, sent: false }, _) => {
                self.state = State::Failed { error, over: false };
            }
            _ => {}
        }
    }

    /// Batches that had their sequence numbers were given up: the numbers begin anew after the abort.
    pub fn doubt_sequences(&mut self) {
        self.needs_epoch |= self.is_unfinished();
    }

    fn finish(&mut self) {
        self.state = if std::mem::take(&mut self.resumed) { State::New } else { State::Ready };
        self.added.clear();
        self.wanted.clear();
        self.started = false;
        self.began = None;
        self.needs_epoch = false;
        self.expires_ms = None;
        self.doubt = false;
        self.contention.finish();
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
                let error = self.soften(error(TxnErrorKind::Fenced, self.fenced_by()));
                let unended = matches!(self.state, State::Open | State::Ending { sent: false, .. });
                if error.kind == TxnErrorKind::Fenced || !unended {
                    return self.die(TxnError { kind: TxnErrorKind::Fenced, ..error });
                }
                self.fail(error.clone(), false);
                Verdict::Failed(error)
            }
            Answer::Fatal => self.die(error(TxnErrorKind::Fatal, "")),
        }
    }

    fn fenced_by(&self) -> &'static str {
        match self.may_have_ended() {
            false => FENCED,
            true => {
                "; the transaction has ended before, and whether it was committed is not known: the coordinator aborted it \
                 for its age, or this transactional id was initialised or expired after it was ended"
            }
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
