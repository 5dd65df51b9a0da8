//! A network that fails at every byte of every kind of frame, in both directions, under a producer and a share consumer:
//! nothing hangs, nothing is lost or doubled, and what was committed does not come again.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kafka_share::admin::{AutoOffsetReset, ShareGroupSettings};
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode, Admin, ClientConfig, KafkaShareConsumer, Outcome, Producer, ProducerRecord,
};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction, FaultId, Rewrite};
use kafka_share_messages::ApiKey;
use kafka_share_tests::proxy::{Cut, Proxy};
use kafka_share_tests::resets::Resets;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// More than anything takes.
const LONG: Duration = Duration::from_secs(120);
const RECORDS: u32 = 5;
/// Brokers that run at a time.
const SIDE_BY_SIDE: usize = 24;
/// Every kind of request that the pipeline sends.
const KINDS: [ApiKey; 8] = [
    ApiKey::API_VERSIONS,
    ApiKey::METADATA,
    ApiKey::INIT_PRODUCER_ID,
    ApiKey::PRODUCE,
    ApiKey::FIND_COORDINATOR,
    ApiKey::SHARE_GROUP_HEARTBEAT,
    ApiKey::SHARE_FETCH,
    ApiKey::SHARE_ACKNOWLEDGE,
];

/// A broker whose clients come by a proxy.
struct Rig {
    broker: EmbeddedBroker,
    proxy: Proxy,
    /// Where clients find the way to the broker.
    at: SocketAddr,
}

impl Rig {
    async fn new() -> Rig {
        let proxy = Proxy::start().expect("a proxy");
        let (at, address) = (proxy.address(), free_address());
        proxy.lead_to(address);
        Rig::behind(proxy, at, address).await
    }

    /// A broker at an address, which tells its clients to go to another one.
    async fn behind(proxy: Proxy, at: SocketAddr, address: SocketAddr) -> Rig {
        let builder = EmbeddedBroker::builder().listen([address]).advertise("127.0.0.1").topic("t", 1);
        let broker = builder.advertise_port(at.port()).start().await.expect("a broker");
        let admin = Admin::on(Cluster::new(ClientConfig::new(&at.to_string())).expect("a cluster"));
        let settings = ShareGroupSettings::new().auto_offset_reset(AutoOffsetReset::Earliest);
        admin.apply_share_group_settings("g", &settings).await.expect("settings");
        Rig { broker, proxy, at }
    }

