//! The shell: tcp and in-memory connections, slow clients, many connections, shutdown, faults from outside.

use bytes::Bytes;
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction};
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{ApiKey, ErrorCode, FetchRequest, MetadataRequest, ProduceRequest, Request, frame};
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

fn encode<R: Request>(request: &R) -> Vec<u8> {
    frame::encode_request(request, R::MAX_VERSION, 9, &Str::from_static("test")).unwrap().to_vec()
}

async fn receive<R: Request>(stream: &mut (impl AsyncRead + Unpin)) -> R::Response {
    let size = stream.read_i32().await.unwrap();
    let mut body = vec![0; size as usize];
    stream.read_exact(&mut body).await.unwrap();
    frame::decode_response::<R>(Bytes::from(body), R::MAX_VERSION).unwrap().1
}

async fn call<R: Request, S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, request: &R) -> R::Response {
    stream.write_all(&encode(request)).await.unwrap();
    receive::<R>(stream).await
}

async fn connect(broker: &EmbeddedBroker) -> TcpStream {
    TcpStream::connect(("127.0.0.1", broker.nodes()[0].port)).await.unwrap()
}

fn metadata(topic: &str) -> MetadataRequest {
    let topic = MetadataRequestTopic { name: Some(Str::from(topic)), ..Default::default() };
    MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: true, ..Default::default() }
}

fn produce(topic: Uuid, value: &[u8]) -> ProduceRequest {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(0, None, Some(value), []).unwrap();
    let data = PartitionProduceData { records: Some(builder.finish().unwrap().freeze()), ..Default::default() };
    let topic = TopicProduceData { topic_id: topic, partition_data: vec![data], ..Default::default() };
    ProduceRequest { acks: -1, timeout_ms: 1000, topic_data: vec![topic], ..Default::default() }
}

fn fetch(topic: Uuid, wait: i32) -> FetchRequest {
    let partition = FetchPartition {
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    FetchRequest {
        max_wait_ms: wait,
        min_bytes: 1,
        max_bytes: 8 << 20,
        session_epoch: -1,
        topics: vec![FetchTopic { topic_id: topic, partitions: vec![partition], ..Default::default() }],
        ..Default::default()
    }
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn both_kinds_of_connection_serve_the_same_cluster() {
    let broker = EmbeddedBroker::builder().nodes(2).start().await.unwrap();
    let mut tcp = connect(&broker).await;
    let mut memory = broker.connect_in_memory(2).unwrap();
    let created = call(&mut tcp, &metadata("t")).await;
    let seen = call(&mut memory, &metadata("t")).await;
    assert_eq!(created.topics[0].topic_id, seen.topics[0].topic_id);
    assert_eq!(seen.brokers.len(), 2);
    assert!(broker.connect_in_memory(3).is_none());
}

#[tokio::test]
async fn a_slow_client_holds_nobody_up() {
    let broker = EmbeddedBroker::builder().topic("t", 1).start().await.unwrap();
    let mut quick = connect(&broker).await;
    let topic = call(&mut quick, &metadata("t")).await.topics[0].topic_id;
    for _ in 0..8 {
        let response = call(&mut quick, &produce(topic, &vec![7; 900_000])).await;
        assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
    }
    // It asks for far more than it ever reads: at some point its requests stay in its own socket.
    let mut slow = broker.connect_in_memory(1).unwrap();
    let request = encode(&fetch(topic, 0));
    let stuffing = tokio::spawn(async move {
        loop {
            slow.write_all(&request).await.unwrap();
        }
    });
    for _ in 0..200 {
        assert!(!call(&mut quick, &metadata("t")).await.brokers.is_empty());
    }
    stuffing.abort();
}

#[tokio::test]
async fn hostile_bytes_close_only_their_own_connection() {
    let broker = EmbeddedBroker::builder().configure(|c| c.max_request_bytes = 1000).start().await.unwrap();
    let mut good = connect(&broker).await;
    let hostile: [&[u8]; 4] =
        [b"GET / HTTP/1.1\r\n\r\n", &[0x16, 3, 1, 2, 0, 1, 0], &[0xff; 16], &[0, 0, 0, 8, 0, 3, 0, 99, 0, 0, 0, 1]];
    for bytes in hostile {
        let mut bad = connect(&broker).await;
        bad.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        // Closed; a reset counts as well.
        let _ = bad.read_to_end(&mut rest).await;
        assert!(rest.is_empty());
    }
    assert_eq!(call(&mut good, &metadata("t")).await.topics[0].error_code, ErrorCode::NONE);
}

#[tokio::test]
async fn faults_work_from_outside() {
    let broker = EmbeddedBroker::builder().start().await.unwrap();
    let mut stream = connect(&broker).await;
    let id = broker.fault(Fault::new(FaultAction::CutAfter(6)).key(ApiKey::METADATA));
    stream.write_all(&encode(&metadata("t"))).await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!((rest.len(), broker.fault_hits(id)), (6, 1));
    let mut stream = connect(&broker).await;
    assert_eq!(call(&mut stream, &metadata("t")).await.topics.len(), 1);
}

#[tokio::test]
async fn waits_end_when_the_clock_is_moved() {
    let broker = EmbeddedBroker::builder().topic("t", 1).start().await.unwrap();
    let mut stream = connect(&broker).await;
    let topic = call(&mut stream, &metadata("t")).await.topics[0].topic_id;
    stream.write_all(&encode(&fetch(topic, 3_600_000))).await.unwrap();
    until(|| broker.with_cluster(|cluster, _| cluster.waiting_requests()) == 1).await;
    broker.advance_clock(std::time::Duration::from_secs(3600));
    assert!(receive::<FetchRequest>(&mut stream).await.error_code.is_ok());
}

#[tokio::test]
async fn a_restarted_node_closes_and_comes_back() {
    let broker = EmbeddedBroker::builder().nodes(2).topic("t", 2).start().await.unwrap();
    let mut stream = connect(&broker).await;
    // An answer shows that the node has accepted the connection.
    call(&mut stream, &metadata("t")).await;
    assert!(broker.restart_node(1));
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    let mut stream = connect(&broker).await;
    let response = call(&mut stream, &metadata("t")).await;
    assert!(response.topics[0].partitions.iter().all(|p| p.leader_id == 2));
}

#[tokio::test]
async fn shutdown_frees_the_ports() {
    let broker = EmbeddedBroker::builder().start().await.unwrap();
    let mut stream = connect(&broker).await;
    call(&mut stream, &metadata("t")).await;
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], broker.nodes()[0].port));
    broker.shutdown().await;
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    let again = EmbeddedBroker::builder().listen([address]).start().await.unwrap();
    let taken = EmbeddedBroker::builder().listen([address]).start().await.unwrap_err();
    assert!(taken.to_string().starts_with(&format!("cannot listen on {address}: ")));
    drop(again);
}
