//! krafka as a peer of `kshare bench`.

use krafka::share_consumer::{AcknowledgementMode, AcquireMode, ShareConsumer};
use krafka::{Kafka, Record};
use std::error::Error;
use std::time::{Duration, Instant};

/// A client that gets nothing for so long gives up.
const PATIENCE: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error>>;

// As `kshare`'s own client.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["consume", servers, topic, group, records] => {
            consume(&Kafka::builder(servers).connect().await?, topic, group, records.parse()?).await
        }
        ["produce", servers, topic, records, size, partitions] => {
            let kafka = Kafka::builder(servers).connect().await?;
            produce(&kafka, topic, records.parse()?, size.parse()?, partitions.parse()?).await
        }
        ["transactions", servers, topic, group, output, each, records] => {
            let kafka = Kafka::builder(servers).connect().await?;
            transactions(&kafka, topic, group, output, each.parse()?, records.parse()?).await
        }
        _ => Err("usage: krafka-peer consume|produce|transactions ..; see kshare bench --help".into()),
    }
}

async fn consume(kafka: &Kafka, topic: &str, group: &str, wanted: usize) -> Outcome<()> {
    let consumer = consumer(kafka, topic, group, 500, AcquireMode::BatchOptimized).await?;
    let (mut records, mut first, mut last) = (0, None, Instant::now());
    while records < wanted {
        let polled = consumer.poll(Duration::from_secs(1)).await?;
        if polled.is_empty() && last.elapsed() > PATIENCE {
            return Err(format!("{records} of {wanted} records came").into());
        }
        if polled.is_empty() {
            continue;
        }
        first.get_or_insert_with(Instant::now);
        for record in &polled {
            consumer.ack(record)?;
        }
        records += polled.len();
        last = Instant::now();
    }
    let seconds = first.map_or(0.0, |first: Instant| (last - first).as_secs_f64());
    finish(&consumer).await?;
    println!("{{\"records\": {records}, \"seconds\": {seconds}}}");
    Ok(())
}

async fn produce(kafka: &Kafka, topic: &str, records: usize, size: usize, partitions: usize) -> Outcome<()> {
    let producer = kafka.producer().idempotent(true).build().await?;
    let value = bytes::Bytes::from(vec![b'x'; size]);
    let first = Instant::now();
    for n in 0..records {
        let partition = i32::try_from(n % partitions)?;
        // What was not written is missing in the topic, which is counted.
        drop(producer.enqueue(Record::new(topic, value.clone()).partition(partition)).await?);
    }
    producer.flush().await?;
    let seconds = first.elapsed().as_secs_f64();
    producer.close().await?;
    println!("{{\"records\": {records}, \"seconds\": {seconds}}}");
    Ok(())
}

async fn transactions(
    kafka: &Kafka,
    topic: &str,
    group: &str,
    output: &str,
    each: i32,
    wanted: usize,
) -> Outcome<()> {
    let producer = kafka.producer().build_transactional(group).await?;
    let consumer = consumer(kafka, topic, group, each, AcquireMode::RecordLimit).await?;
    let (mut records, mut transactions, mut first, mut last) = (0, 0, None, Instant::now());
    while records < wanted {
        let polled = consumer.poll(Duration::from_secs(1)).await?;
        if polled.is_empty() && last.elapsed() > PATIENCE {
            return Err(format!("{records} of {wanted} records came").into());
        }
        if polled.is_empty() {
            continue;
        }
        first.get_or_insert_with(Instant::now);
        producer.begin()?;
        for record in &polled {
            let value = record.value.clone().unwrap_or_default();
            // A record that fails has the commit fail.
            drop(producer.enqueue(Record::new(output, value)).await?);
        }
        producer.commit().await?;
        for record in &polled {
            consumer.ack(record)?;
        }
        records += polled.len();
        transactions += 1;
        last = Instant::now();
    }
    let seconds = first.map_or(0.0, |first: Instant| (last - first).as_secs_f64());
    finish(&consumer).await?;
    producer.close().await?;
    println!("{{\"records\": {records}, \"seconds\": {seconds}, \"transactions\": {transactions}}}");
    Ok(())
}

async fn consumer(
    kafka: &Kafka,
    topic: &str,
    group: &str,
    poll: i32,
    acquire: AcquireMode,
) -> Outcome<ShareConsumer> {
    let consumer = kafka
        .share_consumer(group)
        .acknowledgement_mode(AcknowledgementMode::Explicit)
        .max_poll_records(poll)
        .acquire_mode(acquire)
        .build()
        .await?;
    consumer.subscribe([topic]).await?;
    Ok(consumer)
}

/// Commits the last acknowledgements and leaves.
async fn finish(consumer: &ShareConsumer) -> Outcome<()> {
    for (partition, outcome) in consumer.commit().await? {
        outcome.map_err(|error| format!("{}-{}: {error}", partition.topic, partition.partition))?;
    }
    consumer.close().await?;
    Ok(())
}
