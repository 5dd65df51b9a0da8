//! What is known of every record, in a window that moves along: who got it, and whether its acceptance was confirmed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Settled records behind the oldest open one that are still watched for a second delivery.
const WATCHED: usize = 400_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unseen,
    Delivered,
    /// An acceptance was sent and its answer lost: it may come again, or not.
    Maybe,
    Accepted {
        count: u8,
    },
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    state: State,
    most: u8,
}

#[derive(Debug, Default)]
struct Partition {
    /// Offset of the first entry.
    base: i64,
    /// How many entries at the front are settled.
    settled: usize,
    entries: VecDeque<Entry>,
}

impl Partition {
    fn entry(&mut self, offset: i64) -> Option<&mut Entry> {
        let index = usize::try_from(offset - self.base).ok()?;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, Entry { state: State::Unseen, most: 0 });
        }
        self.entries.get_mut(index)
    }

    /// Forgets the oldest of what is settled; gives how many of these had their answer lost.
    fn advance(&mut self) -> u64 {
        let settled = |e: &Entry| matches!(e.state, State::Accepted { .. } | State::Maybe);
        while self.entries.get(self.settled).is_some_and(settled) {
            self.settled += 1;
        }
        let mut maybe = 0;
        while self.settled > WATCHED {
            maybe += u64::from(self.entries.pop_front().is_some_and(|e| e.state == State::Maybe));
            self.base += 1;
            self.settled -= 1;
        }
        maybe
    }
}

/// Counters of what happened.
#[derive(Debug, Default)]
struct Counts {
    produced: AtomicU64,
    deliveries: AtomicU64,
    redeliveries: AtomicU64,
    accepted: AtomicU64,
    late: AtomicU64,
    /// Of those that are no longer watched.
    maybe: AtomicU64,
    outcomes: Mutex<BTreeMap<&'static str, u64>>,
}

/// The records of all partitions.
#[derive(Debug)]
pub(crate) struct Book {
    partitions: Vec<Mutex<Partition>>,
    counts: Counts,
    violations: Mutex<Vec<String>>,
}

impl Book {
    pub(crate) fn new(partitions: i32) -> Self {
        let partitions = (0..partitions).map(|_| Mutex::default()).collect();
        Book { partitions, counts: Counts::default(), violations: Mutex::default() }
    }

    pub(crate) fn produced(&self, records: u64) {
        self.counts.produced.fetch_add(records, Ordering::Relaxed);
    }

    /// Records that wait, roughly.
    pub(crate) fn backlog(&self) -> u64 {
        let produced = self.counts.produced.load(Ordering::Relaxed);
        let settled = self.counts.accepted.load(Ordering::Relaxed) + self.counts.maybe.load(Ordering::Relaxed);
        produced.saturating_sub(settled)
    }

    /// A member got a record with a delivery count.
    pub(crate) fn delivered(&self, partition: i32, offset: i64, count: u8) {
        self.counts.deliveries.fetch_add(1, Ordering::Relaxed);
        if count > 1 {
            self.counts.redeliveries.fetch_add(1, Ordering::Relaxed);
        }
        let mut partition_book = self.partition(partition);
        let Some(entry) = partition_book.entry(offset) else {
            drop(partition_book);
            return self.violation(format!("{partition}/{offset} came again long after it was accepted"));
        };
        entry.most = entry.most.max(count);
        match entry.state {
            // A lower count was handed out before, and reached its member late.
            State::Accepted { count: accepted } if count > accepted => {
                drop(partition_book);
                self.violation(format!("{partition}/{offset} accepted at delivery {accepted} came again as {count}"));
            }
            State::Unseen => entry.state = State::Delivered,
            _ => {}
        }
    }

