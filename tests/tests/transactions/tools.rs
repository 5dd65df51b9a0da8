//! The verdict of Kafka's own tools: `kafka-transactions` knows our producers and their transactions, and
//! `kafka-dump-log` finds every batch in the broker's files whole, with its sequence numbers in order.

use super::scenarios::topic;
use kafka_share::{Compression, ProducerRecord, TransactionalProducer};
use kafka_share_tests::kafka::RealKafka;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Records of one batch.
const RECORDS: usize = 10;

pub(crate) async fn kafka_tools_find_our_batches_well_formed(kafka: &RealKafka) {
    let (cluster, topic) = topic(&kafka.bootstrap(), 1).await;
    let id = |codec: Compression| format!("{topic}-{}", codec.name());
    let mut producers = Vec::new();
    for codec in Compression::ALL {
        let builder = TransactionalProducer::builder("", &id(codec)).cluster(Arc::clone(&cluster)).compression(codec);
        // It stays open for longer than the tools take to start.
        // What is sent together is one batch, which the flush ends.
        let builder = builder.transaction_timeout(Duration::from_secs(600)).linger(Duration::from_secs(5));
        let producer = builder.build().unwrap();
        producer.init_transactions().await.unwrap();
        producer.begin_transaction().unwrap();
        send_batch(&producer, &topic).await;
        send_batch(&producer, &topic).await;
        producer.commit_transaction().await.unwrap();
        producer.begin_transaction().unwrap();
        send_batch(&producer, &topic).await;
        producers.push(producer);
    }
    let open = kafka_transactions(kafka, &["list"]);
    let open: BTreeMap<&str, &str> =
        open.iter().map(|row| (row["TransactionalId"].as_str(), &*row["TransactionState"])).collect();
    for codec in Compression::ALL {
        assert_eq!(open.get(id(codec).as_str()), Some(&"Ongoing"), "{open:?}");
    }
    let described = kafka_transactions(kafka, &["describe", "--transactional-id", &id(Compression::Zstd)]);
    let row = &described[0];
    assert_eq!((&*row["TransactionState"], &*row["TopicPartitions"]), ("Ongoing", &*format!("{topic}-0")), "{row:?}");
    let of_partition = kafka_transactions(kafka, &["describe-producers", "--topic", &topic, "--partition", "0"]);
    assert_eq!(of_partition.len(), Compression::ALL.len(), "{of_partition:?}");
    assert!(of_partition.iter().all(|p| p["LastSequence"] == "9" && p["CurrentTransactionStartOffset"] != "None"));
    for producer in producers {
        producer.abort_transaction().await.unwrap();
    }
    // The last markers come after the answer.
    let (until, all) = (Instant::now() + Duration::from_secs(60), 2 * Compression::ALL.len());
    loop {
        let dump = dump(kafka, &topic);
        if dump.matches("endTxnMarker: ").count() >= all || Instant::now() > until {
            return check(&dump);
        }
    }
}

async fn send_batch(producer: &TransactionalProducer, topic: &str) {
    for i in 0..RECORDS {
        let record = ProducerRecord::new(topic).key(i.to_string()).header("h", "1").null_header("n");
        // Every third is a tombstone.
        let record = if i % 3 == 0 { record } else { record.value("value ".repeat(i)) };
        drop(producer.send(record).await.unwrap());
    }
    producer.flush().await.unwrap();
}

type Row = BTreeMap<String, String>;

/// Rows of what `kafka-transactions` prints, by column.
fn kafka_transactions(kafka: &RealKafka, args: &[&str]) -> Vec<Row> {
    let mut command = kafka.tool("org.apache.kafka.tools.TransactionsCommand");
    let output = command.args(["--bootstrap-server", &kafka.bootstrap()]).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    let mut lines = text.lines().map(|line| line.split('\t').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>());
    let columns = lines.next().unwrap_or_default();
    lines.map(|cells| columns.iter().cloned().zip(cells).collect()).collect()
}

/// What `kafka-dump-log` prints of the one partition of a topic.
fn dump(kafka: &RealKafka, topic: &str) -> String {
    let files = kafka.log_files(topic, 0);
    assert!(!files.is_empty(), "{topic} has no files");
    let mut command = kafka.tool("org.apache.kafka.tools.DumpLogSegments");
    let output = command.arg("--deep-iteration").arg("--files").args(files).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The value behind `name: ` in a line of the dump.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let at = line.find(&format!("{name}: ")).unwrap_or_else(|| panic!("no {name} in {line:?}"));
    line[at..].split_whitespace().nth(1).unwrap_or_default()
}

fn check(dump: &str) {
    let batches: Vec<&str> = dump.lines().filter(|line| line.starts_with("baseOffset: ")).collect();
    assert!(batches.iter().all(|batch| field(batch, "isvalid") == "true"), "{dump}");
    let (control, data): (Vec<&str>, Vec<&str>) = batches.iter().partition(|b| field(b, "isControl") == "true");
    let codecs: BTreeSet<&str> = data.iter().map(|batch| field(batch, "compresscodec")).collect();
    assert_eq!(codecs, Compression::ALL.map(Compression::name).into(), "{dump}");
    let mut sequences: BTreeMap<(&str, &str), Vec<(i32, i32)>> = BTreeMap::new();
    for batch in &data {
        assert_eq!((field(batch, "count"), field(batch, "isTransactional")), ("10", "true"), "{batch}");
        let (first, last) = (field(batch, "baseSequence").parse(), field(batch, "lastSequence").parse());
        let producer = (field(batch, "producerId"), field(batch, "producerEpoch"));
        sequences.entry(producer).or_default().push((first.unwrap(), last.unwrap()));
    }
    // The second transaction has the next epoch (transaction.version 2), and begins at 0.
    assert_eq!(sequences.len(), 2 * Compression::ALL.len(), "{sequences:?}");
    assert!(sequences.values().all(|s| s == &[(0, 9), (10, 19)] || s == &[(0, 9)]), "{sequences:?}");
    let ends = |what: &str| dump.lines().filter(|line| line.contains(&format!("endTxnMarker: {what}"))).count();
    let each = Compression::ALL.len();
    assert_eq!((control.len(), ends("COMMIT"), ends("ABORT")), (2 * each, each, each), "{dump}");
    let records: Vec<&str> =
        dump.lines().filter(|line| line.starts_with("| offset: ") && line.contains("headerKeys")).collect();
    let with_headers = records.iter().filter(|line| line.contains("headerKeys: [h,n]")).count();
    let tombstones =
        records.iter().filter(|line| line.contains("valueSize: -1") && line.contains("keySize: 1 ")).count();
    assert_eq!((with_headers, tombstones), (3 * each * RECORDS, 3 * each * 4), "{dump}");
}
