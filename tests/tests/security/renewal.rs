//! Authentication that the broker takes for a second only, under load: nothing is lost, doubled, or told of.

use crate::good::{client, consumer};
use crate::stage::{RENEWED, Stage};
use kafka_share::net::{Cluster, Purpose};
use kafka_share::{Producer, ProducerRecord};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
/// Deliveries that are awaited at a time.
const WINDOW: usize = 500;
/// The only broker.
const NODE: i32 = 1;

pub(crate) async fn all(stage: &Stage) {
    let seconds = std::env::var("KAFKA_SHARE_RENEWAL_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(10);
    let each = Duration::from_secs(seconds) / 2;
    let password = "username=\"alice\" password=\"alice-secret\"";
    load("scram", &stage.sasl(RENEWED, "SCRAM-SHA-512", password), each).await;
    let token = "unsecuredLoginStringClaim_sub=\"alice\"";
    load("token", &stage.sasl(RENEWED, "OAUTHBEARER", token), each).await;
}

async fn load(name: &str, properties: &crate::stage::Properties, time: Duration) {
    let topic = format!("renewed-{name}");
    let cluster = Cluster::new(client(properties)).expect("a cluster");
    let producer = Producer::builder("").cluster(Arc::clone(&cluster)).build().expect("a producer");
    producer.send(ProducerRecord::new(&topic).value("0")).await.expect("sent").await.expect("delivered");
    let connection = cluster.connection(NODE, Purpose::Produce).expect("a connection");
    let producer = Arc::new(producer);
    let sent = Arc::new(AtomicU64::new(1));
    let done = Arc::new(AtomicBool::new(false));
    let sending = tokio::spawn(send(Arc::clone(&producer), topic.clone(), Arc::clone(&sent), Instant::now() + time));
    let consumer = consumer(&topic, properties).await;
    let watch = tokio::spawn({
        let done = Arc::clone(&done);
        async move {
            sending.await.expect("the sender");
            done.store(true, Ordering::Release);
        }
    });
    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    let until = Instant::now() + time + LONG;
    while !done.load(Ordering::Acquire) || (seen.len() as u64) < sent.load(Ordering::Acquire) {
        assert!(Instant::now() < until, "{name}: {} of {}", seen.len(), sent.load(Ordering::Acquire));
        for record in &consumer.poll(Duration::from_millis(200)).await.expect("poll") {
            let text = std::str::from_utf8(record.value().expect("a value")).expect("a number");
            *seen.entry(text.parse().expect("a number")).or_default() += 1;
        }
    }
    watch.await.expect("the watch");
    // A connection that broke would have been replaced without a word.
    let now = cluster.connection(NODE, Purpose::Produce).expect("a connection");
    assert!(!connection.is_closed() && now.same_as(&connection), "{name}: the connection did not last");
    let outcomes = consumer.commit_sync(LONG).await.expect("committed");
    assert!(outcomes.values().all(|o| *o == kafka_share::Outcome::Acknowledged), "{name}: {outcomes:?}");
    consumer.close(LONG).await.expect("closed");
    println!("{name}: {} records in {time:?}", seen.len());
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), (0..sent.load(Ordering::Acquire)).collect::<Vec<_>>());
    assert!(seen.values().all(|count| *count == 1), "{name}: {:?}", seen.iter().find(|(_, count)| **count > 1));
}

async fn send(producer: Arc<Producer>, topic: String, sent: Arc<AtomicU64>, until: Instant) {
    let mut n = 1_u64;
    while Instant::now() < until {
        let mut window = Vec::with_capacity(WINDOW);
        for _ in 0..WINDOW {
            let delivery = producer.send(ProducerRecord::new(&topic).value(n.to_string())).await.expect("sent");
            window.push(delivery);
            n += 1;
        }
        for delivery in window {
            delivery.await.expect("delivered");
        }
        sent.store(n, Ordering::Release);
    }
}
