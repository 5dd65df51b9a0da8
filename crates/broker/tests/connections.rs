//! Connections come, go and hang: nothing is left of them, and none holds up the others.

use bytes::Bytes;
use kafka_share_broker::{BrokerBuilder, EmbeddedBroker};
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{ErrorCode, FetchRequest, MetadataRequest, ProduceRequest, Request, frame};
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

fn encode<R: Request>(request: &R) -> Vec<u8> {
    frame::encode_request(request, R::MAX_VERSION, 9, &Str::from_static("test")).unwrap().to_vec()
}

async fn call<R: Request, S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, request: &R) -> R::Response {
    stream.write_all(&encode(request)).await.unwrap();
    let size = stream.read_i32().await.unwrap();
    let mut body = vec![0; size as usize];
    stream.read_exact(&mut body).await.unwrap();
    frame::decode_response::<R>(Bytes::from(body), R::MAX_VERSION).unwrap().1
}

fn metadata() -> MetadataRequest {
    let topic = MetadataRequestTopic { name: Some(Str::from_static("t")), ..Default::default() };
    MetadataRequest { topics: Some(vec![topic]), ..Default::default() }
}

fn fetch(topic_id: Uuid, max_wait_ms: i32) -> FetchRequest {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = FetchTopic { topic_id, partitions: vec![partition], ..Default::default() };
    FetchRequest {
        max_wait_ms,
        min_bytes: 1,
        max_bytes: 8 << 20,
        session_epoch: 0,
        topics: vec![topic],
        ..Default::default()
    }
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

/// A broker without timers of its own: with tokio's paused time only the connections' clocks run.
async fn broker(builder: BrokerBuilder) -> EmbeddedBroker {
    builder.manual_clock().topic("t", 1).start().await.unwrap()
}

/// Opens `count` connections in turns of a hundred, which break off in every way, and waits until the broker knows.
async fn come_and_go(broker: &EmbeddedBroker, topic: Uuid, count: usize) {
    let waiting = encode(&fetch(topic, 60_000));
    for _ in 0..count / 100 {
        let mut open = Vec::new();
        for i in 0..100 {
            let mut stream = broker.connect_in_memory(1).unwrap();
            // Nothing; a part of a frame; a request that waits; one that is answered; garbage.
            let bytes: &[u8] = match i % 5 {
                0 => &[],
                1 => &waiting[..9],
                2 => &waiting,
                3 => &encode(&metadata()),
                _ => &[0xff; 32],
            };
            // A connection may be closed before all is written.
            let _ = stream.write_all(bytes).await;
            open.push(stream);
        }
        until(|| broker.connection_count() >= 80 - 20).await;
        drop(open);
        until(|| broker.connection_count() == 0).await;
    }
}

#[test]
fn ten_thousand_connections_leave_no_memory_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let broker = runtime.block_on(broker(EmbeddedBroker::builder()));
    let topic = broker.with_cluster(|cluster, _| cluster.topic_id("t").unwrap());
    // Tables grow to the size that a hundred connections and all fetch sessions need.
    runtime.block_on(come_and_go(&broker, topic, 5_500));
    let used = allocation_counter::measure(|| runtime.block_on(come_and_go(&broker, topic, 10_000)));
    let dump = broker.dump();
    assert_eq!((dump.connections, dump.waiting_requests), (0, 0));
    assert!(used.bytes_current.abs() < 64 << 10, "{used:?}");
}

#[tokio::test(start_paused = true)]
async fn half_open_connections_are_closed_and_busy_ones_are_not() {
    let broker = broker(EmbeddedBroker::builder()).await;
    let mut silent = broker.connect_in_memory(1).unwrap();
    let mut half = broker.connect_in_memory(1).unwrap();
    half.write_all(&encode(&metadata())[..7]).await.unwrap();
    let mut busy = broker.connect_in_memory(1).unwrap();
    for _ in 0..4 {
        assert_eq!(call(&mut busy, &metadata()).await.topics.len(), 1);
        tokio::time::sleep(Duration::from_secs(599)).await;
    }
    for stream in [&mut silent, &mut half] {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty());
    }
    assert_eq!((call(&mut busy, &metadata()).await.topics.len(), broker.connection_count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_closed_and_holds_nobody_up() {
    let broker = broker(EmbeddedBroker::builder()).await;
    let mut quick = broker.connect_in_memory(1).unwrap();
    let topic_id = call(&mut quick, &metadata()).await.topics[0].topic_id;
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(broker.now().wall_ms, None, Some(&vec![7; 900_000]), []).unwrap();
    let records = Some(builder.finish().unwrap().freeze());
    let data = vec![PartitionProduceData { records, ..Default::default() }];
    let topic_data = vec![TopicProduceData { topic_id, partition_data: data, ..Default::default() }];
    let produce = ProduceRequest { acks: -1, topic_data, ..Default::default() };
    let answer = call(&mut quick, &produce).await;
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
    let mut slow = broker.connect_in_memory(1).unwrap();
    let request = encode(&fetch(topic_id, 0));
    // Until its requests stay in its own socket: the broker takes no more of them than it has room for answers.
    while tokio::time::timeout(Duration::from_secs(1), slow.write_all(&request)).await.is_ok() {
        assert_eq!(call(&mut quick, &metadata()).await.topics.len(), 1);
    }
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(call(&mut quick, &metadata()).await.topics.len(), 1);
    }
    assert_eq!(broker.connection_count(), 1, "the slow one is closed");
    drop(slow);
}

#[tokio::test]
async fn connections_past_the_limit_wait_until_there_is_room() {
    let broker = broker(EmbeddedBroker::builder().configure(|config| config.max_connections = 2)).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(broker.connect_in_memory(1).unwrap());
    }
    let mut third = open.pop().unwrap();
    third.write_all(&encode(&metadata())).await.unwrap();
    for stream in &mut open {
        assert_eq!(call(stream, &metadata()).await.topics.len(), 1);
    }
    assert_eq!(broker.connection_count(), 2);
    open.pop();
    let size = third.read_i32().await.unwrap();
    assert!(size > 0, "served once another one has gone");
    assert_eq!(broker.connection_count(), 2);
}
