//! The acknowledgement ledger behind a share consumer: records are looked up before they are handed out, and what a
//! transaction has committed is told to the broker and back to the ledger.

use super::shared::Shared;
use super::staged;
use crate::acknowledgements::{ShareAcknowledgements, StagedPart};
use crate::ledger::{AckBackendChoice, LedgerMember, LedgerSettings, LedgerTopic, Tail};
use crate::producer::transactional_acknowledgements_offered;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::ledger::Run;
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_acks::{Outcome, QuietOutcome};
use kafka_share_core::share_consumer::{ShareConsumer, Standings};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Between two looks for a ledger that cannot be used.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A consumer's link to its ledger.
#[derive(Debug, Default)]
pub(super) struct LedgerLink {
    settings: LedgerSettings,
    tail: Mutex<Option<Arc<Tail>>>,
    /// Whether there is a tail, to be asked for every record.
    attached: AtomicBool,
    /// Whether acknowledgements go by the ledger alone, as far as is known.
    alone: AtomicBool,
    confirmed: AtomicU64,
    failed: AtomicU64,
}

impl LedgerLink {
    pub(super) fn new(settings: LedgerSettings) -> Self {
        let alone = AtomicBool::new(settings.is_ledger_only());
        LedgerLink { settings, alone, ..LedgerLink::default() }
    }

    /// Whether it is looked for before the first record is asked for.
    pub(super) fn is_wanted(&self) -> bool {
        let backend = self.settings.backend;
        matches!(backend, Some(AckBackendChoice::Ledger | AckBackendChoice::Both | AckBackendChoice::Auto))
    }

    /// The reader of the group's partition, where there is one.
    pub(super) fn tail(&self) -> Option<Arc<Tail>> {
        if !self.attached.load(Ordering::Acquire) {
            return None;
        }
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the group has left the ledger, and this consumer has not: what it processes could not be committed, and each try
    /// would cost its records a delivery.
    fn is_left_behind(&self, tail: &Tail) -> bool {
        self.alone.load(Ordering::Acquire) && tail.with(|r| r.has_left())
    }

    /// Nobody reads any more, but for transactions that are being committed.
    pub(super) fn detach(&self) {
        drop(self.tail.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// What the broker made of an acknowledgement that the application is not told of.
    pub(super) fn note(&self, outcome: &QuietOutcome) {
        let offsets = outcome.last_offset.abs_diff(outcome.first_offset) + 1;
        if outcome.outcome != Outcome::Acknowledged {
            self.failed.fetch_add(offsets, Ordering::Relaxed);
            tracing::debug!(
                topic_id = %outcome.tp.topic_id, partition = outcome.tp.partition, first_offset = outcome.first_offset,
                last_offset = outcome.last_offset, outcome = ?outcome.outcome,
                "the broker did not take what is acknowledged in the ledger; whoever gets the records again finds it there"
            );
            return;
        }
        self.confirmed.fetch_add(offsets, Ordering::Relaxed);
        if let Some(tail) = self.tail() {
            tail.with(|r| r.handle_confirmed(outcome.tp, outcome.first_offset, outcome.last_offset));
        }
    }

    /// What the metrics tell, in their order; `done`: records that others had done.
    pub(super) fn counts(&self, done: u64) -> [u64; 5] {
        let (fences, restarts) = self.tail().map_or((0, 0), |tail| tail.counters().read());
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [done, read(&self.confirmed), read(&self.failed), fences, restarts]
    }
}

/// Looks records up one run at a time.
pub(super) struct Look<'a>(pub(super) &'a Tail);

impl Standings for Look<'_> {
    fn standings(&self, tp: TopicIdPartition, first: i64, last: i64) -> Vec<Run> {
        self.0.with(|r| r.standings(tp, first, last))
    }
}

/// A consumer, for those who commit its acknowledgements by the ledger.
#[derive(Debug, Clone)]
pub(super) struct Member(pub(super) Arc<Shared>);

impl LedgerMember for Member {
    fn group(&self) -> &str {
        self.0.group_id.as_str()
    }

    fn attach(&self, topic: &Arc<LedgerTopic>, settings: &LedgerSettings) -> Result<Arc<Tail>> {
        self.0.attach_ledger(topic, settings)
    }

    fn needs_intent(&self) -> Option<bool> {
        self.0.ledger.tail().map(|tail| tail.with(|r| r.needs_intent()))
    }

    fn goes_by_ledger_alone(&self) {
        self.0.ledger.alone.store(true, Ordering::Release);
    }

    fn is_reading(&self) -> bool {
        self.0.ledger.tail().is_some_and(|tail| tail.with(|r| !r.is_caught_up()))
    }

    fn stage(&self, acks: &ShareAcknowledgements) -> Result<Box<dyn StagedPart>> {
        staged::stage_by_hand(&self.0, acks)
    }
}

impl Shared {
    /// The reader of the group's ledger partition; one is started where there is none.
    pub(super) fn attach_ledger(&self, topic: &Arc<LedgerTopic>, settings: &LedgerSettings) -> Result<Arc<Tail>> {
        let config = |text: String| Err(Error::new(ErrorKind::Config, text));
        if let Some(own @ (AckBackendChoice::Native | AckBackendChoice::None)) = self.ledger.settings.backend {
            return config(format!(
                "the producer's acknowledgements go by the ledger, and share.ack.transaction.backend of this consumer of share \
                 group {:?} is {own:?}: let both have the same",
                self.group_id.as_str()
            ));
        }
        if self.ledger.settings.backend == Some(AckBackendChoice::Both) && settings.is_ledger_only() {
            return config(format!(
                "share.ack.transaction.backend of this consumer of share group {:?} is both, and its producer's acknowledgements go \
                 by the ledger alone: let both have the same",
                self.group_id.as_str()
            ));
        }
        // With the machine held, so that no request goes out that the reader does not know of.
        let (tail, news) = self.with(|machine, _| {
            let mut slot = self.ledger.tail.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(tail) = slot.as_ref() {
                return Ok((Arc::clone(tail), false));
            }
            self.check_open()?;
            let asked = (machine.next_ask(), machine.lowest_ask());
            let tail = Tail::start(Arc::clone(&self.cluster), Arc::clone(topic), &self.group_id, settings, asked)?;
            machine.attach_ledger();
            *slot = Some(Arc::clone(&tail));
            self.ledger.attached.store(true, Ordering::Release);
            Ok::<_, Error>((tail, true))
        })?;
        if news {
            self.wake_driver();
        }
        if tail.topic().id != topic.id {
            return config(format!(
                "this consumer reads ledger topic {:?} and its producer writes {:?}: let share.ack.ledger.topic be the same",
                tail.topic().name,
                topic.name
            ));
        }
        Ok(tail)
    }

