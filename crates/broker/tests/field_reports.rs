//! What hostile or odd clients did to other brokers, by the ids of the reports: each is answered, or its connection is
//! closed, and nobody else notices.

use bytes::Bytes;
use kafka_share_broker::{Cluster, ClusterConfig, ConnId, CoordinatorKind, NodeConfig, Now, Output};
use kafka_share_messages::frame::{decode_response, encode_request};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{
    ApiVersionsRequest, ErrorCode, FetchRequest, MetadataRequest, ProduceRequest, Request, ShareFetchRequest,
    ShareGroupHeartbeatRequest, fetch_request, share_fetch_request,
};
use kafka_share_wire::Str;
use kafka_share_wire::compression::Compression;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use std::collections::VecDeque;
use std::time::Duration;

/// More than a client needs to know of a refusal, and far less than what hostile counts claim.
const LITTLE: u64 = 4 << 20;

struct World {
    cluster: Cluster,
    now: Now,
    conn: ConnId,
    answers: VecDeque<Bytes>,
    closed: Vec<ConnId>,
}

impl World {
    fn new(node: i32, config: ClusterConfig) -> Self {
        let nodes = vec![
            NodeConfig { id: node, host: "localhost".into(), port: 1 },
            NodeConfig { id: node + 1, host: "localhost".into(), port: 2 },
        ];
        let mut cluster = Cluster::new(ClusterConfig { nodes, ..config }, 1);
        cluster.create_topic("t", 1).unwrap();
        let now = Now { mono: Duration::ZERO, wall_ms: 1_700_000_000_000 };
        cluster.move_leader(now, "t", 0, node);
        let conn = cluster.connect(now, node);
        World { cluster, now, conn, answers: VecDeque::new(), closed: Vec::new() }
    }

    /// Whether the connection lives on.
    fn frame(&mut self, frame: &[u8]) -> bool {
        // The size prefix is the connection's matter.
        let open = self.cluster.handle_frame(self.now, self.conn, Bytes::copy_from_slice(&frame[4..])).is_ok();
        self.take();
        open
    }

    fn take(&mut self) {
        while let Some(output) = self.cluster.poll_output() {
            match output {
                Output::Send { segments, .. } => self.answers.push_back(segments.concat().into()),
                Output::Close { conn } => self.closed.push(conn),
                Output::AdvanceClock { .. } => {}
            }
        }
    }

    fn send<R: Request>(&mut self, request: &R, correlation_id: i32) {
        assert!(self.frame(&encode(request, correlation_id)));
    }

    fn answer<R: Request>(&mut self) -> (i32, R::Response) {
        let answer = self.answers.pop_front().expect("an answer");
        decode_response::<R>(answer.slice(4..), R::MAX_VERSION).unwrap()
    }

    fn call<R: Request>(&mut self, request: &R) -> R::Response {
        self.send(request, 1);
        self.answer::<R>().1
    }

    fn produce(&mut self, records: Bytes) -> ErrorCode {
        let response = self.call(&self.produce_request(records));
        response.responses[0].partition_responses[0].error_code
    }

    fn produce_request(&self, records: Bytes) -> ProduceRequest {
        let data = PartitionProduceData { records: Some(records), ..Default::default() };
        let topic_id = self.cluster.topic_id("t").unwrap();
        let topic = TopicProduceData { topic_id, partition_data: vec![data], ..Default::default() };
        ProduceRequest { acks: -1, timeout_ms: 1_000, topic_data: vec![topic], ..Default::default() }
    }

    fn share_fetch(&self, epoch: i32, max_wait_ms: i32) -> ShareFetchRequest {
        let topic = share_fetch_request::FetchTopic {
            topic_id: self.cluster.topic_id("t").unwrap(),
            partitions: vec![share_fetch_request::FetchPartition::default()],
            ..Default::default()
        };
        ShareFetchRequest {
            group_id: Some(Str::from_static("g")),
            member_id: Some(Str::from_static("m")),
            share_session_epoch: epoch,
            max_wait_ms,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 10,
            batch_size: 10,
            topics: vec![topic],
            ..Default::default()
        }
    }

    fn join(&mut self, node: i32) {
        self.cluster.move_coordinator(self.now, CoordinatorKind::Group, "g", node);
        let beat = ShareGroupHeartbeatRequest {
            group_id: Str::from_static("g"),
            member_id: Str::from_static("m"),
            subscribed_topic_names: Some(vec![Str::from_static("t")]),
            ..Default::default()
        };
        assert_eq!(self.call(&beat).error_code, ErrorCode::NONE);
    }
}

fn encode<R: Request>(request: &R, correlation_id: i32) -> Vec<u8> {
    let client = Str::from_static("c");
    encode_request(request, R::MAX_VERSION, correlation_id, &client).unwrap().to_vec()
}

fn batch(options: BatchOptions, value: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options);
    builder.append(1_700_000_000_000, Some(b"key"), Some(value), []).unwrap();
    builder.finish().unwrap().freeze().to_vec()
}

