//! What is known of every record: where it lies, who got it when, and how each delivery ended.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kafka_share::ErrorCode;

/// How a delivery ended for the member that got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Accepted,
    Released,
    Refused(ErrorCode),
    LockLost,
    /// The answer to the acceptance was lost.
    Unknown,
    /// The answer to the release was lost.
    MaybeReleased,
    /// The lock was lost before the record could be acknowledged.
    NotAcknowledged,
}

impl End {
    fn name(self) -> String {
        match self {
            End::Accepted => "accepted".into(),
            End::Released => "released".into(),
            End::Refused(code) => format!("refused ({code})"),
            End::LockLost => "lock lost".into(),
            End::Unknown => "unknown".into(),
            End::MaybeReleased => "release unknown".into(),
            End::NotAcknowledged => "lock lost before its acknowledgement".into(),
        }
    }
}

/// Shown whole where something is wrong.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "member and count are for the one who reads a violation")]
struct Delivery {
    member: usize,
    count: i16,
    lock_until: Instant,
    end: Option<(End, Instant)>,
}

#[derive(Debug, Default)]
struct Record {
    offset: Option<i64>,
    deliveries: Vec<Delivery>,
}

/// Whether a broker may refuse an acknowledgement with this code while nodes go down and come back, leaders move and locks
/// end. Any other is a fault, of the client or of the broker.
fn happens(code: ErrorCode) -> bool {
    matches!(
        code,
        // The lock has ended, or the record is another's.
        ErrorCode::INVALID_RECORD_STATE
        // The leader moved, or learns that it did when it writes the state.
        | ErrorCode::NOT_LEADER_OR_FOLLOWER
        | ErrorCode::FENCED_LEADER_EPOCH
        | ErrorCode::FENCED_STATE_EPOCH
        // The node has put its share-partition away, because the leader moved; Kafka 4.4.0 has this word for it.
        | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        // The node is another one since the session was opened.
        | ErrorCode::SHARE_SESSION_NOT_FOUND
        | ErrorCode::INVALID_SHARE_SESSION_EPOCH
        // For now, and until the client's time was over or its session: the state's coordinator was on a node that is down.
        | ErrorCode::REQUEST_TIMED_OUT
        | ErrorCode::COORDINATOR_NOT_AVAILABLE
        | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
        | ErrorCode::NOT_COORDINATOR
    )
}

/// The records of all partitions. Record `n` belongs to partition `n % partitions`.
#[derive(Debug)]
pub(super) struct Book {
    partitions: Vec<Mutex<Vec<Record>>>,
    produced: AtomicU64,
    by_member: Vec<AtomicU64>,
    progress: Mutex<Progress>,
    violations: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct Progress {
    last: Instant,
    longest: Duration,
    stopped: bool,
}

/// Which delivery of which record.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeliveryId {
    number: u64,
    at: usize,
}

impl Book {
    pub(super) fn new(partitions: i32, members: usize) -> Self {
        Book {
            partitions: (0..partitions).map(|_| Mutex::default()).collect(),
            produced: AtomicU64::new(0),
            by_member: (0..members).map(|_| AtomicU64::new(0)).collect(),
            progress: Mutex::new(Progress { last: Instant::now(), longest: Duration::ZERO, stopped: false }),
            violations: Mutex::default(),
        }
    }

    pub(super) fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Number and partition of the record to produce next.
    pub(super) fn next(&self) -> (u64, i32) {
        let number = self.produced.fetch_add(1, Ordering::Relaxed);
        lock(&self.partitions[self.partition_of(number)]).push(Record::default());
        (number, self.partition_of(number) as i32)
    }

    fn partition_of(&self, number: u64) -> usize {
        (number % self.partitions.len() as u64) as usize
    }

    /// A member got a record. `None`: there is no such record.
    pub(super) fn delivered(
        &self,
        member: usize,
        record: &kafka_share::ShareRecord<'_>,
        number: u64,
    ) -> Option<DeliveryId> {
        self.by_member[member].fetch_add(1, Ordering::Relaxed);
        let (partition, offset) = (record.partition(), record.offset());
        let home = self.partition_of(number);
        let mut records = lock(&self.partitions[home]);
        let entry =
            records.get_mut((number / self.partitions.len() as u64) as usize).filter(|_| home == partition as usize);
        let Some(entry) = entry else {
            drop(records);
            self.violation(format!("{partition}/{offset} holds {number}, which was not written there"));
            return None;
        };
        let wrong = entry.offset.replace(offset).filter(|known| *known != offset);
        let (count, lock_until) = (record.delivery_count(), record.lock_deadline());
        entry.deliveries.push(Delivery { member, count, lock_until, end: None });
        let at = entry.deliveries.len() - 1;
        drop(records);
        if let Some(known) = wrong {
            self.violation(format!("{number} is at {partition}/{known} and at {partition}/{offset}: written twice"));
        }
        Some(DeliveryId { number, at })
    }

