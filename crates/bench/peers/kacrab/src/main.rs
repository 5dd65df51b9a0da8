//! kacrab as a peer of `kshare bench`.

use kacrab::consumer::ShareConsumer;
use kacrab::producer::{Producer, ProducerRecord};
use std::collections::VecDeque;
use std::error::Error;
use std::time::{Duration, Instant};

/// A client that gets nothing for so long gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Records whose outcome is not known; `send` waits for nothing, so the application has to.
const UNSETTLED: usize = 10_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

// As `kshare`'s own client.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["consume", servers, topic, group, records] => consume(servers, topic, group, records.parse()?).await,
        ["produce", servers, topic, records, size, partitions] => {
            produce(servers, topic, records.parse()?, size.parse()?, partitions.parse()?).await
        }
        ["transactions", servers, topic, group, output, each, records] => {
            transactions(servers, topic, group, output, each, records.parse()?).await
        }
        _ => Err("usage: kacrab-peer consume|produce|transactions ..; see kshare bench --help".into()),
    }
}

async fn consume(servers: &str, topic: &str, group: &str, wanted: usize) -> Outcome<()> {
    let mut consumer = consumer(servers, topic, group, &[]).await?;
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
            consumer.accept(record)?;
            records += 1;
        }
        last = Instant::now();
    }
    let seconds = first.map_or(0.0, |first: Instant| (last - first).as_secs_f64());
    consumer.commit().await?;
    consumer.close().await;
    println!("{{\"records\": {records}, \"seconds\": {seconds}}}");
    Ok(())
}

async fn produce(servers: &str, topic: &str, records: usize, size: usize, partitions: usize) -> Outcome<()> {
    let producer = Producer::from_map([("bootstrap.servers", servers)]).await?;
    let value = bytes::Bytes::from(vec![b'x'; size]);
    let first = Instant::now();
    let mut unsettled = VecDeque::new();
    for n in 0..records {
        let record = ProducerRecord::new(topic, i32::try_from(n % partitions)?).value(value.clone());
        unsettled.push_back(producer.send(record)?);
        if unsettled.len() > UNSETTLED
            && let Some(oldest) = unsettled.pop_front()
        {
            oldest.await?;
        }
    }
    producer.flush().await?;
    let seconds = first.elapsed().as_secs_f64();
    producer.close().await?;
    println!("{{\"records\": {records}, \"seconds\": {seconds}}}");
    Ok(())
}

async fn transactions(
    servers: &str,
    topic: &str,
    group: &str,
    output: &str,
    each: &str,
    wanted: usize,
) -> Outcome<()> {
    let producer = Producer::from_map([("bootstrap.servers", servers), ("transactional.id", group)]).await?;
    producer.init_transactions().await?;
    let exactly = [("max.poll.records", each), ("share.acquire.mode", "record_limit")];
    let mut consumer = consumer(servers, topic, group, &exactly).await?;
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
        producer.begin_transaction()?;
        for record in &polled {
            let value = record.record.value.clone().unwrap_or_default();
            // A record that fails has the commit fail.
            drop(producer.send(ProducerRecord::topic_value(output, value))?);
        }
        producer.commit_transaction().await?;
        for record in &polled {
            consumer.accept(record)?;
            records += 1;
        }
        transactions += 1;
        last = Instant::now();
    }
    let seconds = first.map_or(0.0, |first: Instant| (last - first).as_secs_f64());
    consumer.commit().await?;
    consumer.close().await;
    producer.close().await?;
    println!("{{\"records\": {records}, \"seconds\": {seconds}, \"transactions\": {transactions}}}");
    Ok(())
}

async fn consumer(servers: &str, topic: &str, group: &str, more: &[(&str, &str)]) -> Outcome<ShareConsumer> {
    let settings =
        [("bootstrap.servers", servers), ("group.id", group), ("share.acknowledgement.mode", "explicit")];
    let mut consumer = ShareConsumer::from_map(settings.into_iter().chain(more.iter().copied())).await?;
    consumer.subscribe([topic])?;
    Ok(consumer)
}
