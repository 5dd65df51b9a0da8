//! krafka as a peer of `kshare bench`: BOOTSTRAP-SERVERS TOPIC GROUP RECORDS.

use krafka::Kafka;
use krafka::share_consumer::AcknowledgementMode;
use std::error::Error;
use std::time::{Duration, Instant};

/// A client that gets nothing for so long gives up.
const PATIENCE: Duration = Duration::from_secs(60);

// As `kshare`'s own client.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [servers, topic, group, wanted] = &arguments[..] else {
        return Err("usage: krafka-peer BOOTSTRAP-SERVERS TOPIC GROUP RECORDS".into());
    };
    let wanted: usize = wanted.parse()?;
    let kafka = Kafka::builder(servers.as_str()).connect().await?;
    let consumer =
        kafka.share_consumer(group.as_str()).acknowledgement_mode(AcknowledgementMode::Explicit).build().await?;
    consumer.subscribe([topic]).await?;
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
    for (partition, outcome) in consumer.commit().await? {
        outcome.map_err(|error| format!("{}-{}: {error}", partition.topic, partition.partition))?;
    }
    consumer.close().await?;
    println!("{{\"records\": {records}, \"seconds\": {seconds}}}");
    Ok(())
}
