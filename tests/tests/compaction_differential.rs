//! One script of batches, tombstones and transactions is compacted by our broker and by a real Kafka 4.4.0: the same batches
//! must be left, with the same records, extents and delete horizons.

use kafka_share_broker::EmbeddedBroker;
use kafka_share_messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{
    CreateTopicsRequest, EndTxnRequest, ErrorCode, FetchRequest, FindCoordinatorRequest,
    IncrementalAlterConfigsRequest, InitProducerIdRequest, ProduceRequest,
};
use kafka_share_tests::kafka::RealKafka;
use kafka_share_tests::raw::Raw;
use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions};
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long Kafka's cleaner may take.
const LIMIT: Duration = Duration::from_secs(120);

/// What is compared of a batch: base and last offset, kind, whether it has a delete horizon, producer, sequence, records.
type Batch = (i64, i64, bool, bool, usize, i32, Vec<(i64, Vec<u8>, bool)>);

struct Player {
    raw: Raw,
    topic: Uuid,
    /// How far the broker's clock is ahead.
    ahead_ms: i64,
    /// Of the last batch.
    last_ms: i64,
    /// Producer ids in the order of their first use.
    producers: BTreeMap<&'static str, (i64, i16)>,
    order: Vec<i64>,
}

impl Player {
    fn new(mut raw: Raw) -> Self {
        let config = |(name, value)| CreatableTopicConfig {
            name: Str::from_static(name),
            value: Some(Str::from_static(value)),
            ..Default::default()
        };
        let settings = [
            ("segment.ms", "1"),
            ("min.cleanable.dirty.ratio", "0.0"),
            ("delete.retention.ms", "0"),
            ("retention.ms", "-1"),
        ];
        let topic = CreatableTopic {
            name: Str::from_static("t"),
            num_partitions: 1,
            replication_factor: 1,
            configs: settings.into_iter().map(config).collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let response = raw.latest(&request).unwrap();
        assert!(response.topics[0].error_code.is_ok(), "{}", response.topics[0].error_code);
        let topic = response.topics[0].topic_id;
        Player { raw, topic, ahead_ms: 0, last_ms: 0, producers: BTreeMap::new(), order: Vec::new() }
    }

    /// Each batch is so much younger than the one before that it begins a segment; markers have the broker's time, and
    /// so have all others.
    fn next_ms(&mut self) -> i64 {
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64 + self.ahead_ms;
            if now > self.last_ms + 5 {
                self.last_ms = now;
                return now;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    /// Tries again while a broker is still getting ready.
    fn until<T>(&mut self, mut call: impl FnMut(&mut Raw) -> Result<T, ErrorCode>) -> T {
        let end = Instant::now() + LIMIT;
        loop {
            match call(&mut self.raw) {
                Ok(found) => return found,
                Err(code) => assert!(Instant::now() < end, "still {code}"),
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn init(&mut self, txn: &'static str) {
        let find =
            FindCoordinatorRequest { key_type: 1, coordinator_keys: vec![Str::from_static(txn)], ..Default::default() };
        self.until(|raw| match raw.call(&find, 5).unwrap().coordinators[0].error_code {
            ErrorCode::NONE => Ok(()),
            code => Err(code),
        });
        let request = InitProducerIdRequest {
            transactional_id: Some(Str::from_static(txn)),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let identity = self.until(|raw| {
            let response = raw.call(&request, 5).unwrap();
            match response.error_code {
                ErrorCode::NONE => Ok((response.producer_id, response.producer_epoch)),
                code => Err(code),
            }
        });
        self.producers.insert(txn, identity);
        self.order.push(identity.0);
    }

    /// Keys and values; an empty value is a tombstone.
    fn produce(&mut self, txn: Option<&'static str>, records: &[(&str, &str)]) {
        let mut options = BatchOptions::default();
        if let Some(txn) = txn {
            (options.producer_id, options.producer_epoch) = self.producers[txn];
            (options.base_sequence, options.transactional) = (0, true);
        }
        let at = self.next_ms();
        let mut builder = BatchBuilder::new(options);
        for (key, value) in records {
            let value = Some(value.as_bytes()).filter(|value| !value.is_empty());
            builder.append(at, Some(key.as_bytes()), value, []).unwrap();
        }
        let data = PartitionProduceData { records: Some(builder.finish().unwrap().freeze()), ..Default::default() };
        let topic = TopicProduceData { topic_id: self.topic, partition_data: vec![data], ..Default::default() };
        let request = ProduceRequest {
            transactional_id: txn.map(Str::from_static),
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![topic],
            ..Default::default()
        };
        self.until(|raw| match raw.latest(&request).unwrap().responses[0].partition_responses[0].error_code {
            ErrorCode::NONE => Ok(()),
            code => Err(code),
        });
    }

    fn end(&mut self, txn: &'static str, committed: bool) {
        self.next_ms();
        let (producer_id, producer_epoch) = self.producers[txn];
        let transactional_id = Str::from_static(txn);
        let request = EndTxnRequest { transactional_id, producer_id, producer_epoch, committed, ..Default::default() };
        let identity = self.until(|raw| {
            let response = raw.call(&request, 5).unwrap();
            match response.error_code {
                ErrorCode::NONE => Ok((response.producer_id, response.producer_epoch)),
                code => Err(code),
            }
        });
        self.producers.insert(txn, identity);
        // The marker may come after the answer.
        let topic = self.topic;
        self.until(|raw| match fetch(raw, topic) {
            (_, stable, end) if stable == end => Ok(()),
            _ => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
        });
    }

    fn policy(&mut self, policy: &'static str) {
        let config = AlterableConfig {
            name: Str::from_static("cleanup.policy"),
            value: Some(Str::from_static(policy)),
            ..Default::default()
        };
        let resource = AlterConfigsResource {
            resource_type: 2,
            resource_name: Str::from_static("t"),
            configs: vec![config],
            ..Default::default()
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        assert!(self.raw.latest(&request).unwrap().responses[0].error_code.is_ok());
    }

    fn batches(&mut self) -> Vec<Batch> {
        let (records, ..) = fetch(&mut self.raw, self.topic);
        let batch = |batch: kafka_share_wire::records::RecordBatch| -> Batch {
            let decoded = batch.decode(1 << 20).unwrap();
            let record = |record: kafka_share_wire::records::Record<'_>| {
                (record.offset, record.key.unwrap().to_vec(), record.value.is_some())
            };
            let records = decoded.iter().map(|found| record(found.unwrap())).collect();
            let producer = self.order.iter().position(|id| *id == batch.producer_id).unwrap_or(usize::MAX);
            let (base, last) = (batch.base_offset, batch.last_offset());
            (base, last, batch.is_control(), batch.has_delete_horizon(), producer, batch.base_sequence, records)
        };
        BatchIter::new(records).map(|found| batch(found.unwrap())).collect()
    }
}

/// Everything in the partition, its stable offset, its end.
fn fetch(raw: &mut Raw, topic: Uuid) -> (bytes::Bytes, i64, i64) {
    let partition = FetchPartition {
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
        partition_max_bytes: 8 << 20,
        ..Default::default()
    };
    let mut all = bytes::BytesMut::new();
    let mut offset = 0;
    loop {
        let request = FetchRequest {
            max_bytes: 8 << 20,
            session_epoch: -1,
            topics: vec![FetchTopic {
                topic_id: topic,
                partitions: vec![FetchPartition { fetch_offset: offset, ..partition.clone() }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let response = raw.latest(&request).unwrap();
        let data = &response.responses[0].partitions[0];
        assert!(data.error_code.is_ok(), "{}", data.error_code);
        let records = data.records.clone().unwrap_or_default();
        let last = BatchIter::new(records.clone()).map(|batch| batch.unwrap().next_offset()).last();
        all.extend_from_slice(&records);
        match last {
            // Kafka gives one segment at a time.
            Some(next) if next < data.high_watermark => offset = next,
            _ => return (all.freeze(), data.last_stable_offset, data.high_watermark),
        }
    }
}

/// What comes before each pass.
const PASSES: &[fn(&mut Player)] = &[
    |player| {
        player.init("x");
        player.init("y");
        player.produce(None, &[("a", "1"), ("b", "1"), ("c", "1")]);
        player.produce(None, &[("a", "2"), ("b", "")]);
        player.produce(Some("x"), &[("a", "aborted"), ("d", "aborted")]);
        player.end("x", false);
        player.produce(Some("x"), &[("c", "2"), ("e", "1")]);
        player.end("x", true);
        player.produce(Some("y"), &[("f", "1")]);
        player.end("y", true);
        player.produce(None, &[("f", "2"), ("f", "3"), ("g", "")]);
        player.produce(None, &[("h", "active")]);
    },
    |player| {
        player.produce(Some("y"), &[("e", "2"), ("h", "2")]);
        player.end("y", false);
        player.produce(None, &[("c", "3"), ("i", "1")]);
        player.produce(None, &[("j", "active")]);
    },
    |player| {
        player.produce(None, &[("e", "3"), ("a", "")]);
        player.produce(None, &[("k", "active")]);
    },
];

#[test]
fn compaction_leaves_what_kafka_leaves() {
    let test = "compaction_leaves_what_kafka_leaves";
    let properties = ["log.cleaner.backoff.ms=50", "log.initial.task.delay.ms=100"];
    let Some(kafka) = RealKafka::start_with(test, "4.4.0", &properties) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let broker = runtime.block_on(EmbeddedBroker::builder().start()).unwrap();
    let mut theirs = Player::new(Raw::connect(kafka.address()).unwrap());
    let address = broker.bootstrap_servers().parse().unwrap();
    let mut ours = Player::new(Raw::connect(address).unwrap());
    for (number, script) in PASSES.iter().enumerate() {
        // Nothing is compacted while the script runs, so that both begin the pass with the same log.
        for player in [&mut theirs, &mut ours] {
            player.policy("delete");
            script(player);
            player.policy("compact");
        }
        broker.advance_clock(Duration::from_secs(11));
        ours.ahead_ms += 11_000;
        let expected = ours.batches();
        let end = Instant::now() + LIMIT;
        loop {
            let found = theirs.batches();
            if found == expected {
                break;
            }
            assert!(Instant::now() < end, "pass {number}: Kafka has\n{found:#?}\nand we have\n{expected:#?}");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}