    /// Writes, reads, commits and leaves; every record is written once, comes, and is acknowledged for good once.
    async fn run(&self, what: &str) {
        let at = self.at.to_string();
        let producer = Producer::builder(&at).build().expect("a producer");
        for number in 0..RECORDS {
            let sent = producer.send(ProducerRecord::new("t").value(number.to_string())).await;
            sent.expect(what).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        let partition = self.broker.dump();
        let end = partition.partitions.iter().find(|p| p.topic == "t").map(|p| p.end_offset);
        assert_eq!(end, Some(i64::from(RECORDS)), "{what}: each is written once");
        let builder = KafkaShareConsumer::builder(&at, "g").acknowledgement_mode(AcknowledgementMode::Explicit);
        let consumer = builder.build().expect("a consumer");
        consumer.subscribe(["t"]).expect("subscribed");
        let (until, mut done) = (Instant::now() + LONG, BTreeMap::new());
        while done.values().filter(|outcome| **outcome == Outcome::Acknowledged).count() < RECORDS as usize {
            assert!(Instant::now() < until, "{what}: only {done:?}");
            let records = consumer.poll(Duration::from_millis(100)).await.unwrap_or_else(|e| panic!("{what}: {e}"));
            for record in &records {
                let before = done.insert(record.offset(), Outcome::Unknown);
                assert_ne!(before, Some(Outcome::Acknowledged), "{what}: {} was done", record.offset());
                assert_eq!(record.value(), Some(record.offset().to_string().as_bytes()), "{what}: torn");
                consumer.acknowledge_with(&record, AckType::Accept).unwrap_or_else(|e| panic!("{what}: {e}"));
            }
            consumer.commit_sync(LONG).await.unwrap_or_else(|e| panic!("{what}: {e}"));
            for outcome in consumer.poll_outcomes() {
                for offset in outcome.first_offset..=outcome.last_offset {
                    done.insert(offset, outcome.outcome);
                }
            }
            // What the broker did and the client did not hear of does not come again.
            if self.finished() {
                break;
            }
        }
        assert!(self.finished(), "{what}: all are done for good: {:?}", self.broker.dump().share);
        let closed = consumer.close(LONG).await;
        assert!(closed.is_ok(), "{what}: {closed:?}");
    }

    /// Whether the group has nothing left.
    fn finished(&self) -> bool {
        let dump = self.broker.dump();
        let all = dump.share.partitions.iter().filter(|p| p.group == "g");
        let starts: Vec<i64> = all.map(|p| p.start_offset).collect();
        starts == [i64::from(RECORDS)]
    }
}

/// What is done to a rig: by a fault of its broker, or by its proxy.
struct Harm {
    what: String,
    fault: Option<FaultId>,
}

fn free_address() -> SocketAddr {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.local_addr().expect("an address")
}

/// Bytes of the longest answer and request of each kind.
async fn lengths() -> Vec<(ApiKey, usize, usize)> {
    let rig = Rig::new().await;
    let seen: Arc<Mutex<BTreeMap<i16, usize>>> = Arc::default();
    for key in KINDS {
        let seen = Arc::clone(&seen);
        let look = Rewrite::new(move |_, body: Vec<u8>| {
            // Size, correlation id, and at most one byte for tags.
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let longest = seen.entry(key.0).or_default();
            *longest = (body.len() + 9).max(*longest);
            body
        });
        rig.broker.fault(Fault::new(FaultAction::Rewrite(look)).key(key).times(u32::MAX));
    }
    rig.run("unharmed").await;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    KINDS.map(|key| (key, seen[&key.0], rig.proxy.longest(key))).to_vec()
}

/// Runs the pipeline for each of these, many side by side.
async fn each<T: Send + 'static>(
    cases: impl IntoIterator<Item = T>,
    harm: impl Fn(&Rig, &T) -> Harm + Send + Sync + Clone + 'static,
) {
    let room = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut tasks = JoinSet::new();
    for case in cases {
        let permit = Arc::clone(&room).acquire_owned().await.expect("open");
        let harm = harm.clone();
        tasks.spawn(async move {
            let _permit = permit;
            let rig = Rig::new().await;
            let Harm { what, fault } = harm(&rig, &case);
            tokio::time::timeout(LONG, rig.run(&what)).await.unwrap_or_else(|_| panic!("{what}: it hangs"));
            let done = fault.map_or(!rig.proxy.is_due(), |fault| rig.broker.fault_hits(fault) == 1);
            assert!(done, "{what}: it never happened");
        });
        while let Some(done) = tasks.try_join_next() {
            done.expect("a case");
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a case");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_cut_at_every_byte() {
    let lengths = lengths().await;
    let cases = lengths.into_iter().flat_map(|(key, answer, _)| (0..answer).map(move |at| (key, at)));
    each(cases, |rig, (key, at)| {
        let fault = Some(rig.broker.fault(Fault::new(FaultAction::CutAfter(*at)).key(*key)));
        Harm { what: format!("answer of {key} cut after {at} bytes"), fault }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_cut_at_every_byte() {
    let lengths = lengths().await;
    let cases = lengths.into_iter().flat_map(|(key, _, request)| (0..request).map(move |at| (key, at)));
    each(cases, |rig, (key, at)| {
        rig.proxy.cut_at_next(*key, Cut::Within(*at));
        Harm { what: format!("request of {key} cut after {at} bytes"), fault: None }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_answer_is_late_lost_short_or_somebody_elses() {
    let actions = [
        FaultAction::Delay(Duration::from_millis(200)),
        FaultAction::Close,
        FaultAction::ApplyAndClose,
        FaultAction::Truncate(1),
        FaultAction::Truncate(7),
        FaultAction::ShiftCorrelationId(1),
        FaultAction::ShiftCorrelationId(-1),
        FaultAction::ShiftCorrelationId(i32::MAX),
    ];
    let cases = KINDS.into_iter().flat_map(|key| actions.clone().map(|action| (key, action)));
    each(cases, |rig, (key, action)| {
        let fault = Some(rig.broker.fault(Fault::new(action.clone()).key(*key)));
        Harm { what: format!("answer of {key}: {action:?}"), fault }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_come_byte_by_byte_are_read() {
    let rig = Rig::new().await;
    rig.proxy.one_byte_at_a_time();
    rig.run("byte by byte").await;
}

/// Behind each so many bytes of a pipeline, which carries more than that.
#[tokio::test(flavor = "multi_thread")]
async fn connections_are_reset_anywhere() {
    let mut tasks = JoinSet::new();
    for turn in 0..4 {
        tasks.spawn(async move {
            for bytes in (1 + turn * 4..2_500).step_by(16) {
                let address = free_address();
                let resets = Resets::start(address).await.expect("a proxy");
                let rig = Rig::behind(Proxy::start().expect("a proxy"), resets.address(), address).await;
                resets.reset_after(bytes);
                let what = format!("reset after {bytes} bytes");
                tokio::time::timeout(LONG, rig.run(&what)).await.unwrap_or_else(|_| panic!("{what}: it hangs"));
                assert!(resets.is_done(), "{what}: it never happened");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a turn");
    }
}