/// Puts a big-endian number into a batch, and the CRC right.
fn forge(mut batch: Vec<u8>, at: usize, number: i32) -> Bytes {
    batch[at..at + 4].copy_from_slice(&number.to_be_bytes());
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch.into()
}

#[test]
fn r089_answers_never_overtake_each_other() {
    let mut world = World::new(1, ClusterConfig::default());
    world.join(1);
    world.send(&world.share_fetch(0, 500), 1);
    world.send(&ApiVersionsRequest::default(), 2);
    world.send(&MetadataRequest::default(), 3);
    assert!(world.answers.is_empty(), "what came later waits for the fetch");
    world.now = world.now.plus(Duration::from_millis(500));
    world.cluster.handle_timeout(world.now);
    world.take();
    assert_eq!(world.answer::<ShareFetchRequest>().0, 1);
    assert_eq!(world.answer::<ApiVersionsRequest>().0, 2);
    assert_eq!(world.answer::<MetadataRequest>().0, 3);
}

#[test]
fn r112_counts_that_the_frame_cannot_hold_take_no_memory() {
    let valid = encode(&World::new(1, ClusterConfig::default()).share_fetch(0, 0), 1);
    for at in 8..valid.len() {
        for claim in [&[0xff, 0xff, 0xff, 0xff, 0x07][..], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0x7f, 0xff, 0xff, 0xff]] {
            let mut world = World::new(1, ClusterConfig::default());
            let mut frame = valid[..at].to_vec();
            frame.extend_from_slice(claim);
            frame.extend_from_slice(&valid[at..]);
            let used = allocation_counter::measure(|| {
                let open = world.frame(&frame);
                assert_eq!(open, !world.closed.contains(&world.conn));
            });
            assert!(used.bytes_max < LITTLE, "{claim:x?} at {at}: {used:?}");
        }
    }
}

/// Kafka answers each mention; here the answer's size is bounded too, and what is usual is far below the bound.
#[test]
fn r112_naming_a_thing_over_and_over_takes_no_memory_without_bound() {
    use kafka_share_messages::DescribeConfigsRequest;
    use kafka_share_messages::describe_configs_request::DescribeConfigsResource;
    let mut world = World::new(1, ClusterConfig::default());
    let resource =
        DescribeConfigsResource { resource_type: 2, resource_name: Str::from_static("t"), ..Default::default() };
    let request = |times: usize| DescribeConfigsRequest {
        resources: vec![resource.clone(); times],
        include_synonyms: true,
        ..Default::default()
    };
    assert_eq!(world.call(&request(5_000)).results.len(), 5_000);
    let hostile = encode(&request(2_000_000), 1);
    let used = allocation_counter::measure(|| assert!(!world.frame(&hostile)));
    assert!(used.bytes_max < 1 << 30, "a frame of {} bytes: {used:?}", hostile.len());
    assert_eq!((world.closed.len(), world.answers.len()), (1, 0));
}

#[test]
fn r113_batches_that_lie_about_their_length_or_count_are_refused() {
    const LENGTH: usize = 8;
    const LAST_OFFSET_DELTA: usize = 23;
    const COUNT: usize = 57;
    let good = batch(BatchOptions::default(), b"value");
    for (at, number) in [
        (LENGTH, i32::MIN),
        (LENGTH, i32::MAX),
        (LENGTH, -1),
        (LENGTH, 0),
        (COUNT, i32::MAX),
        (COUNT, -1),
        (COUNT, 5),
        (LAST_OFFSET_DELTA, i32::MAX),
        (LAST_OFFSET_DELTA, -1),
    ] {
        let mut world = World::new(1, ClusterConfig::default());
        let forged = forge(good.clone(), at, number);
        let used = allocation_counter::measure(|| {
            let code = world.produce(forged);
            assert!(!code.is_ok(), "{number} at {at} was taken");
        });
        assert!(used.bytes_max < LITTLE, "{used:?}");
        assert_eq!(world.produce(good.clone().into()), ErrorCode::NONE, "the log is unharmed");
    }
    let mut world = World::new(1, ClusterConfig::default());
    for cut in 1..good.len() {
        assert!(!world.produce(good[..cut].to_vec().into()).is_ok(), "cut after {cut} bytes");
    }
}

#[test]
fn r122_no_records_are_an_empty_field_and_not_a_null_one() {
    let mut world = World::new(1, ClusterConfig::default());
    world.join(1);
    let shared = world.call(&world.share_fetch(0, 0));
    assert_eq!(shared.responses[0].partitions[0].records.as_deref(), Some(&[][..]));
    let topic = fetch_request::FetchTopic {
        topic_id: world.cluster.topic_id("t").unwrap(),
        partitions: vec![fetch_request::FetchPartition { partition_max_bytes: 1000, ..Default::default() }],
        ..Default::default()
    };
    let request = FetchRequest { max_bytes: 1000, topics: vec![topic], session_epoch: -1, ..Default::default() };
    let fetched = world.call(&request);
    assert_eq!(fetched.responses[0].partitions[0].records.as_deref(), Some(&[][..]));
}

