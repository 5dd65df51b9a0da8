//! What a share consumer's handles and its driver share: the machine behind a mutex, and two bells.

use super::builder::{AcknowledgementMode, OutcomeCallback};
use super::ledger::{LedgerLink, Look, Member};
use super::metrics::Metrics;
use super::outcomes::{CommitOutcomes, OutcomeQueue};
use super::owned::OwnedShareRecord;
use super::records::{RecordId, ShareRecords};
use crate::acknowledgements::ShareGroupMetadata;
use crate::ledger::LedgerSettings;
use crate::net::{Cluster, SessionOwner};
use crate::{Error, ErrorKind, Result};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_acks::{AckError, AckOutcome, AckType, Outcome, RecordHandle};
use kafka_share_core::share_consumer::{Chunk, CommitResult, ConsumerEvent, ShareConsumer, Standings};
use kafka_share_core::share_fetch::DecodeLimits;
use kafka_share_wire::Str;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Errors kept for the next poll.
const MAX_ERRORS: usize = 16;

static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Shared {
    pub(super) cluster: Arc<Cluster>,
    /// Whose session connections these are.
    pub(super) owner: SessionOwner,
    pub(super) mode: AcknowledgementMode,
    /// Different for every consumer of this process.
    pub(super) number: u32,
    pub(super) decode_limits: DecodeLimits,
    /// For log lines and spans.
    pub(super) group_id: Str,
    pub(super) member_id: Str,
    /// Whether locks are renewed unasked.
    pub(super) renews: bool,
    /// Whether looking for a topic may create it.
    pub(super) creates_topics: bool,
    /// Whether the driver has something to do when records were handed out.
    eager: bool,
    pub(super) metrics: Metrics,
    pub(super) ledger: LedgerLink,
    machine: Mutex<ShareConsumer>,
    /// Rung when the driver has something to do.
    driver: Notify,
    /// Rung when the application may have something to hear.
    app: Notify,
    inbox: Mutex<Inbox>,
    polling: AtomicBool,
    wakeup: AtomicBool,
    /// The driver is gone.
    pub(super) stopped: AtomicBool,
    closing: AtomicBool,
}

// Every record of a poll leads here: settings and buffers have no place in the log line of a record.
impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShareConsumer").field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// What waits for the application.
#[derive(Default)]
pub(super) struct Inbox {
    errors: VecDeque<Error>,
    outcomes: OutcomeQueue,
    pub(super) callback: Option<OutcomeCallback>,
    /// What the callback has not been told yet.
    pub(super) untold: VecDeque<AckOutcome>,
    /// Some task is in the callback.
    pub(super) telling: bool,
}

/// What a builder hands over beside the machine.
pub(super) struct Options {
    pub(super) mode: AcknowledgementMode,
    pub(super) decode_limits: DecodeLimits,
    pub(super) renews: bool,
    pub(super) prefetches: bool,
    pub(super) callback: Option<OutcomeCallback>,
    pub(super) creates_topics: bool,
    pub(super) ledger: LedgerSettings,
}

impl Shared {
    /// All metrics at this moment.
    pub(super) fn snapshot(&self) -> crate::MetricsSnapshot {
        let done = self.with(|m, _| m.settled_elsewhere());
        self.metrics.snapshot(self.ledger.counts(done))
    }

    pub(super) fn new(cluster: Arc<Cluster>, machine: ShareConsumer, options: Options) -> Self {
        Shared {
            owner: cluster.new_session_owner(),
            cluster,
            mode: options.mode,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            decode_limits: options.decode_limits,
            group_id: machine.membership().group_id().clone(),
            member_id: machine.membership().member_id().clone(),
            renews: options.renews,
            creates_topics: options.creates_topics,
            eager: options.renews || options.prefetches,
            metrics: Metrics::default(),
            ledger: LedgerLink::new(options.ledger),
            machine: Mutex::new(machine),
            driver: Notify::new(),
            app: Notify::new(),
            inbox: Mutex::new(Inbox { callback: options.callback, ..Inbox::default() }),
            polling: AtomicBool::new(false),
            wakeup: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        }
    }