    /// How far it is.
    pub(super) fn line(&self) -> String {
        let pause = lock(&self.progress).last.elapsed().as_secs_f64();
        let (produced, delivered) = (self.produced.load(Ordering::Relaxed), self.by_member());
        format!("{produced} produced, delivered {delivered:?}, last acceptance {pause:.1} s ago")
    }

    /// How a delivery ended.
    pub(super) fn ended(&self, delivery: DeliveryId, end: End) {
        let mut records = lock(&self.partitions[self.partition_of(delivery.number)]);
        let at = (delivery.number / self.partitions.len() as u64) as usize;
        records[at].deliveries[delivery.at].end = Some((end, Instant::now()));
    }

    /// The group goes on: acknowledgements were taken.
    pub(super) fn note_progress(&self) {
        let mut progress = lock(&self.progress);
        let pause = progress.last.elapsed();
        if !progress.stopped {
            progress.longest = progress.longest.max(pause);
        }
        progress.last += pause;
    }

    /// From now on pauses are not the cluster's: less is produced than can be consumed.
    pub(super) fn stop_clock(&self) {
        self.note_progress();
        lock(&self.progress).stopped = true;
    }

    /// End offsets of the partitions: every record was written, and only once.
    pub(super) fn ends_at(&self, ends: &[i64]) {
        for (partition, (records, end)) in self.partitions.iter().zip(ends).enumerate() {
            let written = lock(records).len();
            if written as i64 != *end {
                self.violation(format!("partition {partition} ends at {end}, {written} records were written"));
            }
        }
    }

    /// Deliveries so far, by member.
    pub(super) fn by_member(&self) -> Vec<u64> {
        self.by_member.iter().map(|n| n.load(Ordering::Relaxed)).collect()
    }

    pub(super) fn violation(&self, what: String) {
        let mut violations = lock(&self.violations);
        if violations.len() < 1_000 {
            violations.push(what);
        }
    }

    /// Looks at all records; every member must have ended.
    pub(super) fn findings(&self) -> Findings {
        let mut findings = Findings {
            records: self.produced.load(Ordering::Relaxed),
            by_member: self.by_member(),
            longest_pause: lock(&self.progress).longest,
            violations: std::mem::take(&mut *lock(&self.violations)),
            ..Findings::default()
        };
        for (partition, records) in self.partitions.iter().enumerate() {
            for (at, record) in lock(records).iter().enumerate() {
                findings.look_at(partition, at, record);
            }
        }
        findings
    }
}

/// What the book says in the end.
#[derive(Debug, Default)]
pub struct Findings {
    records: u64,
    deliveries: u64,
    by_member: Vec<u64>,
    accepted: u64,
    maybe: u64,
    late: u64,
    ends: BTreeMap<String, u64>,
    /// Why records came again.
    reasons: BTreeMap<String, u64>,
    longest_pause: Duration,
    pub(super) violations: Vec<String>,
}