#[test]
fn r130_a_batch_that_decompresses_to_far_more_takes_no_memory() {
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let bomb: Bytes = batch(BatchOptions { compression, ..Default::default() }, &vec![0; 256 << 20]).into();
        for policy in ["delete", "compact"] {
            let config = ClusterConfig { max_request_bytes: 512 << 20, ..Default::default() };
            let mut world = World::new(1, config);
            alter(&mut world, "cleanup.policy", policy);
            alter(&mut world, "max.message.bytes", "100000000");
            let used = allocation_counter::measure(|| {
                let _ = world.produce(bomb.clone());
            });
            // What the broker is ready to look at, and as much again while a buffer grows.
            let most = 4 * bomb.len() as u64 + 2 * (64 << 20) + LITTLE;
            assert!(used.bytes_max < most, "{compression:?}, {policy}, {} bytes: {used:?}", bomb.len());
        }
    }
}

fn alter(world: &mut World, name: &str, value: &str) {
    use kafka_share_messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let config = AlterableConfig { name: Str::from(name), value: Some(Str::from(value)), ..Default::default() };
    let resource = AlterConfigsResource {
        resource_type: 2,
        resource_name: Str::from_static("t"),
        configs: vec![config],
        ..Default::default()
    };
    let request =
        kafka_share_messages::IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    assert_eq!(world.call(&request).responses[0].error_code, ErrorCode::NONE);
}

#[test]
fn r131_unknown_tags_are_skipped_and_broken_ones_refused() {
    let mut plain = encode(&MetadataRequest::default(), 1);
    assert_eq!(plain.pop(), Some(0), "the body ends with its tags, of which there are none");
    let long = [&[1, 99, 0xac, 0x02][..], &[7; 300]].concat();
    for (tags, lives) in [
        (&long[..], true),
        (&[2, 98, 1, 0, 99, 0], true),
        (&[1, 99, 5, 0], false),
        (&[0xff, 0xff, 0xff, 0xff, 0x0f], false),
        (&[0xff, 0xff, 0xff, 0xff, 0x7f], false),
        (&[2, 99, 0, 99, 0], false),
        (&[2, 99, 0, 98, 0], false),
    ] {
        let mut world = World::new(1, ClusterConfig::default());
        let open = world.frame(&[&plain[..], tags].concat());
        assert_eq!(open, lives, "tags {:x?}", &tags[..tags.len().min(8)]);
        assert_eq!(world.answers.len(), usize::from(lives));
    }
}

#[test]
fn r133_a_leader_that_moved_is_named_exactly() {
    let far = 16_777_217;
    let mut world = World::new(far - 1, ClusterConfig::default());
    world.join(far - 1);
    world.cluster.move_leader(world.now, "t", 0, far);
    let fetched = world.call(&world.share_fetch(0, 0));
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!((partition.error_code, partition.current_leader.leader_id), (ErrorCode::NOT_LEADER_OR_FOLLOWER, far));
    assert!(fetched.node_endpoints.iter().any(|node| node.node_id == far && node.port == 2));
}

#[test]
fn r139_the_longest_and_shortest_waits_are_what_they_say() {
    for (wait, after, answered) in
        [(i32::MAX, 24 * 86_400, false), (i32::MAX, 25 * 86_400, true), (0, 0, true), (-1, 0, true)]
    {
        let mut world = World::new(1, ClusterConfig::default());
        let topic = fetch_request::FetchTopic {
            topic_id: world.cluster.topic_id("t").unwrap(),
            partitions: vec![fetch_request::FetchPartition { partition_max_bytes: 1000, ..Default::default() }],
            ..Default::default()
        };
        let request = FetchRequest {
            max_wait_ms: wait,
            min_bytes: 1,
            max_bytes: 1000,
            session_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        world.send(&request, 1);
        world.now = world.now.plus(Duration::from_secs(after));
        world.cluster.handle_timeout(world.now);
        world.take();
        assert_eq!(world.answers.len() == 1, answered, "wait of {wait} ms, after {after} s");
    }
}

/// The connection's side of it: a frame that ends too early is the end of that connection and of no other.
#[tokio::test]
async fn r109_a_connection_cut_inside_a_frame_harms_nobody() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let broker = kafka_share_broker::EmbeddedBroker::builder().start().await.unwrap();
    let frame = encode(&ApiVersionsRequest::default(), 1);
    for cut in 0..frame.len() {
        let mut stream = broker.connect_in_memory(1).unwrap();
        stream.write_all(&frame[..cut]).await.unwrap();
        drop(stream);
        let mut other = broker.connect_in_memory(1).unwrap();
        other.write_all(&frame).await.unwrap();
        assert!(other.read_u32().await.unwrap() > 8, "after a cut at {cut}");
    }
    while broker.connection_count() > 0 {
        tokio::task::yield_now().await;
    }
}
