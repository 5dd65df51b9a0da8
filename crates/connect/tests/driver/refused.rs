//! What is refused before any record is read, and how it is said.

use crate::common::{Bench, Scripted};
use kafka_share_connect::{SinkConnector, Worker, sinks};

const EXACTLY_ONCE: (&str, &str) = ("share.delivery.semantics", "exactly-once");

async fn refusal(bench: &Bench, extra: &[(&str, &str)], sink: Box<dyn SinkConnector>) -> String {
    match bench.try_config(extra) {
        Ok(config) => Worker::start(config, sink).await.expect_err("is refused").to_string(),
        Err(error) => error.to_string(),
    }
}

fn built_in(class: &str) -> Box<dyn SinkConnector> {
    sinks::connector(class).expect("sink")
}

fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {text}");
    }
}

#[tokio::test]
async fn exactly_once_needs_a_sink_and_a_mode_that_can() {
    let bench = Bench::start(1).await;
    let file = refusal(&bench, &[("file", "never-written"), EXACTLY_ONCE], built_in("file")).await;
    says(&file, &["exactly-once", "can only be at-least-once"]);
    assert!(!std::path::Path::new("never-written").exists());
    let implicit = [("target.topic", "out"), ("share.acknowledgement.mode", "implicit"), EXACTLY_ONCE];
    let implicit = refusal(&bench, &implicit, built_in("kafka")).await;
    says(&implicit, &["exactly-once", "share.acknowledgement.mode=explicit"]);
}

#[tokio::test]
async fn exactly_once_needs_one_cluster_that_offers_it() {
    let bench = Bench::with(1, |b| b.transactional_acks(false)).await;
    let sink = ("target.topic", "out");
    let advice = ["exactly-once", "share-ack-ledger", "does not exist", "kshare ledger create", "ledger.auto.create"];
    let neither = refusal(&bench, &[sink, EXACTLY_ONCE], built_in("kafka")).await;
    says(&neither, &[&advice[..], &["KIP-1289"]].concat());
    let backend = |way| ("share.ack.transaction.backend", way);
    says(&refusal(&bench, &[sink, EXACTLY_ONCE, backend("ledger")], built_in("kafka")).await, &advice);
    let native = refusal(&bench, &[sink, EXACTLY_ONCE, backend("native")], built_in("kafka")).await;
    says(&native, &["share.ack.transaction.backend=native", "KIP-1289", "auto or ledger"]);
    let both = refusal(&bench, &[sink, EXACTLY_ONCE, backend("both")], built_in("kafka")).await;
    says(&both, &["share.ack.transaction.backend=both", "KIP-1289", "auto or ledger"]);
    let not_compacted = [sink, EXACTLY_ONCE, ("share.ack.ledger.topic", "out"), ("ledger.auto.create", "true")];
    let not_compacted = refusal(&bench, &not_compacted, built_in("kafka")).await;
    says(&not_compacted, &["exactly-once", "\"out\"", "cleanup.policy", "compact"]);
    let (one, two) = (Bench::start(1).await, Bench::with(1, |b| b.seed(2)).await);
    let servers = two.servers.clone();
    let other = [("target.topic", "out"), EXACTLY_ONCE, ("producer.override.bootstrap.servers", servers.as_str())];
    says(&refusal(&one, &other, built_in("kafka")).await, &["another cluster", "producer"]);
}

#[tokio::test]
async fn other_group_protocols_are_refused_by_name() {
    let bench = Bench::start(1).await;
    for protocol in ["classic", "consumer"] {
        let extra = [("consumer.override.group.protocol", protocol)];
        let text = refusal(&bench, &extra, Scripted::new(|_, _| Ok(())).boxed()).await;
        says(&text, &[protocol, "consumer.override.group.protocol=share"]);
    }
}

#[tokio::test]
async fn settings_out_of_the_brokers_bounds_are_named() {
    let bench = Bench::start(1).await;
    for (name, value, mapped) in [
        ("share.acquisition.lock.timeout.ms", "10", "share.record.lock.duration.ms"),
        ("share.max.delivery.count", "1000", "share.delivery.count.limit"),
    ] {
        let text = refusal(&bench, &[(name, value)], Scripted::new(|_, _| Ok(())).boxed()).await;
        says(&text, &[name, value, mapped]);
    }
    let text = refusal(&bench, &[("file", "/no/such/folder/f")], built_in("file")).await;
    says(&text, &["file=/no/such/folder/f"]);
    says(&refusal(&bench, &[], built_in("kafka")).await, &["target.topic is missing"]);
    let routed = [
        ("target.topic", "out"),
        ("transforms", "r"),
        ("transforms.r.type", "org.apache.kafka.connect.transforms.TimestampRouter"),
    ];
    says(&refusal(&bench, &routed, built_in("kafka")).await, &["target.topic=out", "TimestampRouter", "${topic}"]);
}