    /// The broker confirmed that the delivery with this count was accepted.
    pub(crate) fn accepted(&self, partition: i32, offset: i64, count: u8) {
        let mut partition_book = self.partition(partition);
        let Some(entry) = partition_book.entry(offset) else { return };
        match entry.state {
            // Below the start offset a broker has nothing to object to an acknowledgement whose lock has ended. The
            // counts may be equal: a leader that moves does not take along the count of a delivery under way.
            State::Accepted { count: accepted } => {
                self.counts.late.fetch_add(1, Ordering::Relaxed);
                entry.state = State::Accepted { count: accepted.max(count) };
            }
            _ => {
                entry.state = State::Accepted { count };
                self.counts.accepted.fetch_add(1, Ordering::Relaxed);
                self.counts.maybe.fetch_add(partition_book.advance(), Ordering::Relaxed);
            }
        }
    }

    /// An acceptance was sent, and what became of it is not known.
    pub(crate) fn unknown(&self, partition: i32, offset: i64) {
        let mut partition_book = self.partition(partition);
        if let Some(entry) = partition_book.entry(offset)
            && entry.state == State::Delivered
        {
            entry.state = State::Maybe;
        }
    }

    pub(crate) fn outcome(&self, name: &'static str, records: u64) {
        *self.counts.outcomes.lock().expect("not poisoned").entry(name).or_default() += records;
    }

    /// The partition ends at this offset: all before it were seen, and no other.
    pub(crate) fn ends_at(&self, partition: usize, end: i64) -> bool {
        let book = self.partition(partition as i32);
        let seen = book.base + book.entries.len() as i64;
        if seen != end {
            eprintln!("partition {partition} ends at {end}, its last record that was seen is {}", seen - 1);
        }
        seen == end
    }

    pub(crate) fn line(&self) -> String {
        let counts = &self.counts;
        let (accepted, backlog) = (counts.accepted.load(Ordering::Relaxed), self.backlog());
        let violations = self.violations.lock().expect("not poisoned").len();
        format!("accepted {accepted:>11}  waiting {backlog:>7}  violations {violations}")
    }

    /// Prints what happened; whether all of it may happen.
    pub(crate) fn report(&self, length: Duration, troubles: &BTreeMap<&'static str, u64>, drained: bool) -> bool {
        let (mut maybe, mut lost, mut worn) = (self.counts.maybe.load(Ordering::Relaxed), 0, 0);
        for (index, partition) in self.partitions.iter().enumerate() {
            let partition = partition.lock().expect("not poisoned");
            for (at, entry) in partition.entries.iter().enumerate() {
                match entry.state {
                    State::Accepted { .. } => {}
                    State::Maybe => maybe += 1,
                    _ if entry.most >= super::DELIVERIES => worn += 1,
                    state => {
                        lost += 1;
                        let offset = partition.base + at as i64;
                        self.violation(format!("{index}/{offset} is lost: {state:?}, {} deliveries", entry.most));
                    }
                }
            }
        }
        let counts = &self.counts;
        let accepted = counts.accepted.load(Ordering::Relaxed);
        println!(
            "records      {accepted} accepted, {maybe} accepted with the answer lost, {worn} at the delivery limit"
        );
        println!("rate         {:.0} records/s over {} s", accepted as f64 / length.as_secs_f64(), length.as_secs());
        println!(
            "redelivered  {} of {}",
            counts.redeliveries.load(Ordering::Relaxed),
            counts.deliveries.load(Ordering::Relaxed)
        );
        println!("late         {} acceptances below the start offset", counts.late.load(Ordering::Relaxed));
        println!("outcomes     {:?}", counts.outcomes.lock().expect("not poisoned"));
        println!("trouble      {troubles:?}");
        println!("lost         {}", if drained { lost.to_string() } else { format!("{lost} not settled") });
        let violations = self.violations.lock().expect("not poisoned");
        for violation in violations.iter().take(20) {
            println!("FAILED: {violation}");
        }
        violations.is_empty() && accepted > 0
    }

    fn partition(&self, partition: i32) -> std::sync::MutexGuard<'_, Partition> {
        self.partitions[partition as usize].lock().expect("not poisoned")
    }

    fn violation(&self, what: String) {
        let mut violations = self.violations.lock().expect("not poisoned");
        if violations.len() < 1_000 {
            violations.push(what);
        }
    }
}
