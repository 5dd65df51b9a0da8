//! The acknowledgement ledger's side of the consumer: which request each record came by, records whose standing is looked
//! up before they are handed out, and acknowledgements that took effect in a transaction and are only told to the broker.

use super::{Chunk, Group, InFlightKind, ShareConsumer};
use crate::ledger::{Conflict, LedgerReader, Run, Standing};
use crate::metadata::TopicIdPartition;
use crate::share_acks::{Aborted, AckType, Outcome, QuietOutcome, RecordHandle, SlotRef, Taken};
use crate::share_fetch::Delivery;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the ledger knows, asked before records are handed out.
pub trait Standings {
    /// Runs that cover `first..=last`, in order.
    fn standings(&self, tp: TopicIdPartition, first: i64, last: i64) -> Vec<Run>;
}

impl Standings for LedgerReader {
    fn standings(&self, tp: TopicIdPartition, first: i64, last: i64) -> Vec<Run> {
        LedgerReader::standings(self, tp, first, last)
    }
}

/// Records kept from the application.
#[derive(Debug)]
pub(super) struct Aside {
    delivery: Arc<Delivery>,
    slot: SlotRef,
    entries: Range<usize>,
    since: Instant,
    /// When they may come again, where that is not a matter of the ledger alone.
    not_before: Option<Instant>,
    /// When their locks were renewed last.
    renewed: Option<Instant>,
}

/// Records that wait for the end of a transaction that claims them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingRecords {
    /// The share-partition.
    pub tp: TopicIdPartition,
    /// First offset.
    pub first: i64,
    /// Last offset, inclusive.
    pub last: i64,
    /// Since when.
    pub since: Instant,
    /// When their lock ends.
    pub until: Instant,
}

#[derive(Debug, Default)]
pub(super) struct LedgerState {
    /// Whether the ledger is in play, so that deliveries are kept for a second time.
    attached: bool,
    /// No fetch goes out.
    pub(super) held_back: bool,
    /// What was asked for with a number below counts as never asked for.
    pub(super) floor: u64,
    aside: VecDeque<Aside>,
    /// Something may have changed for the records that are aside.
    look_again: bool,
    /// The application, which waits, does not know so yet.
    news: bool,
    settled: u64,
    /// Transactions in a row that met others' and were aborted.
    conflicts: u32,
}

impl ShareConsumer {
    /// The ledger is in play from here on.
    pub fn attach_ledger(&mut self) {
        self.ledger.attached = true;
    }

    /// Whether deliveries are kept after they were handed out, so that they can be once more.
    pub(super) fn keeps_deliveries(&self) -> bool {
        !self.config.implicit || self.ledger.attached
    }

    /// Sends no fetch as long as `hold`: before the first one the ledger is read to its end.
    pub fn hold_fetches(&mut self, hold: bool) {
        self.ledger.held_back = hold;
    }

    /// Number that the next ShareFetch will have; they are counted from 1.
    #[must_use]
    pub fn next_ask(&self) -> u64 {
        self.next_ask
    }

    /// The smallest number of a ShareFetch that is not answered, or of whose records one is not settled: buffered, handed out,
    /// staged, or its acknowledgement not confirmed. [`ShareConsumer::next_ask`] where there is none.
    #[must_use]
    pub fn lowest_ask(&self) -> u64 {
        let in_flight = self.nodes.values().filter_map(|n| n.in_flight.as_ref()).filter_map(|f| f.ask);
        let deferred = self.deferred.iter().map(|d| d.ask);
        in_flight.chain(deferred).chain(self.table.lowest_ask()).min().unwrap_or(self.next_ask)
    }

