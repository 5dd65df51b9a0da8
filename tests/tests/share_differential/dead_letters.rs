//! Dead letter queues: what a real broker writes there, and where it does not.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::{FetchRequest, share_fetch_response};
use kafka_share_wire::Uuid;
use kafka_share_wire::records::{BatchIter, BatchOptions};

use crate::player::{A, Fetch, Player};

const ALLOWED: &[(&str, &str)] = &[("errors.deadletterqueue.group.enable", "true")];

/// Plays the script.
pub(crate) fn dead_letters(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "letters", 3, 20_000);
    p.join(&[A]);
    let name = format!("dlq.{}", p.group);
    let queue = p.create(&name, 2, ALLOWED);
    p.configure(&[("errors.deadletterqueue.topic.name", &name), ("share.delivery.count.limit", "2")]);
    for partition in 0..3 {
        p.produce(partition, 8);
    }
    for partition in 0..3 {
        p.fetch_some(A, partition, &[(partition, &[])]);
    }
    p.say("rejected, accepted, a gap");
    p.ack(A, 3, &[(2, &[(0, 3, &[3, 1, 0, 3]), (4, 7, &[3])])]);
    read(&mut p, queue, 0, 6);
    p.say("released up to the limit");
    p.ack(A, 4, &[(1, &[(0, 7, &[2])])]);
    let mut epoch = 5;
    for _ in 0..8 {
        let got = fetch(&mut p, epoch);
        epoch += 1;
        for (partition, first, last) in got {
            p.ack(A, epoch, &[(partition, &[(first, last, &[2])])]);
            epoch += 1;
        }
    }
    read(&mut p, queue, 1, 8);
    p.say("key and value come along");
    p.configure(&[("errors.deadletterqueue.copy.record.enable", "true")]);
    p.ack(A, epoch, &[(0, &[(1, 2, &[3])])]);
    read(&mut p, queue, 0, 8);
    let compressed = kafka_share_wire::compression::Compression::Gzip;
    p.produce_as(0, 3, None, BatchOptions { compression: compressed, ..BatchOptions::default() });
    p.fetch_with(A, epoch + 1, &[], &Fetch { wait_ms: 5_000, ..Fetch::default() });
    p.ack(A, epoch + 2, &[(0, &[(8, 10, &[3, 1, 3])])]);
    read(&mut p, queue, 0, 10);
    refused(&mut p, queue, epoch + 3);
    p.lines
}

/// Where nothing is written: the records are archived all the same.
fn refused(p: &mut Player, queue: Uuid, mut epoch: i32) {
    let group = p.group.clone();
    let (closed, missing, other) = (format!("dlq.closed-{group}"), format!("dlq.missing-{group}"), format!("x{group}"));
    p.create(&closed, 1, &[]);
    p.create(&other, 1, ALLOWED);
    for (offset, name) in [(3, closed), (4, missing), (5, other)] {
        p.say(format!("a queue that does not fit, {offset}"));
        p.configure(&[("errors.deadletterqueue.topic.name", &name)]);
        p.ack(A, epoch, &[(0, &[(offset, offset, &[3])])]);
        p.ack(A, epoch + 1, &[(0, &[(offset, offset, &[1])])]);
        epoch += 2;
    }
    p.ack(A, epoch, &[(0, &[(0, 0, &[1]), (6, 7, &[1])])]);
    p.ack(A, epoch + 1, &[(0, &[(0, 7, &[2])])]);
    read(p, queue, 0, 10);
}

fn fetch(p: &mut Player, epoch: i32) -> Vec<(i32, i64, i64)> {
    let request = p.fetch_request(A, epoch, &[], &Fetch { wait_ms: 500, ..Fetch::default() });
    let answer = p.call(&request);
    let ranges = |part: &share_fetch_response::PartitionData| {
        let index = part.partition_index;
        let one = move |a: &share_fetch_response::AcquiredRecords| (index, a.first_offset, a.last_offset);
        part.acquired_records.iter().map(one).collect::<Vec<_>>()
    };
    let got: Vec<_> = answer.responses.iter().flat_map(|topic| &topic.partitions).flat_map(ranges).collect();
    p.say(format!("fetch -> {got:?}"));
    got
}

/// Reads a queue's partition until `want` records are there, as a real broker writes them a moment later, and writes
/// them all down. How they are cut into batches depends on timing.
fn read(p: &mut Player, queue: Uuid, partition: i32, want: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut records = records_of(p, queue, partition);
    while records.len() < want && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
        records = records_of(p, queue, partition);
    }
    p.say(format!("queue {partition}:"));
    records.into_iter().for_each(|record| p.say(record));
}

fn records_of(p: &mut Player, queue: Uuid, partition: i32) -> Vec<String> {
    let asked = FetchPartition { partition, partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = FetchTopic { topic_id: queue, partitions: vec![asked], ..Default::default() };
    let request = FetchRequest { max_bytes: 1 << 20, topics: vec![topic], ..Default::default() };
    let answer = p.call(&request);
    let mut found = Vec::new();
    for batch in BatchIter::new(answer.responses[0].partitions[0].records.clone().unwrap_or_default()) {
        let batch = batch.expect("a batch").decode(1 << 20).expect("records");
        for record in batch.iter() {
            let record = record.expect("a record");
            let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            let headers: Vec<String> = record
                .headers
                .map(|h| format!("{}={}", h.key_str().unwrap_or("?"), text(h.value).unwrap_or_else(|| "null".into())))
                .collect();
            let headers = headers.join(" ").replace(&p.topic, "TOPIC");
            found.push(format!("{} {:?} {:?} {headers}", record.offset, text(record.key), text(record.value)));
        }
    }
    found
}
