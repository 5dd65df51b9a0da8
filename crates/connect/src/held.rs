//! Which records a task works on, in few words.

use kafka_share::ShareRecords;
use std::fmt;
use std::sync::Arc;

/// Runs of records that are named; of more only their number is.
const MAX_RUNS: usize = 16;

/// The records of a poll. Looked at only where somebody asks, which is where a task has failed.
#[derive(Clone, Default)]
pub(crate) struct Held(pub(crate) Option<Arc<ShareRecords>>);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({self})")
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs = Runs::default();
        for part in self.0.iter().flat_map(|records| records.partitions()) {
            part.iter().for_each(|record| runs.add(part.topic(), part.partition(), record.offset()));
        }
        runs.fmt(f)
    }
}

#[derive(Debug)]
struct Run<'a> {
    topic: &'a str,
    partition: i32,
    first: i64,
    last: i64,
}

/// Records by topic, partition and offset.
#[derive(Debug, Default)]
struct Runs<'a> {
    runs: Vec<Run<'a>>,
    more: usize,
}

impl<'a> Runs<'a> {
    fn add(&mut self, topic: &'a str, partition: i32, offset: i64) {
        if let Some(run) = self.runs.last_mut()
            && self.more == 0
            && run.partition == partition
            && run.last + 1 == offset
            && run.topic == topic
        {
            run.last = offset;
        } else if self.runs.len() < MAX_RUNS {
            self.runs.push(Run { topic, partition, first: offset, last: offset });
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for Runs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, run) in self.runs.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}-{}@{}", run.topic, run.partition, run.first)?;
            if run.last > run.first {
                write!(f, "..{}", run.last)?;
            }
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_and_bounded() {
        let mut held = Runs::default();
        assert_eq!(held.to_string(), "");
        for (topic, partition, offset) in
            [("a", 0, 5), ("a", 0, 6), ("a", 0, 8), ("a", 1, 9), ("b", 1, 10), ("b", 1, 11)]
        {
            held.add(topic, partition, offset);
        }
        assert_eq!(held.to_string(), "a-0@5..6, a-0@8, a-1@9, b-1@10..11");
        (0..100).for_each(|i| held.add("a", 0, 2 * i));
        assert_eq!(held.runs.len(), MAX_RUNS);
        assert!(held.to_string().ends_with(" and 88 more"), "{held}");
    }
}
