//! Reading the output as a read_committed reader sees it, and counting.

use super::Plan;
use super::engine::Engine;
use super::input::place;
use super::state::Progress;
use super::task::{OFFSET_HEADER, PARTITION_HEADER, transform};
use crate::exit::Failure;
use kafka_share::{ReadRecord, TransactionalProducer};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What a read of the output found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// Committed records.
    pub(super) output: u64,
    /// Input records without output.
    pub(super) missing: u64,
    /// Those of them that were delivered four times or more, as far as members have told: a broker archives a record that was
    /// delivered as often as it allows.
    pub(super) given_up: u64,
    /// Output records beyond the first of their input record.
    pub(super) duplicated: u64,
    /// Output records without a source, or with a value that their source does not give.
    pub(super) foreign: u64,
}

/// Ends the transactions that dropped tasks left open, or with a commit on its way: until then they hold back what a
/// read_committed reader sees, and behind them it would find neither a record that is missing nor one that is there twice.
pub(super) async fn end_what_was_left(engine: &Engine, ids: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    for id in ids {
        TransactionalProducer::builder("", &id).cluster(engine.cluster()).build()?.init_transactions().await?;
    }
    Ok(())
}

/// Counts the output of so many records, which go through the lines again and again. Equal lines count apart, because each
/// output record names its source.
pub(super) async fn count(
    engine: &Engine,
    plan: &Plan,
    lines: &[String],
    progress: &Progress,
) -> Result<Counts, Failure> {
    let total = progress.total();
    let mut seen: HashMap<(i32, i64), u64> = HashMap::with_capacity(total);
    let mut counts = Counts::default();
    let mut reader = engine.reader(&plan.output_topic).await?;
    while let Some(batch) = reader.next_batch().await? {
        for record in &batch {
            counts.output += 1;
            let Some(source) = source(&record) else {
                counts.foreign += 1;
                continue;
            };
            let index = source.1 as usize * plan.partitions as usize + source.0 as usize;
            let expected = (index < total).then(|| transform(lines[index % lines.len()].as_bytes()));
            if expected.as_deref() != record.value() {
                counts.foreign += 1;
                continue;
            }
            *seen.entry(source).or_default() += 1;
        }
    }
    for index in 0..total {
        match seen.get(&place(index, plan.partitions)) {
            None => {
                counts.missing += 1;
                let often = progress.deliveries(place(index, plan.partitions));
                counts.given_up += u64::from(often.is_some());
                tracing::warn!(record = ?place(index, plan.partitions), deliveries = ?often, "missing in the output");
            }
            Some(n) => counts.duplicated += n - 1,
        }
    }
    Ok(counts)
}

/// Partition and offset that an output record came from.
fn source(record: &ReadRecord<'_>) -> Option<(i32, i64)> {
    let number =
        |name| header(record, name).and_then(|v| std::str::from_utf8(v).ok()).and_then(|v| v.parse::<i64>().ok());
    let (partition, offset) = (number(PARTITION_HEADER)?, number(OFFSET_HEADER)?);
    (partition >= 0 && offset >= 0).then_some((i32::try_from(partition).ok()?, offset))
}

/// Reads on in the output, from where it was left.
#[derive(Debug, Default)]
pub(super) struct Follower {
    positions: Vec<(i32, i64)>,
}

impl Follower {
    pub(super) fn new(partitions: i32) -> Self {
        Follower { positions: (0..partitions).map(|p| (p, 0)).collect() }
    }

    /// Notes what is committed since.
    pub(super) async fn follow(&mut self, engine: &Engine, plan: &Plan, progress: &Progress) -> Result<(), Failure> {
        let mut reader = engine.reader_from(&plan.output_topic, &self.positions).await?;
        while let Some(batch) = reader.next_batch().await? {
            let sources: Vec<(i32, i64)> = batch.iter().filter_map(|record| source(&record)).collect();
            progress.note_output(&sources);
            if let Some(last) = batch.iter().last() {
                self.positions[last.partition() as usize].1 = last.offset() + 1;
            }
        }
        Ok(())
    }
}

