//! Java's verdict: what its consumer reads of what we wrote, and which partitions its producer would have chosen.

use super::scenarios::topic;
use kafka_share::{Compression, PartitionReader, ProducerRecord, TransactionalProducer};
use kafka_share_tests::java::{JavaProject, available};
use std::fmt::Write;
use std::fs;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn java_chooses_the_same_partitions_for_ten_thousand_keys() {
    if !available("java_chooses_the_same_partitions_for_ten_thousand_keys") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (keys, chosen) = (dir.path().join("keys"), dir.path().join("chosen"));
    let list: Vec<String> = (0..10_000_u32).map(|i| "key-\u{e4}".repeat(i as usize % 5) + &i.to_string()).collect();
    fs::write(&keys, list.join("\n")).unwrap();
    let args = ["17".as_ref(), keys.as_os_str(), chosen.as_os_str()];
    JavaProject::build("clients").run("clients.Partitions", args);
    let chosen: Vec<i32> = fs::read_to_string(chosen).unwrap().lines().map(|l| l.parse().unwrap()).collect();
    let ours: Vec<i32> = list.iter().map(|k| kafka_share_core::producer::partition_for_key(k.as_bytes(), 17)).collect();
    assert_eq!(ours.len(), 10_000);
    assert_eq!(ours, chosen);
}

pub(crate) async fn java_reads_what_we_commit(bootstrap: &str) {
    if !available("java_reads_what_we_commit") {
        return;
    }
    let (cluster, topic) = topic(bootstrap, 3).await;
    // Older ones would fall to the topic's retention.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    for codec in Compression::ALL {
        let id = format!("{topic}-{}", codec.name());
        let builder = TransactionalProducer::builder("", &id).cluster(Arc::clone(&cluster)).compression(codec);
        let producer = builder.build().unwrap();
        producer.init_transactions().await.unwrap();
        for round in 0..4 {
            producer.begin_transaction().unwrap();
            for i in 0..50 {
                let mut record = ProducerRecord::new(&topic).timestamp(now + i64::from(i));
                record = record.key(format!("{} {round} {i}", codec.name()));
                if i % 7 != 0 {
                    record = record.value("value ".repeat(i as usize));
                }
                if i % 5 == 0 {
                    record = record.header("h", "1").header("h", "2").null_header("n").header("", "");
                }
                drop(producer.send(record).await.unwrap());
            }
            if round % 2 == 0 {
                producer.commit_transaction().await.unwrap();
            } else {
                producer.flush().await.unwrap();
                producer.abort_transaction().await.unwrap();
            }
        }
    }
    let mut reader = PartitionReader::read_committed(Arc::clone(&cluster), &topic).await.unwrap();
    let mut ours = Vec::new();
    for batch in reader.read_to_end().await.unwrap() {
        for r in &batch {
            let mut line =
                format!("{} {} {} {} {}", r.partition(), r.offset(), r.timestamp(), text(r.key()), text(r.value()));
            for header in r.headers() {
                write!(line, " {}={}", header.key_str().unwrap(), text(header.value)).unwrap();
            }
            ours.push(line);
        }
    }
    assert_eq!(ours.len(), 5 * 2 * 50);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("java");
    let args = [bootstrap.as_ref(), topic.as_ref(), file.as_os_str()];
    JavaProject::build("clients").run("clients.ReadCommitted", args);
    let mut java: Vec<String> = fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    java.sort();
    ours.sort();
    let missing: Vec<&String> = ours.iter().filter(|l| !java.contains(l)).collect();
    let extra: Vec<&String> = java.iter().filter(|l| !ours.contains(l)).collect();
    assert!(missing.is_empty() && extra.is_empty(), "Java misses {missing:#?} and has besides {extra:#?}");
    assert_eq!(java.len(), ours.len());
}

fn text(field: Option<&[u8]>) -> String {
    field.map_or_else(|| "null".to_owned(), |f| format!("[{}]", String::from_utf8_lossy(f)))
}