    /// Runs `f` on the machine, for a moment.
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut ShareConsumer, Instant) -> T) -> T {
        let mut machine = self.machine();
        let result = f(&mut machine, Instant::now());
        let told = self.collect(&mut machine);
        self.unlock(machine);
        if told {
            self.tell_outcomes();
            self.wake_app();
        }
        result
    }

    fn machine(&self) -> MutexGuard<'_, ShareConsumer> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unlock(&self, mut machine: MutexGuard<'_, ShareConsumer>) {
        let news = machine.take_ack_news();
        drop(machine);
        if news {
            // Their age limit is a deadline that the driver does not know of yet.
            self.wake_driver();
        }
    }

    /// Moves what the machine has to say to where the application finds it.
    /// Answers whether there was anything for the application to hear.
    fn collect(&self, machine: &mut ShareConsumer) -> bool {
        let mut inbox = None;
        let mut any = false;
        while let Some(event) = machine.poll_event() {
            let error = match event {
                ConsumerEvent::Error(code, text) => Error::broker(code, text, None),
                ConsumerEvent::Failed(text) => Error::new(ErrorKind::Unsupported, text),
                ConsumerEvent::LeaderHint(tp, leader, nodes) => {
                    self.cluster.hint_leader(tp, leader, nodes);
                    continue;
                }
                ConsumerEvent::Corrupt(tp, batch) => {
                    tracing::error!(
                        topic_id = %tp.topic_id, partition = tp.partition, first_offset = batch.first_offset,
                        last_offset = batch.last_offset, error = %batch.error, "corrupt record batch rejected"
                    );
                    continue;
                }
                ConsumerEvent::NotAskedFor(broker, tp) => {
                    tracing::error!(
                        broker, topic_id = %tp.topic_id, partition = tp.partition,
                        "the broker answered for a partition that is not in the share session; ignored"
                    );
                    continue;
                }
                other => {
                    tracing::warn!(event = ?other, "share group membership was lost; joining again");
                    continue;
                }
            };
            let inbox: &mut MutexGuard<'_, Inbox> = inbox.get_or_insert_with(|| self.inbox());
            any = true;
            if inbox.errors.len() < MAX_ERRORS {
                inbox.errors.push_back(error);
            }
        }
        while let Some(outcome) = machine.poll_outcome() {
            any = true;
            self.metrics.acknowledged(&outcome);
            let inbox: &mut MutexGuard<'_, Inbox> = inbox.get_or_insert_with(|| self.inbox());
            let has_callback = inbox.callback.is_some();
            if has_callback {
                inbox.untold.push_back(outcome.clone());
            }
            if inbox.outcomes.push(outcome, has_callback) {
                self.metrics.outcome_dropped();
            }
        }
        drop(inbox);
        while let Some(outcome) = machine.poll_quiet_outcome() {
            self.ledger.note(&outcome);
        }
        any
    }

    /// Has the next poll return an error.
    pub(super) fn report(&self, error: Error) {
        let mut inbox = self.inbox();
        // Several requests may have failed for one reason.
        let known = inbox
            .errors
            .back()
            .is_some_and(|last| last.kind() == error.kind() && last.to_string() == error.to_string());
        if !known && inbox.errors.len() < MAX_ERRORS {
            inbox.errors.push_back(error);
        }
    }

    pub(super) fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake_driver(&self) {
        self.driver.notify_one();
    }

    pub(super) fn wake_app(&self) {
        self.app.notify_waiters();
    }

    pub(super) async fn driver_woken(&self) {
        self.driver.notified().await;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub(super) fn check_open(&self) -> Result<()> {
        if self.stopped.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the share consumer has stopped"));
        }
        if self.is_closing() {
            return Err(Error::new(ErrorKind::Closed, "the share consumer is closed"));
        }
        Ok(())
    }

    /// Waits until `check` answers, is asked again at every ring, and gives up at `deadline`.
    pub(super) async fn wait<T>(&self, deadline: Instant, mut check: impl FnMut() -> Option<T>) -> Option<T> {
        let sleep = tokio::time::sleep_until(deadline.into());
        tokio::pin!(sleep);
        loop {
            let rung = self.app.notified();
            tokio::pin!(rung);
            // From here on no ring is missed, so the check must come after.
            rung.as_mut().enable();
            if let Some(answer) = check() {
                return Some(answer);
            }
            tokio::select! {
                () = rung => {}
                () = &mut sleep => return check(),
            }
        }
    }

    pub(super) async fn poll(self: &Arc<Self>, timeout: Duration) -> Result<ShareRecords> {
        let _guard = self.start_poll()?;
        let deadline = deadline_in(timeout);
        let answer = self.wait(deadline, || self.poll_now()).await;
        match answer {
            Some(Ok(records)) => Ok(records),
            Some(Err(error)) => Err(error),
            None => Ok(ShareRecords::empty(Arc::clone(self))),
        }
    }

    /// Begins a poll: nobody else may, and in implicit mode what was handed out is accepted.
    pub(super) fn start_poll(&self) -> Result<PollGuard<'_>> {
        self.check_not_in_callback("poll")?;
        if self.polling.swap(true, Ordering::AcqRel) {
            return Err(Error::new(ErrorKind::InvalidState, "another task polls this share consumer"));
        }
        let guard = PollGuard(self);
        self.check_open()?;
        self.metrics.poll_started();
        self.with(|m, now| m.accept_delivered(now));
        Ok(guard)
    }

    fn poll_now(self: &Arc<Self>) -> Option<Result<ShareRecords>> {
        let taken = self.take_now(|m, now, look| {
            let chunks = m.take_up_to(now, usize::MAX, look);
            let name = |c: &Chunk| m.topic_name(c.tp().topic_id).cloned().unwrap_or_default();
            let names: Vec<_> = chunks.iter().map(name).collect();
            (!chunks.is_empty()).then_some((chunks, names))
        })?;
        Some(taken.map(|(chunks, names)| {
            let records = ShareRecords::new(Arc::clone(self), chunks, names);
            self.metrics.consumed(records.len());
            records
        }))
    }

    /// The next record by itself. Allocates nothing where one waits in the buffer.
    pub(super) fn next_now(&self) -> Option<Result<OwnedShareRecord>> {
        let taken = self.take_now(|m, now, look| {
            let chunk = m.take_one(now, look)?;
            let name = m.topic_name(chunk.tp().topic_id).cloned().unwrap_or_default();
            let entry = *chunk.entries().first()?;
            Some(OwnedShareRecord::new(name, self.number, chunk, entry))
        })?;
        Some(taken.inspect(|_| self.metrics.consumed(1)))
    }

    /// What a poll returns at this moment; `None` where it has to wait.
    fn take_now<T>(
        &self,
        take: impl FnOnce(&mut ShareConsumer, Instant, Option<&dyn Standings>) -> Option<T>,
    ) -> Option<Result<T>> {
        if self.wakeup.swap(false, Ordering::AcqRel) {
            return Some(Err(Error::new(ErrorKind::Wakeup, "poll was ended by wakeup()")));
        }
        if let Some(error) = self.inbox().errors.pop_front() {
            return Some(Err(error));
        }
        if let Err(error) = self.check_open() {
            return Some(Err(error));
        }
        if let Some(error) = self.failure() {
            return Some(Err(error));
        }
        let tail = self.ledger.tail();
        let (taken, news) = self.with(|m, now| {
            if let Some(Err(error)) = tail.as_ref().map(|tail| self.check_ledger(tail, m)) {
                return (Err(error), false);
            }
            let before = (m.is_waiting(), m.has_records());
            let look = tail.as_deref().map(Look);
            let taken = take(m, now, look.as_ref().map(|look| look as &dyn Standings));
            // What waits for another's transaction is followed up by the driver.
            let waits = tail.is_some() && taken.is_none();
            (Ok(taken), waits || before != (m.is_waiting(), m.has_records()))
        });
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => return Some(Err(error)),
        };
        // An empty-handed poll rings only where the driver has something to plan now: it rings back, and the two would keep
        // each other awake.
        if if taken.is_none() { news } else { self.eager } {
            self.wake_driver();
        }
        taken.map(Ok)
    }

    /// Why nothing can come until the next subscription.
    pub(super) fn failure(&self) -> Option<Error> {
        self.with(|m, _| m.failure().map(|(code, text)| Error::broker(*code, text, None)))
    }

    pub(super) fn wakeup(&self) {
        self.wakeup.store(true, Ordering::Release);
        self.wake_app();
    }

    fn check_explicit(&self) -> Result<()> {
        if self.mode == AcknowledgementMode::Implicit {
            let text = "share.acknowledgement.mode is implicit: records are accepted by the next poll; set it to explicit to acknowledge one by one";
            return Err(Error::new(ErrorKind::InvalidState, text));
        }
        Ok(())
    }

    pub(super) fn acknowledge(&self, id: RecordId, ack: AckType) -> Result<()> {
        self.check_explicit()?;
        let handle = self.own(id)?;
        let mut machine = self.machine();
        let result = machine.acknowledge_by(handle, ack, Instant::now);
        // It has nothing to tell beside, so that there is nothing to collect.
        self.unlock(machine);
        result.map_err(ack_error)
    }

    pub(super) fn extend_lock(&self, id: RecordId) -> Result<()> {
        let handle = self.own(id)?;
        self.with(|m, now| m.extend_lock(now, handle)).map_err(ack_error)
    }

    pub(super) fn extend_locks(&self, records: &ShareRecords) -> Result<usize> {
        if records.shared().number != self.number {
            return Err(ack_error(AckError::NotHeld));
        }
        Ok(self.with(|m, now| m.extend_chunks(now, records.chunks())))
    }

    /// Handle of a record that this consumer delivered.
    pub(super) fn own(&self, id: RecordId) -> Result<RecordHandle> {
        if id.consumer == self.number { Ok(id.handle) } else { Err(ack_error(AckError::NotHeld)) }
    }

    pub(super) fn acknowledge_offset(&self, topic: &str, partition: i32, offset: i64, ack: AckType) -> Result<()> {
        self.check_explicit()?;
        let known = self.cluster.cached_topic(topic);
        let Some(topic_id) = known.map(|t| t.id) else {
            return Err(ack_error(AckError::NotHeld).context(format!("{topic}-{partition}@{offset}")));
        };
        let tp = TopicIdPartition { topic_id, partition };
        let result = self.with(|m, now| m.acknowledge_offset(now, tp, offset, ack));
        result.map_err(|e| ack_error(e).context(format!("{topic}-{partition}@{offset}")))
    }

    pub(super) fn acknowledge_all(&self, records: &ShareRecords, ack: AckType) -> Result<usize> {
        self.check_explicit()?;
        if records.shared().number != self.number {
            return Err(ack_error(AckError::NotHeld));
        }
        // None would be taken, without a word on why.
        if self.stopped.load(Ordering::Acquire) {
            return Err(self.closed_error());
        }
        self.with(|m, now| m.acknowledge_chunks(now, records.chunks(), ack)).map_err(ack_error)
    }

    pub(super) async fn commit_sync(self: &Arc<Self>, timeout: Duration) -> Result<CommitOutcomes> {
        self.check_not_in_callback("commit_sync")?;
        self.check_open()?;
        let deadline = deadline_in(timeout);
        let id = self.with(|m, now| {
            m.accept_delivered(now);
            m.commit(deadline)
        });
        self.wake_driver();
        let guard = CommitGuard { shared: self, id };
        let mut done = None;
        let ended = self
            .wait(deadline, || {
                done = done.take().or_else(|| self.with(|m, _| m.poll_commit(id)));
                let stopped = done.is_none() && self.stopped.load(Ordering::Acquire);
                // The callback has run by the time the commit returns.
                (stopped || done.is_some() && self.all_told()).then_some(stopped)
            })
            .await;
        drop(guard);
        match (done, ended) {
            (Some(result), _) => Ok(self.name_outcomes(result)),
            (None, Some(_)) => Err(self.closed_error()),
            (None, None) => Err(Error::new(
                ErrorKind::Timeout,
                "acknowledgements were not confirmed within the time limit; they are still being sent",
            )),
        }
    }

    fn closed_error(&self) -> Error {
        Error::new(ErrorKind::Closed, "the share consumer has stopped")
    }

    fn name_outcomes(&self, result: CommitResult) -> CommitOutcomes {
        let name = |tp: TopicIdPartition| {
            let name = self.with(|m, _| m.topic_name(tp.topic_id).map(ToString::to_string));
            name.unwrap_or_else(|| tp.topic_id.to_string())
        };
        result
            .into_iter()
            .map(|(tp, outcome): (TopicIdPartition, Outcome)| ((name(tp), tp.partition), outcome))
            .collect()
    }

    pub(super) fn commit_async(&self) -> Result<()> {
        self.check_open()?;
        self.with(|m, now| {
            m.accept_delivered(now);
            let id = m.commit(now + self.cluster.config().default_api_timeout);
            m.forget_commit(id);
        });
        self.wake_driver();
        Ok(())
    }

    pub(super) fn take_outcomes(&self) -> Vec<AckOutcome> {
        self.inbox().outcomes.take()
    }

    /// The next outcome; `None` once the consumer has stopped and all are told.
    pub(super) async fn next_outcome(&self) -> Option<AckOutcome> {
        let never = deadline_in(Duration::MAX);
        let next = || {
            let outcome = self.inbox().outcomes.pop_front();
            (outcome.is_some() || self.stopped.load(Ordering::Acquire)).then_some(outcome)
        };
        self.wait(never, next).await.flatten()
    }

    pub(super) fn group_metadata(self: &Arc<Self>) -> Result<ShareGroupMetadata> {
        self.with(|m, _| {
            let membership = m.membership();
            if !membership.is_joined() {
                let text =
                    format!("the consumer is not a member of share group {:?} at the moment", membership.group_id());
                return Err(Error::new(ErrorKind::InvalidState, text));
            }
            let (group, member) = (membership.group_id().as_str(), membership.member_id().as_str());
            let metadata = ShareGroupMetadata::new(group, member, membership.epoch());
            Ok(metadata.of_member(Arc::new(Member(Arc::clone(self)))))
        })
    }

    pub(super) async fn close(&self, timeout: Duration) -> Result<()> {
        self.check_not_in_callback("close")?;
        self.abandon();
        let closed = || (self.stopped.load(Ordering::Acquire) || self.with(|m, _| m.is_closed())).then_some(());
        match self.wait(deadline_in(timeout), closed).await {
            Some(()) => Ok(()),
            None => Err(Error::new(
                ErrorKind::Timeout,
                "not every broker confirmed the close within the time limit; share sessions end by themselves",
            )),
        }
    }

    /// Starts closing without waiting for it.
    pub(super) fn abandon(&self) {
        self.closing.store(true, Ordering::Release);
        self.with(|m, now| m.close(now));
        self.wake_driver();
        self.wake_app();
    }
}

/// Makes an [`AckError`] the client's error.
pub(super) fn ack_error(error: AckError) -> Error {
    let kind = match error {
        AckError::LockLost => ErrorKind::Fenced,
        AckError::NoRenewal => ErrorKind::Unsupported,
        _ => ErrorKind::InvalidState,
    };
    Error::new(kind, error.to_string())
}

pub(super) struct PollGuard<'a>(&'a Shared);

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        self.0.with(|m, _| m.stop_waiting());
        self.0.metrics.poll_ended();
        self.0.polling.store(false, Ordering::Release);
    }
}

struct CommitGuard<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for CommitGuard<'_> {
    fn drop(&mut self) {
        self.shared.with(|m, _| m.forget_commit(self.id));
    }
}

pub(super) fn deadline_in(timeout: Duration) -> Instant {
    // A timeout of years is as good as none and must not overflow the clock.
    Instant::now() + timeout.min(Duration::from_secs(365 * 86_400))
}
