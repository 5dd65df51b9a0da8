//! `kshare produce`: a record for each line of the standard input.

use crate::cluster_args::ClusterArgs;
use crate::exit::{Failure, note};
use crate::progress::{self, Line};
use crate::signals::Interrupt;
use crate::text;
use clap::Args;
use kafka_share::admin::NewTopic;
use kafka_share::net::Cluster;
use kafka_share::{Admin, Delivery, ErrorCode, Producer, ProducerRecord};
use serde_json::json;
use std::collections::VecDeque;
use std::io::{BufRead, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Lines that may be read ahead of the producer.
const READ_AHEAD: usize = 1024;
/// Records whose delivery is not looked at yet.
const MAX_OPEN: usize = 100_000;
/// Longer lines fit no request, unless `max.request.size` is raised.
const MAX_LINE: u64 = 64 << 20;
const CLOSE: Duration = Duration::from_secs(130);

/// Options of `kshare produce`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each line is the value of a record, as bytes and without its line end; an empty line is an empty value. A topic that
does not exist is created where the broker does that by itself (auto.create.topics.enable), or with --partitions.

Examples:
  seq 100 | kshare produce orders --bootstrap-server HOST:9092
  kshare produce orders --bootstrap-server HOST:9092 --key-separator : < key-value.txt
  kshare produce orders --config client.properties --partitions 6 --property compression.type=zstd < lines.txt

Properties are those of Kafka's producer. The exit code is 0 only if every line was written."
)]
pub(crate) struct ProduceArgs {
    /// Topic to write to
    topic: String,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// What stands between key and value in each line; without it records have no key
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    key_separator: Option<String>,
    /// Create the topic with so many partitions if it does not exist
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=100_000))]
    partitions: Option<i32>,
    /// Print how much was written as a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ProduceArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::new()?;
    let mut builder = Producer::builder("");
    for (name, value) in args.cluster.properties()? {
        builder.set(&name, &value)?;
    }
    let cluster = args.cluster.connect().await?;
    prepare_topic(&args, &cluster).await?;
    let producer = builder.cluster(cluster).build()?;
    let mut run = Run { args: &args, producer: &producer, open: VecDeque::new(), written: 0, bytes: 0 };
    let result = run.lines(interrupt).await;
    let (written, bytes) = (run.written, run.bytes);
    let _ = producer.close(CLOSE).await;
    if args.json {
        text::print_json(&json!({ "topic": args.topic, "records": written, "bytes": bytes }))?;
    }
    match result {
        Ok(()) if args.json => Ok(()),
        Ok(()) => {
            note(format_args!("{written} records written to topic {:?}", args.topic));
            Ok(())
        }
        Err(failure) => Err(failure.context(format_args!("after {written} records were written to {:?}", args.topic))),
    }
}

/// Sees that the topic exists, before the first line is taken.
async fn prepare_topic(args: &ProduceArgs, cluster: &Arc<Cluster>) -> Result<(), Failure> {
    let admin = Admin::on(Arc::clone(cluster));
    let found = admin.describe_topics(&[args.topic.as_str()]).await?;
    match found.into_iter().next().map(|(_, outcome)| outcome) {
        Some(Err(error)) if error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {}
        Some(Err(error)) => return Err(error.into()),
        _ => return Ok(()),
    }
    if let Some(partitions) = args.partitions {
        let created = admin.create_topic(NewTopic::new(args.topic.as_str(), partitions));
        return match progress::during("creating the topic", created).await {
            // Somebody else was faster.
            Err(error) if error.code() != Some(ErrorCode::TOPIC_ALREADY_EXISTS) => Err(error.into()),
            _ => Ok(()),
        };
    }
    let limit = std::time::Instant::now() + Duration::from_secs(10).min(cluster.config().api_timeout());
    let created = progress::during("waiting for the topic", cluster.topic(&args.topic, true, limit)).await;
    created.map(|_| ()).map_err(|error| match error.code() {
        Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => Failure::new(format_args!(
            "topic {:?} does not exist, and the broker does not create it by itself: --partitions N creates it",
            args.topic
        )),
        _ => error.into(),
    })
}

