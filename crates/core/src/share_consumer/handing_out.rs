//! Records on their way to the application: renewed ones again, then what the buffer holds.

use super::{Chunk, DeferredPart, InFlightKind, NodeState, ShareConsumer, Standings};
use crate::share_acks::RecordHandle;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Lock time that is assumed while no broker has told one (the default of `share.record.lock.duration.ms`).
const DEFAULT_LOCK: Duration = Duration::from_secs(30);
/// Bounds of a lock time that is believed; those that brokers have for `share.record.lock.duration.ms`.
const SHORTEST_LOCK: Duration = Duration::from_secs(1);
const LONGEST_LOCK: Duration = Duration::from_secs(3600);

impl ShareConsumer {
    /// Records for the application, `max_poll_records` at most. Where there are none, the next answers are wanted.
    pub fn take_records(&mut self, now: Instant) -> Vec<Chunk> {
        self.take_up_to(now, usize::MAX, None)
    }

    /// As [`ShareConsumer::take_records`], no more than `most`, and only what `look`, where there is one, says is free. What
    /// others have acknowledged is settled with the broker, what they are about to waits for them.
    pub fn take_up_to(&mut self, now: Instant, most: usize, look: Option<&dyn Standings>) -> Vec<Chunk> {
        let mut left = self.config.max_poll_records.min(most);
        let mut chunks = self.take_renewed(now, &mut left, look);
        chunks.append(&mut self.take_aside(now, &mut left, look));
        while left > 0 {
            // What is expanded for this poll is what one answer may have; the next part is for the next poll.
            if self.buffer.is_empty() && (!chunks.is_empty() || !self.expand_deferred(now)) {
                break;
            }
            let Some(chunk) = self.take_buffered(now, left, look) else { continue };
            left -= chunk.entries().len();
            chunks.push(chunk);
        }
        if self.config.implicit {
            self.delivered.extend(chunks.iter().cloned());
        }
        self.note_taken(now, chunks.is_empty());
        chunks
    }

    /// As [`ShareConsumer::take_up_to`], and one only: a chunk of one record. Allocates nothing where the record waits in
    /// the buffer and there is nothing to look at.
    pub fn take_one(&mut self, now: Instant, look: Option<&dyn Standings>) -> Option<Chunk> {
        let renewed = if self.table.has_renewed() { self.take_renewed(now, &mut 1, look).pop() } else { None };
        let mut chunk = renewed.or_else(|| self.take_aside(now, &mut 1, look).pop());
        while chunk.is_none() && (!self.buffer.is_empty() || self.expand_deferred(now)) {
            chunk = self.take_buffered(now, 1, look);
        }
        if self.config.implicit {
            self.delivered.extend(chunk.clone());
        }
        self.note_taken(now, chunk.is_none());
        chunk
    }

    /// The next records of the buffer that are of one delivery, still locked, and free.
    fn take_buffered(&mut self, now: Instant, most: usize, look: Option<&dyn Standings>) -> Option<Chunk> {
        loop {
            let front = self.buffer.front_mut()?;
            let lock_until = self.table.lock_until(front.slot).filter(|until| *until > now);
            let rest = front.delivery.entries.len() - front.next;
            let slot = front.slot;
            let Some(lock_until) = lock_until.filter(|_| rest > 0) else {
                self.buffer.pop_front();
                self.table.unreference(slot);
                continue;
            };
            let mut entries = front.next..front.next + rest.min(most);
            let delivery = Arc::clone(&front.delivery);
            front.next = entries.end;
            if let Some(look) = look {
                let (free, behind) = self.sift((now, now), slot, &delivery, entries, look);
                self.buffer.front_mut()?.next = behind;
                let Some(free) = free else { continue };
                entries = free;
            }
            let chunk = Chunk { delivery, slot, start: entries.start, end: entries.end, lock_until };
            self.hand_out(&chunk, now);
            return Some(chunk);
        }
    }

    /// Expands the next part that was left compressed; `false` where there is none. Once its lock has ended it is dropped.
    fn expand_deferred(&mut self, now: Instant) -> bool {
        let Some(DeferredPart { node, ask, lock_until, part }) = self.deferred.pop_front() else { return false };
        if lock_until > now {
            let wanted = !self.closing && self.assignment.contains(&part.tp);
            let behind = std::mem::take(&mut self.deferred);
            let delivery = if wanted { part.decode(self.config.decode_limits) } else { part.undecoded() };
            // What is left of it comes before what was behind it.
            self.deliver(now, node, ask, delivery, lock_until);
            self.deferred.extend(behind);
        }
        true
    }

    fn note_taken(&mut self, now: Instant, wanted: bool) {
        self.last_poll = Some(now);
        self.owed &= wanted;
        self.asked &= self.wanted;
        self.wanted = wanted;
    }

    fn hand_out(&mut self, chunk: &Chunk, now: Instant) {
        let Some(last) = chunk.entries().last() else { return };
        self.table.hand_out(chunk.slot, last.index + 1, now, self.assumed_lock(), self.config.lock_renewal);
    }

