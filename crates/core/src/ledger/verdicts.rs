//! How the transactions of a member's own intents ended, as their markers in the ledger say.

use super::format::IntentKey;
use std::collections::BTreeMap;

/// How the transaction of an intent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Committed: its acknowledgements hold.
    Committed,
    /// Aborted.
    Aborted,
    /// Intent and marker were compacted away before they were read.
    Lost,
}

#[derive(Debug)]
struct Watched {
    producer_id: i64,
    /// Where the intent lies, once that is known.
    offset: Option<i64>,
    /// Markers of the producer that came before the offset was known: one of the transaction before may be read late.
    markers: Vec<(i64, bool)>,
    verdict: Option<Verdict>,
}

/// Kept apart from the picture, which forgets what was aborted and what is of another generation.
#[derive(Debug, Default)]
pub(super) struct Verdicts(BTreeMap<IntentKey, Watched>);

/// Markers that can come between the start of an intent's request and its answer: the one before it, and its own. Each
/// may be read again after a restart.
const MAX_MARKERS: usize = 16;

impl Verdicts {
    pub(super) fn watch(&mut self, key: IntentKey, producer_id: i64) {
        self.0.insert(key, Watched { producer_id, offset: None, markers: Vec::new(), verdict: None });
    }

    pub(super) fn unwatch(&mut self, key: &IntentKey) {
        self.0.remove(key);
    }

    pub(super) fn verdict(&self, key: &IntentKey) -> Option<Verdict> {
        self.0.get(key)?.verdict
    }

    pub(super) fn handle_written(&mut self, key: &IntentKey, offset: i64) {
        let Some(watched) = self.0.get_mut(key) else { return };
        watched.offset = Some(offset);
        for (at, commit) in std::mem::take(&mut watched.markers) {
            watched.take(at, commit);
        }
    }

    pub(super) fn handle_marker(&mut self, at: i64, producer_id: i64, commit: bool) {
        for watched in self.0.values_mut().filter(|w| w.producer_id == producer_id) {
            watched.take(at, commit);
        }
    }

    /// The log was read from its start to `end`; `known`: whether the intent was among what it holds.
    pub(super) fn handle_end(&mut self, end: i64, known: impl Fn(&IntentKey) -> bool) {
        for (key, watched) in &mut self.0 {
            if watched.verdict.is_none() && watched.offset.is_some_and(|o| o < end) && !known(key) {
                watched.verdict = Some(Verdict::Lost);
            }
        }
    }
}

impl Watched {
    fn take(&mut self, at: i64, commit: bool) {
        match self.offset {
            Some(offset) if at > offset && self.verdict.is_none() => {
                self.verdict = Some(if commit { Verdict::Committed } else { Verdict::Aborted });
            }
            None if self.markers.len() < MAX_MARKERS => self.markers.push((at, commit)),
            _ => {}
        }
    }
}
