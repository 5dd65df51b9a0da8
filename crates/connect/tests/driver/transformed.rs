//! Converters and transforms between Kafka and the sink.

use crate::common::{Bench, PATIENCE, Scripted, accepted, rejected, until};
use kafka_share_connect::{ConnectError, Worker, sinks};

/// Five with a schema, one that is not of its schema.
fn orders() -> Vec<String> {
    let schema = r#"{"type":"struct","optional":false,"fields":[{"field":"id","type":"int32"},{"field":"card","type":"string"}]}"#;
    let order = |id: &str| format!(r#"{{"schema":{schema},"payload":{{"id":{id},"card":"4242"}}}}"#);
    ["0", "1", "\"two\"", "3", "4", "5"].map(order).into()
}

const TRANSFORMS: [(&str, &str); 9] = [
    ("value.converter", "org.apache.kafka.connect.json.JsonConverter"),
    ("errors.tolerance", "all"),
    ("transforms", "mask,origin,route"),
    ("transforms.mask.type", "MaskField$Value"),
    ("transforms.mask.fields", "card"),
    ("transforms.origin.type", "InsertField$Value"),
    ("transforms.origin.offset.field", "at"),
    ("transforms.route.type", "TimestampRouter"),
    ("transforms.route.topic.format", "to_${topic}"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_converted_and_transformed_and_those_of_no_schema_are_rejected() {
    let bench = Bench::start(1).await;
    bench.load(1, orders(), false).await;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("out.jsonl");
    let file = [("connector.class", "file"), ("file", path.to_str().expect("path"))];
    let config = bench.config(&[&TRANSFORMS[..], &file].concat());
    let mut worker = Worker::start(config, sinks::connector("file").expect("sink")).await.expect("worker");
    let status = until(&worker, "5 + 1", |s| accepted(s) + rejected(s) == 6).await;
    assert_eq!((accepted(&status), rejected(&status)), (5, 1));
    bench.all_done(&[(0, 6)]).await;
    worker.stop(PATIENCE).await;
    let text = std::fs::read_to_string(path).expect("text");
    let rows: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let expected: Vec<_> = [0, 1, 3, 4, 5].map(|i| serde_json::json!({"id": i, "card": "", "at": i})).into();
    assert_eq!(rows.iter().map(|r| r["value"].clone()).collect::<Vec<_>>(), expected);
    assert!(rows.iter().all(|r| r["topic"] == "to_in"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r145_a_record_of_a_routed_topic_is_reported_by_where_it_lies() {
    let bench = Bench::start(1).await;
    bench.load(1, orders(), false).await;
    let sink = Scripted::new(|records, context| {
        for record in records.iter().filter(|r| r.offset == 4) {
            context.errant_record_reporter().report(record, "not mine");
        }
        Ok(())
    });
    let mut worker = Worker::start(bench.config(&TRANSFORMS), sink.boxed()).await.expect("worker");
    let status = until(&worker, "4 + 2", |s| accepted(s) + rejected(s) == 6).await;
    assert_eq!((accepted(&status), rejected(&status)), (4, 2));
    bench.all_done(&[(0, 6)]).await;
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kafka_sink_writes_to_the_topic_that_a_record_was_routed_to() {
    let bench = Bench::start(1).await;
    bench.load(1, crate::common::values(20), false).await;
    let config = bench.config(&[
        ("connector.class", "kafka"),
        ("target.topic", "${topic}t"),
        ("transforms", "route"),
        ("transforms.route.type", "TimestampRouter"),
        ("transforms.route.topic.format", "ou"),
    ]);
    let mut worker = Worker::start(config, sinks::connector("kafka").expect("sink")).await.expect("worker");
    until(&worker, "20 accepted", |s| accepted(s) == 20).await;
    worker.stop(PATIENCE).await;
    assert_eq!(bench.output().await, crate::common::values(20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_filter_drops_is_accepted_without_being_put() {
    for bench in Bench::both(1).await {
        bench.load(1, crate::common::values(20), false).await;
        let mut sink = Scripted::new(|_, _| Err(ConnectError::fatal("nothing was to come")));
        sink.sends = true;
        let config = bench.config(&[
            ("share.delivery.semantics", "exactly-once"),
            ("transforms", "none"),
            ("transforms.none.type", "Filter"),
            ("transforms.none.predicate", "traced"),
            ("transforms.none.negate", "true"),
            ("predicates", "traced"),
            ("predicates.traced.type", "HasHeaderKey"),
            ("predicates.traced.name", "trace"),
        ]);
        let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
        let status = until(&worker, "20 accepted", |s| accepted(s) == 20).await;
        assert_eq!(rejected(&status), 0);
        bench.all_done(&[(0, 20)]).await;
        worker.stop(PATIENCE).await;
        assert!(sink.puts().is_empty() && bench.output().await.is_empty());
    }
}
