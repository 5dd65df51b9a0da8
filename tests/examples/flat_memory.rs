//! Consumes many records and fails if the consumer's memory grows: a process of its own, as the broker, which is in this
//! one, holds records.
//!
//! `cargo run --release -p kafka-share-tests --example flat_memory -- [--records 10000000] [--partitions 12]
//! [--prefetch 0] [--version embedded]`; with `--version 4.4.0` on a real broker. Memory is measured on Linux.

use kafka_share::admin::{AutoOffsetReset, NewTopic, ShareGroupSettings};
use kafka_share::{AcknowledgementMode, Admin, ClientConfig, KafkaShareConsumer, Outcome, Producer, ProducerRecord};
use kafka_share_broker::EmbeddedBroker;
use kafka_share_tests::kafka::RealKafka;
use kafka_share_tests::memory::resident;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TOPIC: &str = "flat";
const GROUP: &str = "flat";
/// The first word of a consumer's command line.
const CONSUMER: &str = "consumer";
/// Bytes of a record's value.
const VALUE: usize = 100;
/// Records that may wait beside those that the consumer has not told of yet.
const BACKLOG: u64 = 300_000;
/// How often a consumer says where it is.
const STEPS: u64 = 100;
/// By how much its memory may grow after the first tenth.
const GROWTH: u64 = 4 << 20;
/// A consumer that gets nothing for so long gives up.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
struct Plan {
    records: u64,
    partitions: i32,
    prefetch: usize,
    version: String,
}

