//! What is refused before any record is read, and how it is said.

use crate::common::{Bench, PATIENCE, Scripted, accepted, until, values};
use crate::gated::Gated;
use kafka_share::admin::NewTopic;
use kafka_share::{Producer, ProducerRecord};
use kafka_share_connect::{SinkConnector, Worker, sinks, unknown_settings};

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

/// A misspelt setting or topic does not keep a connector from running, and is not kept to itself either.
#[tokio::test]
async fn unknown_settings_and_missing_topics_are_told_by_name_and_the_connector_runs() {
    let bench = Bench::start(1).await;
    let extra = [
        ("topics", "in,not-yet"),
        ("errors.tolerence", "all"),
        ("consumer.override.max.pol.records", "5"),
        ("consumer.override.allow.auto.create.topics", "false"),
        ("target.topic", "out"),
    ];
    let config = bench.config(&extra);
    let sink = built_in("kafka");
    let told = unknown_settings(&config, &*sink);
    let names: Vec<&str> = told.iter().map(|p| p.setting.as_str()).collect();
    assert_eq!(names, ["errors.tolerence", "consumer.override.max.pol.records"], "{told:?}");
    says(&told[0].message, &["errors.tolerence", "is errors.tolerance meant?"]);
    says(&told[1].message, &["is max.poll.records meant?"]);
    let mut worker = Worker::start(config, sink).await.expect("it runs all the same");
    assert_eq!(worker.missing_topics(), ["not-yet"]);
    bench.load(1, values(3), false).await;
    until(&worker, "3 accepted", |s| accepted(s) == 3).await;
    // Once it is there, its records come, without anybody doing anything.
    bench.admin.create_topic(NewTopic::new("not-yet", 1)).await.expect("topic");
    let producer = Producer::builder(&bench.servers).build().expect("producer");
    drop(producer.send(ProducerRecord::new("not-yet").value(&b"late"[..])).await.expect("send"));
    producer.close(PATIENCE).await.expect("close");
    until(&worker, "4 accepted", |s| accepted(s) == 4).await;
    worker.stop(PATIENCE).await;
}

/// A task holds no more than it polls, where brokers can do that: what waits behind a long put would lose its locks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_acquires_no_more_than_it_polls_unless_it_is_told_to() {
    for (mode, most) in [(None, 5), (Some("batch_optimized"), 40)] {
        let bench = Bench::start(1).await;
        // One batch: brokers that keep to no limit acquire all of it.
        bench.load(1, values(40), false).await;
        let sink = Gated::new(|_, _| true);
        let mut extra = vec![("consumer.override.max.poll.records", "5")];
        extra.extend(mode.map(|mode| ("consumer.override.share.acquire.mode", mode)));
        let mut first = Worker::start(bench.config(&extra), sink.boxed()).await.expect("worker");
        let mut inside = sink.inside.subscribe();
        tokio::time::timeout(PATIENCE, inside.wait_for(|t| !t.is_empty())).await.expect("a put").expect("a sink");
        // Whoever comes next gets all that the first does not hold.
        let other = Scripted::new(|_, _| Ok(()));
        let mut second = Worker::start(bench.config(&[]), other.boxed()).await.expect("worker");
        if most == 5 {
            until(&second, "35 accepted", |s| accepted(s) == 35).await;
        }
        sink.open();
        until(&first, "the rest", |s| accepted(s) + accepted(&second.status()) == 40).await;
        assert!(accepted(&first.status()) >= 5, "{:?}", first.status());
        first.stop(PATIENCE).await;
        second.stop(PATIENCE).await;
        if most == 5 {
            assert_eq!(accepted(&first.status()), 5);
        }
    }
}
