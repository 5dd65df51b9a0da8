//! Waiting for open intents of others, and when their owners are fenced.

use super::picture::IntentState;
use super::reader::LedgerReader;
use crate::metadata::TopicIdPartition;
use crate::transaction::ProducerIdentity;
use kafka_share_wire::Str;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A quarter of the record lock's default.
const DEFAULT_LIMIT: Duration = Duration::from_millis(7_500);

/// An owner that has held up others for too long: send InitProducerId with its transactional id, producer id and epoch,
/// once. The answer says nothing of the transaction, as the owner may have been committing: the marker does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceOrder {
    /// Offset of the intent in the ledger.
    pub intent: i64,
    /// Transactional id of the owner.
    pub transactional_id: Str,
    /// The owner's producer id and epoch.
    pub owner: ProducerIdentity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    None,
    Made,
    Refused,
}

#[derive(Debug)]
struct Wait {
    since: Instant,
    /// Somebody waits until then.
    until: Instant,
    attempt: Attempt,
}

/// Who is waited for, by offset of the intent.
#[derive(Debug)]
pub(super) struct Waits {
    limit: Duration,
    waits: BTreeMap<i64, Wait>,
}

impl Default for Waits {
    fn default() -> Self {
        Waits { limit: DEFAULT_LIMIT, waits: BTreeMap::new() }
    }
}

impl Waits {
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    pub(super) fn note(&mut self, now: Instant, until: Instant, intent: i64) {
        let new = Wait { since: now, until, attempt: Attempt::None };
        let wait = self.waits.entry(intent).or_insert(new);
        wait.until = wait.until.max(until);
    }

    /// Whether there is no right to fence this one.
    pub(super) fn is_refused(&self, intent: i64) -> bool {
        self.waits.get(&intent).is_some_and(|w| w.attempt == Attempt::Refused)
    }

    fn due(&self, wait: &Wait) -> Option<Instant> {
        let due = wait.since + self.limit;
        (wait.attempt == Attempt::None && due <= wait.until).then_some(due)
    }
}

impl LedgerReader {
    /// Somebody waits, until a moment at most, for those who claim any of these offsets in open transactions. To be repeated
    /// as long as it does.
    pub fn wait_for(&mut self, now: Instant, until: Instant, tp: TopicIdPartition, first: i64, last: i64) {
        let open = self.picture.overlapping(tp, first, last);
        for (offset, ..) in open.filter(|(_, e, _)| e.state == IntentState::Open && !e.two_phase) {
            self.waits.note(now, until, offset);
        }
    }

    /// An owner that is to be fenced now.
    pub fn poll_fence(&mut self, now: Instant) -> Option<FenceOrder> {
        let picture = &self.picture;
        let open = |offset: &i64| picture.at(*offset).is_some_and(|e| e.state == IntentState::Open);
        self.waits.waits.retain(|offset, wait| open(offset) && wait.until > now);
        let due = |(offset, wait): (&i64, &Wait)| (self.waits.due(wait)? <= now).then_some(*offset);
        let intent = self.waits.waits.iter().find_map(due)?;
        self.waits.waits.get_mut(&intent)?.attempt = Attempt::Made;
        let entry = self.picture.at(intent)?;
        Some(FenceOrder { intent, transactional_id: entry.transactional_id.clone(), owner: entry.owner })
    }

    /// When [`LedgerReader::poll_fence`] is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.waits.waits.values().filter_map(|wait| self.waits.due(wait)).min()
    }

    /// The attempt came to nothing, by a lost connection say: another one follows after the same time.
    pub fn handle_fence_lost(&mut self, now: Instant, intent: i64) {
        if let Some(wait) = self.waits.waits.get_mut(&intent) {
            *wait = Wait { since: now, until: wait.until, attempt: Attempt::None };
        }
    }

    /// There is no right to fence the owner of this intent: who waits must give its records up.
    pub fn handle_fence_refused(&mut self, intent: i64) {
        if let Some(wait) = self.waits.waits.get_mut(&intent) {
            wait.attempt = Attempt::Refused;
            self.note_change();
        }
    }
}