impl Findings {
    fn look_at(&mut self, partition: usize, at: usize, record: &Record) {
        let mut broken = |what: &str| {
            if self.violations.len() < 1_000 {
                self.violations.push(format!("partition {partition}, record {at}: {what}: {record:?}"));
            }
        };
        let Some((last, former)) = record.deliveries.split_last() else {
            return broken("never delivered");
        };
        // The group has no lag: whatever has no confirmed acceptance was accepted with the answer lost, or is gone.
        let accepted = record.deliveries.iter().any(|d| matches!(d.end, Some((End::Accepted, _))));
        let maybe = !accepted && record.deliveries.iter().any(|d| matches!(d.end, Some((End::Unknown, _))));
        if !accepted && !maybe {
            broken("lost");
        }
        for delivery in &record.deliveries {
            match delivery.end {
                None => broken("a delivery without an outcome"),
                Some((End::Refused(code), _)) if !happens(code) => broken("refused with a code that nothing explains"),
                Some(_) => {}
            }
        }
        let mut late = 0;
        for delivery in former {
            // A broker does not object to an acceptance below the start offset, although its lock has ended.
            match delivery.end {
                Some((End::Accepted, at)) if at < delivery.lock_until => broken("came again after it was accepted"),
                Some((End::Accepted, _)) => late += 1,
                _ => {}
            }
        }
        self.late += late;
        self.accepted += u64::from(accepted);
        self.maybe += u64::from(maybe);
        self.deliveries += record.deliveries.len() as u64;
        for delivery in former {
            let name = delivery.end.map_or_else(|| "no outcome".into(), |(end, _)| end.name());
            *self.reasons.entry(name).or_default() += 1;
        }
        for delivery in former.iter().chain([last]) {
            let name = delivery.end.map_or_else(|| "no outcome".into(), |(end, _)| end.name());
            *self.ends.entry(name).or_default() += 1;
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = self.records - self.accepted - self.maybe;
        writeln!(
            f,
            "records      {}: {} accepted, {} with the answer lost, {lost} lost",
            self.records, self.accepted, self.maybe
        )?;
        writeln!(f, "deliveries   {} (by member {:?})", self.deliveries, self.by_member)?;
        writeln!(f, "outcomes     {:?}", self.ends)?;
        writeln!(
            f,
            "came again   {}, because of {:?}",
            self.deliveries - self.records.min(self.deliveries),
            self.reasons
        )?;
        writeln!(f, "late         {} acceptances after the lock's end, which the broker took", self.late)?;
        writeln!(f, "pause        {:.1} s at the longest", self.longest_pause.as_secs_f64())?;
        for violation in self.violations.iter().take(20) {
            writeln!(f, "FAILED: {violation}")?;
        }
        match self.violations.len() {
            0 => write!(f, "sound"),
            n => write!(f, "{n} violations"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of a record with these deliveries: how each ended, and whether its lock held then.
    fn violations(deliveries: &[Option<(End, bool)>]) -> usize {
        let now = Instant::now();
        let delivery = |end: &Option<(End, bool)>| {
            let held = end.is_none_or(|(_, held)| held);
            let lock_until = if held { now + Duration::from_secs(1) } else { now };
            Delivery { member: 0, count: 1, lock_until, end: end.map(|(end, _)| (end, now)) }
        };
        let record = Record { offset: Some(0), deliveries: deliveries.iter().map(delivery).collect() };
        let mut findings = Findings::default();
        findings.look_at(0, 0, &record);
        findings.violations.len()
    }

    #[test]
    fn what_has_no_reason_is_found() {
        let accepted = Some((End::Accepted, true));
        assert_eq!(violations(&[]), 1, "never delivered");
        assert_eq!(violations(&[Some((End::LockLost, true))]), 1, "lost");
        assert_eq!(violations(&[Some((End::Released, true))]), 1, "lost");
        assert_eq!(violations(&[Some((End::MaybeReleased, true))]), 1, "lost");
        assert_eq!(violations(&[None]), 2, "lost, and without an outcome");
        assert_eq!(violations(&[None, accepted]), 1, "without an outcome");
        assert_eq!(violations(&[accepted, accepted]), 1, "came again after it was accepted");
        assert_eq!(violations(&[accepted, Some((End::LockLost, true))]), 1, "came again after it was accepted");
    }

    #[test]
    fn a_refusal_that_nothing_explains_is_found() {
        let accepted = Some((End::Accepted, true));
        for code in [
            ErrorCode::INVALID_REQUEST,
            ErrorCode::UNKNOWN_SERVER_ERROR,
            ErrorCode::GROUP_AUTHORIZATION_FAILED,
            ErrorCode::UNKNOWN_TOPIC_ID,
            ErrorCode::INCONSISTENT_TOPIC_ID,
        ] {
            let refused = Some((End::Refused(code), true));
            assert_eq!(violations(&[refused, accepted]), 1, "{code}");
            assert_eq!(violations(&[refused]), 2, "{code}, and lost");
        }
    }

    #[test]
    fn what_has_a_reason_passes() {
        let accepted = Some((End::Accepted, true));
        assert_eq!(violations(&[accepted]), 0);
        assert_eq!(violations(&[Some((End::Unknown, true))]), 0, "accepted, and the answer lost");
        let reasons = [End::Released, End::Refused(ErrorCode::INVALID_RECORD_STATE), End::LockLost, End::Unknown];
        for reason in reasons.into_iter().chain([End::NotAcknowledged]) {
            assert_eq!(violations(&[Some((reason, true)), accepted]), 0, "{reason:?}");
        }
        assert_eq!(violations(&[Some((End::Accepted, false)), accepted]), 0, "accepted after the lock's end");
    }
}
