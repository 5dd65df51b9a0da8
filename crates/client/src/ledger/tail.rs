//! A consumer's reader of its group's ledger partition, shared by the consumer, its producers and the task that fetches.
//!
//! A consumer calls [`LedgerReader::note_asked`] before each ShareFetch goes out and [`LedgerReader::set_lowest_ask`] when
//! requests are settled, both through [`Tail::with`], and looks again at what it set aside when [`Tail::subscribe`] has news.

use super::carrier::Carrier;
use super::{LedgerSettings, LedgerTopic};
use crate::net::Cluster;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::ledger::{FormatError, LedgerError, LedgerReader, ReaderConfig};
use kafka_share_wire::Str;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Most ranges of offsets that a reader remembers.
const MAX_RANGES: usize = 4 << 20;

/// Counters of a tail.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Owners that were fenced, as far as that was tried.
    pub(super) fences: AtomicU64,
    /// Times that the log was read from its start again.
    pub(super) restarts: AtomicU64,
}

impl Counters {
    /// Fences and restarts.
    pub(crate) fn read(&self) -> (u64, u64) {
        (self.fences.load(Ordering::Relaxed), self.restarts.load(Ordering::Relaxed))
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) cluster: Arc<Cluster>,
    pub(super) topic: Arc<LedgerTopic>,
    pub(super) partition: i32,
    pub(super) sweep_interval: Duration,
    reader: Mutex<LedgerReader>,
    /// Why the last fetch failed; taken back when one succeeds.
    failure: Mutex<Option<Error>>,
    /// The reader's change counter.
    news: watch::Sender<u64>,
    /// The fetching task has something to do before its fetch is answered.
    pub(super) work: Notify,
    /// Somebody waits for what only the ledger can tell.
    pub(super) asked: Notify,
    pub(super) stopped: AtomicBool,
    /// Whether the other partitions were seen to be of the same layout.
    pub(super) looked_elsewhere: AtomicBool,
    pub(super) counters: Counters,
}

impl Shared {
    /// Runs on the reader, and tells of what changed.
    pub(super) fn with<T>(&self, run: impl FnOnce(&mut LedgerReader) -> T) -> T {
        let (result, changes, sooner) = {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let (changes, deadline) = (reader.changes(), reader.next_deadline());
            let result = run(&mut reader);
            let next = reader.next_deadline();
            let sooner = next.is_some_and(|next| deadline.is_none_or(|before| next < before));
            (result, (reader.changes() != changes).then_some(reader.changes()), sooner)
        };
        if let Some(changes) = changes {
            self.news.send_replace(changes);
        }
        if sooner {
            self.work.notify_one();
        }
        result
    }

    pub(super) fn note_failure(&self, failure: Option<Error>) {
        let mut slot = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let news = failure.is_some() || slot.is_some();
        *slot = failure;
        drop(slot);
        if news {
            self.news.send_modify(|_| {});
        }
    }

    fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The handle. Its task ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Tail {
    shared: Arc<Shared>,
}

impl Tail {
    /// What is told to who acknowledges by the ledger alone, once the group has left it.
    pub(crate) fn left(&self) -> Error {
        let text = format!(
            "share group {:?} has left the ledger (`kshare ledger leave`): what is acknowledged by the ledger alone is not seen by \
             its other members any more; start this one with share.ack.transaction.backend=native or both",
            self.with(|r| r.group().clone()).as_str()
        );
        Error::new(ErrorKind::Config, text)
    }

    /// Starts to read a group's partition of a ledger. `asked`: number of the consumer's next request for records, and the
    /// lowest number among those that are not settled; `(1, 1)` for one that has asked for nothing.
    ///
    /// # Errors
    /// A call outside a tokio runtime.
    pub(crate) fn start(
        cluster: Arc<Cluster>,
        topic: Arc<LedgerTopic>,
        group: &str,
        settings: &LedgerSettings,
        asked: (u64, u64),
    ) -> Result<Arc<Self>> {
        let handle = tokio::runtime::Handle::try_current()
            .map_err(|_| Error::new(ErrorKind::InvalidState, "a ledger is read inside a tokio runtime"))?;
        let config = ReaderConfig { group: Str::from(group), layout: topic.layout, max_ranges: MAX_RANGES };
        let mut reader = LedgerReader::new(config);
        reader.note_asked(asked.0);
        reader.set_lowest_ask(asked.1);
        let shared = Arc::new(Shared {
            cluster,
            partition: reader.partition(),
            topic,
            sweep_interval: settings.sweep_interval,
            reader: Mutex::new(reader),
            failure: Mutex::new(None),
            news: watch::Sender::new(0),
            work: Notify::new(),
            asked: Notify::new(),
            stopped: AtomicBool::new(false),
            looked_elsewhere: AtomicBool::new(false),
            counters: Counters::default(),
        });
        handle.spawn(Carrier::new(Arc::clone(&shared)).run());
        Ok(Arc::new(Tail { shared }))
    }

    /// Runs on the reader. No lock may be taken inside that is held by who waits for this one.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&mut LedgerReader) -> T) -> T {
        self.shared.with(run)
    }

    /// Reads on at once, where the task waits as nobody else writes. Whoever waits for [news](Self::subscribe) calls it first.
    pub(crate) fn read_on(&self) {
        self.shared.asked.notify_one();
    }

    /// Changes when standings, checks or verdicts may have, and with errors.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.news.subscribe()
    }

    /// Why the ledger cannot be used, for good: of another format, damaged, not allowed, made anew.
    pub(crate) fn error(&self) -> Option<Error> {
        if let Some(error) = self.with(|reader| reader.error().cloned()) {
            return Some(self.refused(&error));
        }
        self.shared.failure().filter(Error::is_fatal)
    }

    /// Why nothing is read at the moment.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.error().or_else(|| self.shared.failure())
    }

    pub(crate) fn topic(&self) -> &Arc<LedgerTopic> {
        &self.shared.topic
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(crate) fn refused(&self, error: &LedgerError) -> Error {
        let kind = match error {
            LedgerError::Record { error: FormatError::Newer(_), .. } => ErrorKind::Unsupported,
            LedgerError::Record { error: FormatError::OtherLayout { .. } | FormatError::Foreign(_), .. } => {
                ErrorKind::Config
            }
            LedgerError::TooLarge { .. } | LedgerError::Deleted { .. } => ErrorKind::InvalidState,
            _ => ErrorKind::Protocol,
        };
        Error::new(kind, format!("ledger topic {:?} cannot be used: {error}", self.shared.topic.name))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        self.shared.work.notify_one();
    }
}