    /// Drops what does not count any more, and says why nothing can be handed out.
    pub(super) fn check_ledger(&self, tail: &Tail, machine: &mut ShareConsumer) -> Result<()> {
        if let Some(error) = tail.error() {
            return Err(error);
        }
        machine.drop_below(tail.with(|r| r.floor()));
        if self.ledger.is_left_behind(tail) {
            return Err(tail.left());
        }
        Ok(())
    }
}

/// What a search for the ledger has found: none, where the cluster has transactional acknowledgements of its own.
pub(super) type Found = Option<Arc<LedgerTopic>>;

/// The driver's eye on the ledger.
pub(super) struct Follower {
    news: Option<watch::Receiver<u64>>,
    /// Fetches wait until it is read.
    held: bool,
    searching: bool,
    failed: bool,
}

impl Follower {
    pub(super) fn new(shared: &Shared) -> Self {
        let held = shared.ledger.is_wanted();
        shared.with(|m, _| m.hold_fetches(held));
        Follower { news: None, held, searching: false, failed: false }
    }

    /// Looks for the ledger, where it is time to.
    pub(super) fn search(&mut self, shared: &Arc<Shared>) -> Option<impl Future<Output = Result<Found>> + use<>> {
        let idle = self.searching || self.news.is_some() || !self.held;
        if idle || shared.is_closing() || shared.with(|m, _| m.subscription().is_empty()) {
            return None;
        }
        self.searching = true;
        let (shared, pause) = (Arc::clone(shared), self.failed);
        Some(async move {
            if pause {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            look_for(&shared).await
        })
    }

    /// Takes what a search has found.
    pub(super) fn found(&mut self, shared: &Shared, found: Result<Found>) {
        self.searching = false;
        let result = match found {
            Ok(None) => {
                self.release(shared);
                Ok(())
            }
            Ok(Some(topic)) => shared.attach_ledger(&topic, &shared.ledger.settings).map(drop),
            Err(error) => Err(error),
        };
        self.failed = result.is_err();
        if let Err(error) = result {
            shared.report(error);
        }
    }

    fn release(&mut self, shared: &Shared) {
        self.held = false;
        shared.with(|m, _| m.hold_fetches(false));
    }

    /// Carries what the ledger says to the consumer, and what the consumer asks for to the ledger.
    pub(super) fn carry(&mut self, shared: &Shared) {
        let Some(tail) = shared.ledger.tail() else { return };
        let news = self.news.get_or_insert_with(|| {
            let mut news = tail.subscribe();
            news.mark_changed();
            news
        });
        let changed = news.has_changed().unwrap_or(false);
        if changed {
            // What comes from here on is news again; it may be in what is looked at below.
            news.mark_unchanged();
        }
        let (floor, caught_up) = tail.with(|r| (r.floor(), r.is_caught_up()));
        // What is asked for while the log is read from its start, again after a gap too, would be dropped.
        let hold = !caught_up || shared.ledger.is_left_behind(&tail);
        if self.held != hold {
            self.held = hold;
            shared.with(|m, _| m.hold_fetches(hold));
        }
        let (moved, lowest, lock, waiting) = shared.with(|m, _| {
            m.drop_below(floor);
            let moved = changed && m.ledger_moved();
            (moved, m.lowest_ask(), m.lock_timeout(), m.waiting_in_ledger().collect::<Vec<_>>())
        });
        let now = Instant::now();
        tail.with(|r| {
            r.set_lowest_ask(lowest);
            lock.into_iter().for_each(|lock| r.set_record_lock(lock));
            waiting.iter().for_each(|w| r.wait_for(now, w.until, w.tp, w.first, w.last));
        });
        if !waiting.is_empty() {
            tail.read_on();
        }
        if moved || changed && tail.error().is_some() {
            shared.wake_app();
        }
    }

    /// Waits until the ledger has something to say.
    pub(super) async fn news(&mut self) {
        if let Some(news) = &mut self.news
            && news.changed().await.is_ok()
        {
            return news.mark_changed();
        }
        std::future::pending().await
    }
}

async fn look_for(shared: &Shared) -> Result<Found> {
    let settings = &shared.ledger.settings;
    let deadline = Instant::now() + shared.cluster.config().default_api_timeout;
    if settings.backend == Some(AckBackendChoice::Auto) {
        let versions = shared.cluster.features(deadline).await?;
        if transactional_acknowledgements_offered(&versions) {
            let found = LedgerTopic::find(&shared.cluster, &settings.topic, deadline).await?;
            return Ok(found.map(Arc::new));
        }
    }
    let topic = LedgerTopic::open(&shared.cluster, &settings.topic, settings.auto_create, deadline).await?;
    Ok(Some(Arc::new(topic)))
}
