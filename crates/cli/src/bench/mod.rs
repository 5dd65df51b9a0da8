//! `kshare bench`: what it costs to consume a topic as a share group, beside other clients in one run.

mod peer;
mod process;

use crate::cluster_args::ClusterArgs;
use crate::exit::{Failure, note};
use crate::{progress, text};
use clap::Args;
use kafka_share::admin::NewTopic;
use kafka_share::{Admin, Producer, ProducerRecord};
use kafka_share_broker::EmbeddedBroker;
use peer::PEER;
pub(crate) use peer::{PeerArgs, run as run_peer};
use process::Measured;
use serde_json::{Value, json};
use std::time::Duration;

/// Options of `kshare bench`.
#[derive(Debug, Args)]
#[command(
    after_help = "Fills a topic, and has each client consume all of it in a share group of its own, accepting every record explicitly,
one client after the other. A client is a process, and its whole processor time counts, start and end included. The
rate counts from its first record to its last.

--peer NAME=COMMAND adds a client. The command gets four more arguments: bootstrap servers, topic, group and number of
records. It consumes that many records, explicitly accepted, prints one line such as {\"records\": 1000000, \"seconds\": 4.2}
(from its first record to its last; what it commits after them is not in it) and exits with 0.

Without --bootstrap-server this process runs an embedded broker; its processor time is in no figure.

Examples:
  kshare bench
  kshare bench --bootstrap-server HOST:9092 --records 200000
  kshare bench --partitions 1 --prefetch 1000
  kshare bench --peer 'java=java -cp kafka-clients.jar:classes share.Bench'

Processor time and memory are measured on Linux only."
)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Records to consume
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Bytes of a record's value
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// Partitions of the topic
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(i32).range(1..))]
    partitions: i32,
    /// Records that this project's client fetches ahead while it works on others; its locks run meanwhile
    #[arg(long, value_name = "N", default_value_t = 0)]
    prefetch: usize,
    /// Another client: NAME=COMMAND; can be repeated
    #[arg(long, value_name = "NAME=COMMAND", value_parser = crate::cluster_args::pair)]
    peer: Vec<(String, String)>,
    /// JSON on standard output
    #[arg(long)]
    json: bool,
}

/// A client and what it took.
struct Row {
    name: String,
    measured: Measured,
}

pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    let broker = match args.cluster.is_given() {
        true => None,
        false => Some(EmbeddedBroker::builder().start().await.map_err(Failure::new)?),
    };
    let cluster = match &broker {
        Some(broker) => ClusterArgs { bootstrap_server: Some(broker.bootstrap_servers()), ..args.cluster.clone() },
        None => args.cluster.clone(),
    };
    let admin = Admin::new(cluster.client_config()?)?;
    let topic = format!("kshare-bench-{}", std::process::id());
    admin.create_topic(NewTopic::new(&topic, args.partitions)).await?;
    progress::during("filling the topic", fill(&args, &cluster, &topic)).await?;
    let rows = consume(&args, &admin, &cluster, &topic).await;
    let deleted = admin.delete_topics(&[&topic]).await;
    if let Err(error) = deleted {
        note(format_args!("topic {topic} is left behind: {error}"));
    }
    report(&args, &rows?)
}

async fn fill(args: &BenchArgs, cluster: &ClusterArgs, topic: &str) -> Result<(), Failure> {
    let mut builder = Producer::builder("").linger(Duration::from_millis(5));
    for (name, value) in cluster.properties()? {
        builder.set(&name, &value)?;
    }
    let producer = builder.build()?;
    let value = vec![b'x'; args.size];
    for n in 0..args.records {
        let partition = (n % args.partitions as u64) as i32;
        // Whether all were written shows at the flush.
        drop(producer.send(ProducerRecord::new(topic).partition(partition).value(&value[..])).await?);
    }
    producer.flush().await?;
    producer.close(Duration::from_secs(30)).await?;
    Ok(())
}

async fn consume(args: &BenchArgs, admin: &Admin, cluster: &ClusterArgs, topic: &str) -> Result<Vec<Row>, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::new(format_args!("this program's path: {error}")))?;
    let own = [own.display().to_string(), PEER.to_owned(), format!("--prefetch={}", args.prefetch)];
    let mut clients = vec![("kshare".to_owned(), own.to_vec())];
    for (name, command) in &args.peer {
        clients.push((name.clone(), command.split_whitespace().map(str::to_owned).collect()));
    }
    let properties = cluster.properties()?;
    let servers = properties.iter().rev().find(|(name, _)| name == "bootstrap.servers").map(|(_, value)| value.clone());
    let servers = servers.unwrap_or_default();
    let mut rows = Vec::new();
    for (name, command) in clients {
        let group = format!("{topic}-{name}");
        admin.alter_share_group_configs(&group, &[("share.auto.offset.reset", "earliest")]).await?;
        let more = [servers.clone(), topic.to_owned(), group, args.records.to_string()];
        let text = format!("{name} consumes");
        let measured = progress::during(&text, process::measure(&command, &more)).await;
        rows.push(Row { measured: measured.map_err(|error| error.context(&name))?, name });
    }
    Ok(rows)
}

fn report(args: &BenchArgs, rows: &[Row]) -> Result<(), Failure> {
    let rate = |row: &Row| row.measured.records as f64 / row.measured.seconds.max(1e-9);
    let per_million = |row: &Row| row.measured.cpu_seconds.map(|cpu| cpu * 1e6 / row.measured.records.max(1) as f64);
    let first = rows.first().ok_or_else(|| Failure::new("nothing was measured"))?;
    let ratio = |row: &Row| per_million(row).zip(per_million(first)).map(|(cpu, ours)| cpu / ours.max(1e-9));
    if args.json {
        let one = |row: &Row| {
            json!({
                "client": row.name, "records": row.measured.records, "seconds": row.measured.seconds,
                "records_per_second": rate(row), "cpu_seconds_per_million": per_million(row),
                "peak_memory_bytes": row.measured.peak_bytes, "cpu_ratio": ratio(row), "rate_ratio": rate(first) / rate(row),
            })
        };
        let what = json!({
            "records": args.records, "size": args.size, "partitions": args.partitions, "prefetch": args.prefetch,
        });
        return text::print_json(&json!({ "run": what, "clients": rows.iter().map(one).collect::<Vec<Value>>() }));
    }
    let shown = |figure: Option<f64>, digits: usize| figure.map_or_else(|| "-".into(), |f| format!("{f:.digits$}"));
    let mut table = vec![text::row([&"CLIENT", &"RECORDS/S", &"CPU S/MILLION", &"CPU RATIO", &"PEAK MIB"])];
    for row in rows {
        let peak = row.measured.peak_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
        let cells = [format!("{:.0}", rate(row)), shown(per_million(row), 3), shown(ratio(row), 2), shown(peak, 1)];
        table.push(text::row([&row.name as &dyn std::fmt::Display, &cells[0], &cells[1], &cells[2], &cells[3]]));
    }
    text::table(&mut std::io::stdout(), &table)
}