fn plan() -> Result<Plan, String> {
    let mut plan = Plan { records: 10_000_000, partitions: 12, prefetch: 0, version: "embedded".into() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u32>().map_err(|_| format!("{word} needs a number, not {value:?}"));
        match word.as_str() {
            "--records" => plan.records = u64::from(number()?).max(STEPS),
            "--partitions" => plan.partitions = i32::try_from(number()?).map_err(|e| e.to_string())?,
            "--prefetch" => plan.prefetch = number()? as usize,
            "--version" => plan.version = value,
            _ => return Err(format!("{word} is not an option; see the head of this example's source")),
        }
    }
    Ok(plan)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, servers, records, prefetch] = words.as_slice()
        && first == CONSUMER
    {
        let (records, prefetch) = (records.parse().expect("a number"), prefetch.parse().expect("a number"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(consume(servers, records, prefetch));
        return ExitCode::SUCCESS;
    }
    let plan = match plan() {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if runtime.block_on(run(&plan)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(plan: &Plan) -> bool {
    if plan.version == "embedded" {
        let broker = EmbeddedBroker::builder().start().await.expect("the embedded broker starts");
        return measure(&broker.bootstrap_servers(), plan).await;
    }
    let Some(kafka) = RealKafka::start("flat_memory", &plan.version) else { return false };
    measure(&kafka.bootstrap(), plan).await
}

/// Produces as fast as a consumer consumes, and looks at the consumer's memory.
async fn measure(servers: &str, plan: &Plan) -> bool {
    let admin = Admin::new(ClientConfig::new(servers)).expect("an admin");
    // What was consumed goes; what waits is far less than this.
    let topic = NewTopic::new(TOPIC, plan.partitions).config("retention.bytes", "67108864");
    admin.create_topic(topic).await.expect("the topic is created");
    let settings = ShareGroupSettings::new().auto_offset_reset(AutoOffsetReset::Earliest);
    admin.apply_share_group_settings(GROUP, &settings).await.expect("the group is configured");

    let started = Instant::now();
    let consumed = Arc::new(AtomicU64::new(0));
    let consumer = {
        let (servers, plan, consumed) = (servers.to_owned(), plan.clone(), Arc::clone(&consumed));
        tokio::task::spawn_blocking(move || watch(&servers, &plan, &consumed))
    };
    let producer = Producer::builder(servers).linger(Duration::from_millis(5)).build().expect("a producer");
    let value = [7; VALUE];
    let mut sent = 0;
    while sent < plan.records && !consumer.is_finished() {
        if sent - consumed.load(Ordering::Relaxed).min(sent) > BACKLOG + plan.records / STEPS {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        for _ in 0..1_000.min(plan.records - sent) {
            let partition = (sent % plan.partitions as u64) as i32;
            drop(producer.send(ProducerRecord::new(TOPIC).partition(partition).value(&value[..])).await.expect("sent"));
            sent += 1;
        }
    }
    producer.flush().await.expect("all is written");
    let samples = consumer.await.expect("no panic");
    report(plan, &samples, started.elapsed())
}

/// Runs a consumer to its end. Its memory at each step, as far as it is measured.
fn watch(servers: &str, plan: &Plan, consumed: &AtomicU64) -> Option<Vec<u64>> {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args([CONSUMER, servers, &plan.records.to_string(), &plan.prefetch.to_string()]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("this program starts once more");
    let mut samples = Vec::new();
    for line in BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok) {
        let mut numbers = line.split(' ').filter_map(|word| word.parse::<u64>().ok());
        consumed.store(numbers.next().unwrap_or_default(), Ordering::Relaxed);
        samples.extend(numbers.next());
    }
    child.wait().is_ok_and(|status| status.success()).then_some(samples)
}

fn report(plan: &Plan, samples: &Option<Vec<u64>>, length: Duration) -> bool {
    let Some(samples) = samples else {
        println!("FAILED: the consumer did not come to the end");
        return false;
    };
    let rate = plan.records as f64 / length.as_secs_f64();
    println!("records      {} in {:.1} s, {rate:.0}/s", plan.records, length.as_secs_f64());
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let Some((first, rest)) = samples.get(samples.len() / 10..).and_then(<[u64]>::split_first) else {
        println!("memory       not measured on this system");
        return true;
    };
    let shown: Vec<_> = samples.iter().step_by(samples.len().div_ceil(10)).map(|s| format!("{:.1}", mib(*s))).collect();
    let most = rest.iter().max().unwrap_or(first);
    let growth = most.saturating_sub(*first);
    println!(
        "memory       {:.1} MiB after a tenth, {:.1} at most since; from start to end {}",
        mib(*first),
        mib(*most),
        shown.join(" ")
    );
    if growth > GROWTH {
        println!("FAILED: it grows by {:.1} MiB, more than {:.1}", mib(growth), mib(GROWTH));
    }
    growth <= GROWTH
}

/// The consumer: accepts record by record, and sees that each acknowledgement was taken.
async fn consume(servers: &str, records: u64, prefetch: usize) {
    let consumer = KafkaShareConsumer::builder(servers, GROUP)
        .acknowledgement_mode(AcknowledgementMode::Explicit)
        .prefetch(prefetch)
        .build()
        .expect("a consumer");
    consumer.subscribe([TOPIC]).expect("subscribed");
    let (mut got, mut taken, mut told, mut last) = (0, 0, 0, Instant::now());
    while got < records {
        let polled = consumer.poll(Duration::from_secs(1)).await.expect("a poll");
        if !polled.is_empty() {
            last = Instant::now();
        }
        assert!(last.elapsed() < PATIENCE, "{got} of {records} records came");
        for record in &polled {
            consumer.acknowledge(&record).expect("it is held");
            got += 1;
        }
        taken += outcomes(&consumer);
        if got / (records / STEPS) > told {
            told = got / (records / STEPS);
            let memory = resident().map_or_else(String::new, |bytes| bytes.to_string());
            writeln!(std::io::stdout(), "{got} {memory}").expect("somebody reads");
        }
    }
    consumer.close(PATIENCE).await.expect("closed");
    taken += outcomes(&consumer);
    assert_eq!((got, taken), (records, records), "records, and acknowledgements that were taken");
}

fn outcomes(consumer: &KafkaShareConsumer) -> u64 {
    let outcomes = consumer.poll_outcomes();
    assert!(outcomes.iter().all(|o| o.outcome == Outcome::Acknowledged), "{outcomes:?}");
    outcomes.iter().map(|o| (o.last_offset - o.first_offset + 1) as u64).sum()
}
