//! The `metrics` facade: what a recorder is told, under Java's names.
#![cfg(feature = "metrics")]

use kafka_share::{Admin, ClientConfig, KafkaShareConsumer, Producer, ProducerRecord};
use kafka_share_broker::EmbeddedBroker;
use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// Keeps the last value of each metric.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, f64>>>);

struct One(Kept, String);

impl One {
    fn keep(&self, value: f64) {
        self.0.0.lock().unwrap().insert(self.1.clone(), value);
    }
}

impl CounterFn for One {
    fn increment(&self, _: u64) {
        unreachable!("counters are told as they are");
    }

    fn absolute(&self, value: u64) {
        self.keep(value as f64);
    }
}

impl GaugeFn for One {
    fn increment(&self, _: f64) {}

    fn decrement(&self, _: f64) {}

    fn set(&self, value: f64) {
        self.keep(value);
    }
}

fn name(kind: &str, key: &Key) -> String {
    let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
    format!("{kind} {} {}", key.name(), labels.join(","))
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(One(self.clone(), name("counter", key))))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(One(self.clone(), name("gauge", key))))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn a_recorder_is_told_by_itself() {
    let kept = Kept::default();
    metrics::set_global_recorder(kept.clone()).unwrap();
    let broker = EmbeddedBroker::builder().topic("orders", 1).start().await.unwrap();
    let servers = broker.bootstrap_servers();
    let admin = Admin::new(ClientConfig::new(&servers)).unwrap();
    admin.alter_share_group_configs("billing", &[("share.auto.offset.reset", "earliest")]).await.unwrap();
    let producer =
        Producer::from_properties([("bootstrap.servers", servers.as_str()), ("client.id", "maker")]).unwrap();
    producer.send(ProducerRecord::new("orders").value("42")).await.unwrap().await.unwrap();
    let consumer =
        KafkaShareConsumer::builder(&servers, "billing").client_config(|c| c.client_id("taker")).build().unwrap();
    consumer.subscribe(["orders"]).unwrap();
    let until = Instant::now() + LONG;
    while consumer.poll(Duration::from_millis(100)).await.unwrap().is_empty() {
        assert!(Instant::now() < until, "no record comes");
    }
    let expected = [
        "counter record-send-total group=producer-metrics,client-id=maker",
        "counter records-consumed-total group=consumer-share-fetch-manager-metrics,client-id=taker",
    ];
    while expected.iter().any(|name| kept.0.lock().unwrap().get(*name) != Some(&1.0)) {
        assert!(Instant::now() < until, "{:#?}", kept.0.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let all = kept.0.lock().unwrap().clone();
    assert_eq!(all["gauge buffer-total-bytes group=producer-metrics,client-id=maker"], 32.0 * 1024.0 * 1024.0);
    assert!(all.values().all(|value| value.is_finite()));
}