    fn take_renewed(&mut self, now: Instant, left: &mut usize, look: Option<&dyn Standings>) -> Vec<Chunk> {
        let mut chunks: Vec<Chunk> = Vec::new();
        for handle in self.table.take_renewed(*left) {
            let Some(lock_until) = self.table.record_lock(handle) else { continue };
            let Some(delivery) = self.table.delivery(handle.slot) else { continue };
            let Ok(at) = delivery.entries.binary_search_by_key(&handle.index, |e| e.index) else { continue };
            *left -= 1;
            match chunks.last_mut().filter(|c| c.slot == handle.slot && c.end == at && c.lock_until == lock_until) {
                Some(chunk) => chunk.end += 1,
                None => chunks.push(Chunk {
                    delivery: Arc::clone(delivery),
                    slot: handle.slot,
                    start: at,
                    end: at + 1,
                    lock_until,
                }),
            }
        }
        match look {
            Some(look) => chunks.into_iter().flat_map(|chunk| self.sift_chunk(now, chunk, look)).collect(),
            None => chunks,
        }
    }

    /// Those of a chunk's records that are free.
    fn sift_chunk(&mut self, now: Instant, chunk: Chunk, look: &dyn Standings) -> Vec<Chunk> {
        let (mut free, mut rest) = (Vec::new(), chunk.start..chunk.end);
        while !rest.is_empty() {
            let (found, behind) = self.sift((now, now), chunk.slot, &chunk.delivery, rest.clone(), look);
            free.extend(found.map(|Range { start, end }| Chunk { start, end, ..chunk.clone() }));
            rest.start = behind;
        }
        free
    }

    /// Whether the application waits for records.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.wanted
    }

    /// The application no longer waits for records. If it came and went before a fetch could go out, one is sent all the
    /// same: polls that never wait would never have one sent.
    pub fn stop_waiting(&mut self) {
        let fetching = |n: &NodeState| matches!(&n.in_flight, Some(f) if matches!(f.kind, InFlightKind::Fetch(_)));
        self.owed |= self.wanted && !self.asked && !self.closing && !self.nodes.values().any(fetching);
        self.wanted = false;
    }

    /// Whether a fetch to a node is to go out, and how long the broker may hold it where it has nothing: the application
    /// waits for records, or is about to and wants some ready.
    pub(super) fn fetch_wait(&self, node: i32, now: Instant) -> Option<Duration> {
        if self.closing || self.ledger.held_back {
            return None;
        }
        if self.buffer.is_empty() && self.deferred.is_empty() && (self.wanted || self.owed) {
            return Some(self.poll_wait(node, now));
        }
        // An application that does not come back must not hold locks that run out, and wear out the delivery count.
        let recently = self.last_poll.is_some_and(|at| now.saturating_duration_since(at) < self.assumed_lock() / 2);
        if self.config.prefetch == 0 || !recently || self.waiting_records() >= self.config.prefetch {
            return None;
        }
        // A broker that had little to give (all is locked, perhaps by this member) is asked again once acknowledgements go
        // along that are worth a request. It must not hold it: the next acknowledgements would wait behind.
        let dry = self.nodes.get(&node).is_some_and(|n| n.dry);
        (!dry || self.table.pending() >= self.config.max_poll_records).then_some(Duration::ZERO)
    }

    /// Where one broker at a time is asked, none that has nothing may keep the records of another waiting.
    fn poll_wait(&self, node: i32, now: Instant) -> Duration {
        if !self.config.record_limit {
            return self.config.max_wait;
        }
        let others = self.nodes.iter().filter(|(id, _)| **id != node && self.wants_any(**id, now));
        let (count, promising) = others.fold((0, false), |(n, any), (_, other)| (n + 1, any || !other.empty));
        if promising { Duration::ZERO } else { self.config.max_wait / (count + 1) }
    }

    /// Records that wait for the application.
    pub(super) fn waiting_records(&self) -> usize {
        let expanded: usize = self.buffer.iter().map(|b| b.delivery.entries.len() - b.next).sum();
        expanded + self.deferred.iter().map(|d| d.part.count()).sum::<usize>()
    }

    /// How many records a fetch asks for: what one poll takes, or this broker's share of what may wait here.
    pub(super) fn fetch_size(&self) -> usize {
        let room = self.config.prefetch.saturating_sub(self.waiting_records());
        (room / self.nodes.len().max(1)).max(self.config.max_poll_records)
    }

    pub(super) fn assumed_lock(&self) -> Duration {
        self.lock_timeout.unwrap_or(DEFAULT_LOCK)
    }

    /// Takes the lock time that a broker named; answers the one to count with. A time of zero would have every record
    /// fetched thrown away as late, and fetched again, for ever.
    pub(super) fn note_lock(&mut self, lock: Duration) -> Duration {
        if !lock.is_zero() {
            self.lock_timeout = Some(lock.clamp(SHORTEST_LOCK, LONGEST_LOCK));
        }
        self.assumed_lock()
    }

    /// Whether the record can still be acknowledged.
    #[must_use]
    pub fn is_held(&self, handle: RecordHandle) -> bool {
        self.table.is_held(handle)
    }
}