    /// All that was asked for with a number below `floor` counts as never asked for: records are dropped without a word to
    /// the broker, answers that come still are thrown away, and the sessions are closed, which frees the records there.
    pub fn drop_below(&mut self, floor: u64) {
        if floor <= self.ledger.floor {
            return;
        }
        self.ledger.floor = floor;
        let mut ended = Vec::new();
        for state in self.nodes.values_mut() {
            let fetching = state.in_flight.as_ref().is_some_and(|f| matches!(f.kind, InFlightKind::Fetch(_)));
            state.stray |= state.session.is_open() || fetching;
            let stale = |group: &Group| group.taken.iter().any(|t| t.ask < floor);
            let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut state.groups).into_iter().partition(stale);
            state.groups = VecDeque::from(kept);
            ended.extend(gone);
        }
        for group in ended {
            self.end(&group.taken, &group.commits, Outcome::LockLost);
        }
        self.deferred.retain(|d| d.ask >= floor);
        self.table.drop_below(floor);
        self.drop_dead_buffers();
    }

    /// What was asked for with a number below this counts as never asked for; 0 where nothing was dropped.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.ledger.floor
    }

    /// Something ended in the ledger: records that wait for it are looked at again by the next poll. Answers whether there
    /// are any.
    pub fn ledger_moved(&mut self) -> bool {
        self.ledger.look_again = true;
        !self.ledger.aside.is_empty()
    }

    /// Records that wait for the end of a transaction that claims them.
    pub fn waiting_in_ledger(&self) -> impl Iterator<Item = WaitingRecords> + '_ {
        self.ledger.aside.iter().filter(|a| a.not_before.is_none()).filter_map(|a| {
            let offset = |at: usize| self.table.offset(a.slot, a.delivery.entries.get(at)?.index);
            let (first, last) = (offset(a.entries.start)?, offset(a.entries.end.checked_sub(1)?)?);
            let until = self.lock_of_aside(a)?;
            Some(WaitingRecords { tp: a.delivery.tp, first, last, since: a.since, until })
        })
    }

    /// When the lock of records that wait ends. All of a part have the same: renewed together, or not at all.
    fn lock_of_aside(&self, aside: &Aside) -> Option<Instant> {
        let index = aside.delivery.entries.get(aside.entries.start)?.index;
        self.table.record_lock(RecordHandle { slot: aside.slot, index })
    }

    /// When the locks of records are to be renewed that wait for the end of another's transaction, where brokers can: else each
    /// lock that ends costs a delivery, and the last one the record. Only for an application that polls: a busy one or one
    /// that is told of an error must not keep them from others.
    fn renewal_due(&self, aside: &Aside) -> Option<Instant> {
        let waits = aside.not_before.is_none() && self.table.check_renewal(aside.slot, AckType::Renew).is_ok();
        let due = self.lock_of_aside(aside).filter(|_| waits)?.checked_sub(self.assumed_lock() / 2)?;
        // One that is not answered, or refused, is not repeated at once.
        let due = aside.renewed.map_or(due, |at| due.max(at + self.assumed_lock() / 4));
        let polled = self.wanted || self.last_poll.is_some_and(|at| due <= at + self.assumed_lock());
        polled.then_some(due)
    }

    /// When [`ShareConsumer::renew_aside`] has something to do.
    pub(super) fn aside_renewal_due(&self) -> Option<Instant> {
        self.ledger.aside.iter().filter_map(|a| self.renewal_due(a)).min()
    }

    pub(super) fn renew_aside(&mut self, now: Instant) {
        let deadline = now + self.config.api_timeout;
        for at in 0..self.ledger.aside.len() {
            let part = &self.ledger.aside[at];
            if self.renewal_due(part).is_none_or(|due| due > now) {
                continue;
            }
            let indexes = part.delivery.entries[part.entries.clone()].iter().map(|e| e.index);
            let renewal = self.table.renewal_of_aside(part.slot, indexes);
            self.ledger.aside[at].renewed = Some(now);
            let Some((node, taken)) = renewal else { continue };
            let group = Group { taken: vec![taken], commits: Vec::new(), not_before: None, deadline, tries: 0 };
            self.nodes.entry(node).or_default().groups.push_back(group);
        }
    }

    /// Records that were acknowledged at the broker without being handed out, because another's transaction had done so.
    #[must_use]
    pub fn settled_elsewhere(&self) -> u64 {
        self.ledger.settled
    }

    /// When records that are aside come again by themselves, and the application waits for them.
    pub(super) fn aside_due(&self) -> Option<Instant> {
        let looked = self.wanted && !self.ledger.look_again;
        self.ledger.aside.iter().filter(|_| looked).filter_map(|a| a.not_before).min()
    }

    /// Time has passed: records come again that paused.
    pub(super) fn wake_aside(&mut self, now: Instant) {
        if self.aside_due().is_some_and(|at| at <= now) {
            self.ledger.look_again = true;
            self.ledger.news = true;
        }
    }

    /// Whether records that paused can be handed out now, to an application that waits.
    pub fn take_aside_news(&mut self) -> bool {
        std::mem::take(&mut self.ledger.news)
    }

    pub(super) fn forget_aside(&mut self) {
        self.ledger.aside.clear();
    }

    pub(super) fn drop_dead_aside(&mut self) {
        let table = &self.table;
        self.ledger.aside.retain(|a| table.lock_until(a.slot).is_some());
    }

    /// Splits entries by their standing; each run with its end.
    fn stand(
        &self,
        slot: SlotRef,
        delivery: &Delivery,
        entries: Range<usize>,
        look: &dyn Standings,
    ) -> Vec<(usize, Standing)> {
        let offset = |at: usize| self.table.offset(slot, delivery.entries[at].index).unwrap_or(-1);
        let (first, last) = (offset(entries.start), offset(entries.end - 1));
        let mut found = look.standings(delivery.tp, first, last).into_iter().peekable();
        let mut runs: Vec<(usize, Standing)> = Vec::new();
        for at in entries {
            let offset = offset(at);
            while found.next_if(|run| run.last < offset).is_some() {}
            let standing = found.peek().filter(|run| run.first <= offset).map_or(Standing::Free, |run| run.standing);
            match runs.last_mut().filter(|(_, before)| *before == standing) {
                Some((end, _)) => *end = at + 1,
                None => runs.push((at + 1, standing)),
            }
        }
        runs
    }

    /// Keeps from the application what the ledger has (what waits, has done so since `since`); answers the first run that is free, and where to go on behind all
    /// that was looked at before or in it.
    pub(super) fn sift(
        &mut self,
        (now, since): (Instant, Instant),
        slot: SlotRef,
        delivery: &Arc<Delivery>,
        entries: Range<usize>,
        look: &dyn Standings,
    ) -> (Option<Range<usize>>, usize) {
        let mut start = entries.start;
        for (end, standing) in self.stand(slot, delivery, entries, look) {
            let indexes = delivery.entries[start..end].iter().map(|e| e.index);
            match standing {
                Standing::Free => return (Some(start..end), end),
                Standing::Done(ack) => self.ledger.settled += self.table.settle_quietly(slot, indexes, ack, now) as u64,
                Standing::Open => {
                    self.table.set_aside(slot, indexes);
                    let delivery = Arc::clone(delivery);
                    let entries = start..end;
                    let waiting = Aside { delivery, slot, entries, since, not_before: None, renewed: None };
                    self.ledger.aside.push_back(waiting);
                }
            }
            start = end;
        }
        (None, start)
    }

    /// Records that were aside and are free now.
    pub(super) fn take_aside(&mut self, now: Instant, left: &mut usize, look: Option<&dyn Standings>) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        if self.ledger.aside.is_empty() || !std::mem::take(&mut self.ledger.look_again) {
            return chunks;
        }
        let mut parts = std::mem::take(&mut self.ledger.aside);
        while *left > 0
            && let Some(mut part) = parts.pop_front()
        {
            let index = part.delivery.entries[part.entries.start].index;
            let lock = self.table.record_lock(RecordHandle { slot: part.slot, index });
            let Some(lock_until) = lock.filter(|until| *until > now) else { continue };
            if part.not_before.is_some_and(|at| at > now) {
                self.ledger.aside.push_back(part);
                continue;
            }
            let end = part.entries.end.min(part.entries.start + *left);
            let looked = part.entries.start..end;
            let (free, behind) = match look {
                Some(look) => self.sift((now, part.since), part.slot, &part.delivery, looked, look),
                None => (Some(looked), end),
            };
            if let Some(Range { start, end }) = free {
                *left -= end - start;
                let delivery = Arc::clone(&part.delivery);
                let chunk = Chunk { delivery, slot: part.slot, start, end, lock_until };
                self.table.hold_again(chunk.slot, chunk.indexes());
                chunks.push(chunk);
            }
            part.entries.start = behind;
            if !part.entries.is_empty() {
                parts.push_front(part);
            }
        }
        self.ledger.look_again |= !parts.is_empty();
        self.ledger.aside.extend(parts);
        chunks
    }

    /// The transaction that holds `taken` was committed by the ledger: they are acknowledged, which the broker is told in
    /// ordinary acknowledgements, without a second outcome. Those that have no lock any more are not sent: whoever gets
    /// these records finds in the ledger what became of them.
    pub fn commit_by_ledger(&mut self, now: Instant, taken: &[Taken]) {
        self.ledger.conflicts = 0;
        for taken in taken {
            self.table.commit_staged(taken, now);
        }
    }

    /// The transaction that holds `taken` was aborted, and the broker knows nothing of it. Records in `done` were
    /// acknowledged by other transactions, and the broker is told so. With `again` (others were in the way, and nothing was
    /// wrong with the application) the rest comes again from here as long as its lock allows: a release would cost a
    /// delivery each time, and at the last one the record. Otherwise it is released.
    pub fn abort_by_ledger(&mut self, now: Instant, taken: &[Taken], done: &[Conflict], again: bool) {
        let pause = self.note_conflict(again && !self.closing);
        let enough = now + self.assumed_lock() / 4;
        for taken in taken {
            let delivery = self.table.delivery(taken.slot).cloned();
            let keep = again && !self.closing && self.assignment.contains(&taken.tp) && delivery.is_some();
            let keep = keep && self.table.lock_until(taken.slot).is_some_and(|until| until > enough);
            let rest = if keep { Aborted::Again } else { Aborted::Released };
            let fate = |offset: i64| {
                let other = done.iter().find(|c| c.tp == taken.tp && (c.first..=c.last).contains(&offset));
                other.map_or(rest, |c| Aborted::Done(c.ack))
            };
            let kept = self.table.abort_staged(taken, now, fate);
            if let Some(delivery) = delivery {
                self.put_aside(now, taken.slot, &delivery, &kept, pause);
            }
        }
        let sent = self.commit(now + self.config.api_timeout);
        self.forget_commit(sent);
    }

    /// The pause before records come again that met others.
    fn note_conflict(&mut self, conflict: bool) -> Duration {
        self.ledger.conflicts = if conflict { self.ledger.conflicts.saturating_add(1) } else { 0 };
        match self.ledger.conflicts {
            0 | 1 => Duration::ZERO,
            more => self.config.backoff.pause(more - 1, 200),
        }
    }

    fn put_aside(&mut self, now: Instant, slot: SlotRef, delivery: &Arc<Delivery>, kept: &[u32], pause: Duration) {
        let places = kept.iter().filter_map(|i| delivery.entries.binary_search_by_key(i, |e| e.index).ok());
        let places: Vec<usize> = places.collect();
        for run in places.chunk_by(|a, b| a + 1 == *b) {
            let entries = run[0]..run[run.len() - 1] + 1;
            let (delivery, not_before) = (Arc::clone(delivery), Some(now + pause));
            let again = Aside { delivery, slot, entries, since: now, not_before, renewed: None };
            self.ledger.aside.push_back(again);
            self.ledger.look_again = true;
        }
    }

    /// What the broker made of acknowledgements that the application is not told of. Releases are none of them.
    pub fn poll_quiet_outcome(&mut self) -> Option<QuietOutcome> {
        std::iter::from_fn(|| self.table.poll_quiet_outcome()).find(|o| o.ack_type != Some(AckType::Release))
    }

    /// Stages ranges of offsets for a transaction, which the application names by itself. The types of a range are one for
    /// all, or one per offset. `None`, and nothing changed, where one of the records is not held, or was acknowledged
    /// otherwise.
    pub fn stage_ranges<'a>(
        &mut self,
        ranges: impl IntoIterator<Item = (TopicIdPartition, i64, i64, &'a [AckType])>,
    ) -> Option<Vec<Taken>> {
        self.table.stage_ranges(ranges)
    }

    /// Renews the locks of staged records that have less than half of their time left, where their brokers can. They stay
    /// staged, and nothing depends on the answer: a lost lock does not keep a transaction from being committed, it only lets
    /// others begin on the records in vain. Answers whether there is something to send.
    pub fn renew_staged(&mut self, now: Instant, taken: &[Taken]) -> bool {
        let (enough, deadline) = (now + self.assumed_lock() / 2, now + self.config.api_timeout);
        let mut by_node: BTreeMap<i32, Vec<Taken>> = BTreeMap::new();
        for taken in taken.iter().filter(|t| self.table.check_renewal(t.slot, AckType::Renew).is_ok()) {
            if self.table.staged_lock(taken).is_some_and(|until| until < enough)
                && let Some((node, renewal)) = self.table.renewal_of_staged(taken)
            {
                by_node.entry(node).or_default().push(renewal);
            }
        }
        let any = !by_node.is_empty();
        for (node, mut taken) in by_node {
            taken.sort_by_key(|t| (t.tp, t.batches.first().map(|b| b.first)));
            let group = Group { taken, commits: Vec::new(), not_before: None, deadline, tries: 0 };
            self.nodes.entry(node).or_default().groups.push_back(group);
        }
        any
    }
}
