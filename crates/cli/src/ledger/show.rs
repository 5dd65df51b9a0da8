//! `kshare ledger describe` and `check`.

use super::Common;
use crate::exit::{Failure, note};
use crate::{progress, text};
use clap::Args;
use kafka_share::ledger::{LedgerDescription, LedgerIntent, LedgerPartition};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Options of `kshare ledger describe`.
#[derive(Debug, Args)]
#[command(
    after_help = "INTENTS are transactions whose records the ledger still answers for; OPEN ones have not ended, and others wait for their
records. TO-CONFIRM counts records that are done and that the broker was not told of, as far as start offsets show: they
are not delivered to be worked on again, but acknowledged.

Examples:
  kshare ledger describe --bootstrap-server HOST:9092
  kshare ledger describe --json --bootstrap-server HOST:9092 | jq '.partitions[].open'"
)]
pub(super) struct DescribeArgs {
    #[command(flatten)]
    common: Common,
}

/// Options of `kshare ledger check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Wrong are: settings of the topic, records that are not of a ledger, of a newer format or damaged, and transactions that
have been open for longer than --older-than.

Examples:
  kshare ledger check --bootstrap-server HOST:9092
  kshare ledger check --older-than 2m --bootstrap-server HOST:9092 || kshare ledger describe --bootstrap-server HOST:9092"
)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    common: Common,
    /// Age from which an open transaction is wrong
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = text::duration)]
    older_than: Duration,
}

pub(super) async fn describe(args: DescribeArgs) -> Result<(), Failure> {
    let (admin, topic) = args.common.open().await?;
    let found = progress::during("reading the ledger", admin.describe_ledger(&topic)).await?;
    if args.common.json {
        return text::print_json(&as_json(&found));
    }
    let mut rows =
        vec![text::row([&"PARTITION", &"START", &"END", &"RECORDS", &"INTENTS", &"OPEN", &"TO-CONFIRM", &"FAULTS"])];
    rows.extend(found.partitions.iter().map(|p| {
        let open = p.intents.iter().filter(|i| i.open).count();
        let (start, end) = (p.start_offset, p.end_offset);
        text::row([&p.partition, &start, &end, &p.records, &p.intents.len(), &open, &to_confirm(p), &p.faults.len()])
    }));
    let mut out = std::io::stdout();
    text::table(&mut out, &rows)?;
    let open: Vec<(i32, &LedgerIntent)> = all(&found).filter(|(_, intent)| intent.open).collect();
    if !open.is_empty() {
        let mut rows = vec![
            vec![],
            text::row([&"OPEN-IN", &"OFFSET", &"TRANSACTIONAL-ID", &"PRODUCER", &"AGE", &"GROUPS", &"RECORDS"]),
        ];
        rows.extend(open.iter().map(|(partition, intent)| {
            let producer = format!("{}/{}", intent.producer_id, intent.producer_epoch);
            let groups = intent.groups.keys().cloned().collect::<Vec<_>>().join(", ");
            let records: u64 = intent.groups.values().sum();
            text::row([partition, &intent.offset, &intent.transactional_id, &producer, &age(intent), &groups, &records])
        }));
        text::table(&mut out, &rows)?;
    }
    tell_groups(&found)
}

/// Groups whose generation was raised, or that have left the ledger.
fn tell_groups(found: &LedgerDescription) -> Result<(), Failure> {
    let mut groups: BTreeMap<&String, (u64, &str)> = BTreeMap::new();
    for partition in &found.partitions {
        partition
            .generations
            .iter()
            .for_each(|(group, generation)| groups.entry(group).or_insert((0, "no")).0 = *generation);
        partition.left.iter().for_each(|group| groups.entry(group).or_insert((0, "no")).1 = "yes");
    }
    if groups.is_empty() {
        return Ok(());
    }
    let mut rows = vec![vec![], text::row([&"GROUP", &"GENERATION", &"LEFT"])];
    rows.extend(groups.iter().map(|(group, (generation, left))| text::row([group, generation, left])));
    text::table(&mut std::io::stdout(), &rows)
}

pub(super) async fn check(args: CheckArgs) -> Result<(), Failure> {
    let (admin, topic) = args.common.open().await?;
    // The settings are looked at on the way.
    let found = progress::during("reading the ledger", admin.describe_ledger(&topic)).await?;
    let mut wrong: Vec<String> = found.partitions.iter().flat_map(|p| p.faults.clone()).collect();
    for (partition, intent) in all(&found) {
        if intent.open && since(intent) > args.older_than {
            wrong.push(format!(
                "ledger partition {partition}, offset {}: the transaction of {:?} has been open for {}, and others wait for its \
                 records: `kshare ledger compact` ends it",
                intent.offset,
                intent.transactional_id,
                age(intent)
            ));
        }
    }
    if args.common.json {
        text::print_json(&json!({ "topic": topic, "wrong": wrong }))?;
    } else if wrong.is_empty() {
        let intents = all(&found).count();
        let line = format!("ledger {topic}: nothing wrong; {}", text::count(intents, "intent"));
        text::table(&mut std::io::stdout(), &[vec![line]])?;
    } else {
        wrong.iter().for_each(note);
    }
    match wrong.len() {
        0 => Ok(()),
        some => Err(Failure::new(format_args!("ledger {topic:?}: {}", text::count(some, "fault")))),
    }
}

fn all(found: &LedgerDescription) -> impl Iterator<Item = (i32, &LedgerIntent)> {
    found.partitions.iter().flat_map(|p| p.intents.iter().map(|intent| (p.partition, intent)))
}

fn to_confirm(partition: &LedgerPartition) -> String {
    let done = partition.intents.iter().filter(|i| !i.open && !i.outdated);
    let unknown = done.clone().any(|i| i.unconfirmed.is_none());
    let known: u64 = done.filter_map(|i| i.unconfirmed).sum();
    if unknown { format!("{known}+") } else { known.to_string() }
}

fn since(intent: &LedgerIntent) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_millis(u64::try_from(intent.timestamp).unwrap_or(0)))
}

fn age(intent: &LedgerIntent) -> String {
    format!("{:.1}s", since(intent).as_secs_f64())
}

fn as_json(found: &LedgerDescription) -> Value {
    let intent = |i: &LedgerIntent| {
        json!({
            "offset": i.offset,
            "transactional_id": i.transactional_id,
            "producer_id": i.producer_id,
            "producer_epoch": i.producer_epoch,
            "two_phase": i.two_phase,
            "native": i.native,
            "timestamp": i.timestamp,
            "age_ms": u64::try_from(since(i).as_millis()).unwrap_or(u64::MAX),
            "groups": i.groups,
        })
    };
    let partition = |p: &LedgerPartition| {
        let done = p.intents.iter().filter(|i| !i.open && !i.outdated);
        json!({
            "partition": p.partition,
            "start_offset": p.start_offset,
            "end_offset": p.end_offset,
            "records": p.records,
            "intents": p.intents.len(),
            "to_confirm": done.filter_map(|i| i.unconfirmed).sum::<u64>(),
            "open": p.intents.iter().filter(|i| i.open).map(intent).collect::<Vec<_>>(),
            "generations": p.generations,
            "left": p.left,
            "faults": p.faults,
        })
    };
    json!({ "topic": found.topic, "partitions": found.partitions.iter().map(partition).collect::<Vec<_>>() })
}