/// Value of a header.
fn header<'a>(record: &ReadRecord<'a>, name: &str) -> Option<&'a [u8]> {
    record.headers().find(|h| h.key_str() == Some(name)).and_then(|h| h.value)
}

/// When to look into the output, because nothing was committed for a while: a commit whose answer was lost is in the
/// output, and no task knows.
pub(super) struct IdleCheck {
    patience: Duration,
    last: Instant,
}

impl IdleCheck {
    pub(super) fn new(lock: Duration) -> Self {
        IdleCheck {
            patience: (lock + Duration::from_secs(1)).clamp(Duration::from_secs(3), Duration::from_secs(60)),
            last: Instant::now(),
        }
    }

    pub(super) fn is_due(&mut self, progress: &Progress) -> bool {
        let quiet = progress.last_commit().elapsed() >= self.patience && self.last.elapsed() >= self.patience;
        if quiet {
            self.last = Instant::now();
        }
        quiet
    }
}

/// Whether every record has its output, whatever the tasks know.
pub(super) async fn all_there(engine: &Engine, plan: &Plan, progress: &Progress) -> bool {
    let sources = async {
        let mut seen = std::collections::HashSet::new();
        let mut reader = engine.reader(&plan.output_topic).await?;
        while let Some(batch) = reader.next_batch().await? {
            for record in &batch {
                let part = |name| header(&record, name).map(<[u8]>::to_vec);
                seen.insert((part(PARTITION_HEADER), part(OFFSET_HEADER)));
            }
        }
        Ok::<usize, Failure>(seen.len())
    };
    match sources.await {
        Ok(found) => {
            tracing::info!(found, total = progress.total(), known = progress.committed(), "looked into the output");
            found >= progress.total()
        }
        Err(failure) => {
            tracing::info!(?failure, "the output cannot be read at the moment");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_args::ClusterArgs;
    use crate::demo::Semantics;
    use clap::Parser;
    use kafka_share::ProducerRecord;

    #[derive(Debug, Parser)]
    struct Given {
        #[command(flatten)]
        cluster: ClusterArgs,
    }

    /// Writes the output of the first line as a task does, in a transaction that is committed or left open.
    async fn write(engine: &Engine, plan: &Plan, task: u16, commit: bool) {
        let builder = TransactionalProducer::builder("", &plan.transactional_id(task)).cluster(engine.cluster());
        let producer = builder.build().unwrap();
        producer.init_transactions().await.unwrap();
        producer.begin_transaction().unwrap();
        let record = ProducerRecord::new(&plan.output_topic).partition(0).value("LINE");
        let record = record.header(PARTITION_HEADER, b"0").header(OFFSET_HEADER, b"0");
        producer.send(record).await.unwrap().await.unwrap();
        if commit {
            producer.commit_transaction().await.unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn duplicates_behind_a_transaction_left_open_are_counted() {
        let args = Given::parse_from(["demo"]);
        let engine = Engine::start(&args.cluster, 1, false, 1).await.unwrap();
        let plan = Plan {
            input_topic: "in".into(),
            output_topic: "out".into(),
            group: "group".into(),
            tasks: 2,
            partitions: 1,
            semantics: Semantics::ExactlyOnce,
            chaos: false,
            seed: 1,
            batch: 1,
            deadline: Instant::now() + Duration::from_secs(60),
            backend: "native",
            ledger: "ledger".into(),
            record_limit: false,
        };
        engine.prepare(&plan).await.unwrap();
        write(&engine, &plan, 0, true).await;
        write(&engine, &plan, 1, false).await;
        write(&engine, &plan, 0, true).await;
        end_what_was_left(&engine, plan.transactional_ids()).await.unwrap();
        let counts = count(&engine, &plan, &["line".to_owned()], &Progress::new(&plan, 1)).await.unwrap();
        assert_eq!((counts.output, counts.missing, counts.duplicated, counts.foreign), (2, 0, 1, 0));
    }
}