struct Run<'a> {
    args: &'a ProduceArgs,
    producer: &'a Producer,
    /// Line numbers and deliveries that are not known to be written.
    open: VecDeque<(u64, Delivery)>,
    written: u64,
    bytes: u64,
}

impl Run<'_> {
    /// Sends all lines and waits until each is written.
    async fn lines(&mut self, mut interrupt: Interrupt) -> Result<(), Failure> {
        let mut lines = read_lines();
        let mut shown = Line::new();
        let mut number = 0;
        let result = loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = interrupt.wait() => break Err(Failure::new("interrupted")),
            };
            number += 1;
            let sent = match line {
                None => break Ok(()),
                Some(Err(error)) => Err(Failure::new(format_args!("standard input, line {number}: {error}"))),
                Some(Ok(line)) => self.send(number, &line).await,
            };
            if let Err(failure) = sent {
                break Err(failure);
            }
            shown.say(|| format!("{} records written", self.written));
        };
        // Also after an error: what was sent is on its way, and the user wants to know how far it came.
        let settled = self.settle_all().await;
        shown.clear();
        result.and(settled)
    }

    async fn send(&mut self, number: u64, line: &[u8]) -> Result<(), Failure> {
        let at = |error: &dyn std::fmt::Display| format!("standard input, line {number}: {error}");
        let record = ProducerRecord::new(self.args.topic.as_str());
        let record = match &self.args.key_separator {
            None => record.value(line),
            Some(separator) => {
                let text = separator.as_bytes();
                let Some(place) = line.windows(text.len()).position(|w| w == text) else {
                    return Err(Failure::new(at(&format_args!("there is no key: {separator:?} is missing"))));
                };
                record.key(&line[..place]).value(&line[place + text.len()..])
            }
        };
        let delivery = self.producer.send(record).await.map_err(|error| Failure::new(at(&error)))?;
        self.bytes += line.len() as u64;
        self.open.push_back((number, delivery));
        if self.open.len() >= MAX_OPEN {
            self.settle_first().await?;
        }
        while self.open.front().is_some_and(|(_, delivery)| delivery.try_result().is_some()) {
            self.settle_first().await?;
        }
        Ok(())
    }

    async fn settle_first(&mut self) -> Result<(), Failure> {
        let Some((number, delivery)) = self.open.pop_front() else { return Ok(()) };
        delivery.await.map_err(|error| Failure::new(format_args!("line {number} was not written: {error}")))?;
        self.written += 1;
        Ok(())
    }

    async fn settle_all(&mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        while !self.open.is_empty() {
            let settled = self.settle_first().await;
            result = result.and(settled);
        }
        result
    }
}

type Lines = mpsc::Receiver<Result<Vec<u8>, String>>;

/// Reads lines in a thread of its own: nothing else can wait for the standard input and for other things too.
fn read_lines() -> Lines {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        while let Some(line) = next_line(&mut input) {
            let failed = line.is_err();
            if sender.blocking_send(line).is_err() || failed {
                return;
            }
        }
    });
    receiver
}

fn next_line(input: &mut impl BufRead) -> Option<Result<Vec<u8>, String>> {
    let mut line = Vec::new();
    match input.take(MAX_LINE + 1).read_until(b'\n', &mut line) {
        Err(error) => Some(Err(error.to_string())),
        Ok(0) => None,
        Ok(_) if line.ends_with(b"\n") => {
            line.pop();
            Some(Ok(line))
        }
        Ok(length) if length as u64 > MAX_LINE => Some(Err(format!("it is longer than {MAX_LINE} bytes"))),
        Ok(_) => Some(Ok(line)),
    }
}
