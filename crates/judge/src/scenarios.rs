//! What a client goes through: an embedded broker that does as it should, but for what the scenario says.

use super::proxy::{self, Shared};
use super::watch::Watch;
use kafka_share::admin::Admin;
use kafka_share::{ClientConfig, Error, ErrorKind, Producer, ProducerRecord, Result};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction, FaultId, Rewrite};
use kafka_share_messages::{ApiKey, ErrorCode, ShareFetchResponse};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const TOPIC: &str = "judged";
const GROUP: &str = "judged-group";
const PARTITIONS: i32 = 2;
const RECORDS: i64 = 200;
/// Time for topic, group and records to be set up.
const PREPARING: Duration = Duration::from_secs(30);
/// Time for a client to end once it is told to.
const ENDING: Duration = Duration::from_secs(15);
/// How often it is looked whether all records are done.
const LOOK: Duration = Duration::from_millis(50);

/// Where the client is to consume.
#[derive(Debug, Clone)]
pub struct Place {
    /// `bootstrap.servers`.
    pub bootstrap: String,
    /// The topic; it has two partitions.
    pub topic: &'static str,
    /// The share group; it begins at the earliest record.
    pub group: &'static str,
}

/// One thing that happens to a client.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Name, unique.
    pub name: &'static str,
    /// What happens, for people.
    pub about: &'static str,
    faults: Vec<Fault>,
}

/// How a client did.
#[derive(Debug, Clone)]
pub struct ScenarioResult {
    /// Name of the scenario.
    pub name: &'static str,
    /// Rules that were broken, by id, and how.
    pub broken: Vec<(String, String)>,
    /// Whether what was to go wrong did: the client sent the request that it was to happen to.
    pub happened: bool,
    /// Records that were not accepted in time; 0 is as it should be.
    pub left: i64,
    /// Why the client ended before it was told to, or badly.
    pub ended: Option<String>,
    /// Requests that were looked at, by kind.
    pub looked_at: BTreeMap<&'static str, u64>,
    /// How long it took.
    pub time: Duration,
}

impl ScenarioResult {
    /// Whether what was to go wrong did, nothing was broken, all records were accepted, and the client ended well.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.happened && self.broken.is_empty() && self.left == 0 && self.ended.is_none()
    }
}

/// All scenarios.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let one = |name, about, faults| Scenario { name, about, faults };
    let after = |key: ApiKey, skip: u32, action| Fault::new(action).key(key).skip(skip).times(1);
    let fetch = |skip, action| vec![after(ApiKey::SHARE_FETCH, skip, action)];
    let beat = |skip, action| vec![after(ApiKey::SHARE_GROUP_HEARTBEAT, skip, action)];
    use FaultAction::{ApplyAndClose, Close, Error, Rewrite, ShiftCorrelationId};
    vec![
        one("lawful", "nothing goes wrong", Vec::new()),
        one(
            "session_not_found",
            "the third ShareFetch is answered SHARE_SESSION_NOT_FOUND",
            fetch(2, Error(ErrorCode::SHARE_SESSION_NOT_FOUND)),
        ),
        one(
            "session_epoch_refused",
            "the third ShareFetch is answered INVALID_SHARE_SESSION_EPOCH",
            fetch(2, Error(ErrorCode::INVALID_SHARE_SESSION_EPOCH)),
        ),
        one(
            "first_fetch_refused",
            "the ShareFetch that opens the session is answered SHARE_SESSION_LIMIT_REACHED",
            fetch(0, Error(ErrorCode::SHARE_SESSION_LIMIT_REACHED)),
        ),
        one(
            "fetch_unanswered",
            "the third ShareFetch is served, and its connection closed instead of an answer",
            fetch(2, ApplyAndClose),
        ),
        one("fetch_cut", "the connection is closed at the third ShareFetch", fetch(2, Close)),
        one(
            "fetch_of_another",
            "the third ShareFetch is answered with another correlation id",
            fetch(2, ShiftCorrelationId(1_000)),
        ),
        one(
            "not_leader",
            "the first answer with records says NOT_LEADER_OR_FOLLOWER of every partition instead",
            fetch(0, Rewrite(not_leader())),
        ),
        one(
            "coordinator_loads",
            "the heartbeat that joins is answered COORDINATOR_LOAD_IN_PROGRESS",
            beat(0, Error(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)),
        ),
        one(
            "coordinator_moved",
            "the second heartbeat is answered NOT_COORDINATOR",
            beat(1, Error(ErrorCode::NOT_COORDINATOR)),
        ),
        one(
            "member_fenced",
            "the second heartbeat is answered FENCED_MEMBER_EPOCH",
            beat(1, Error(ErrorCode::FENCED_MEMBER_EPOCH)),
        ),
        one(
            "member_unknown",
            "the second heartbeat is answered UNKNOWN_MEMBER_ID",
            beat(1, Error(ErrorCode::UNKNOWN_MEMBER_ID)),
        ),
        one("heartbeat_cut", "the connection is closed at the second heartbeat", beat(1, Close)),
    ]
}

/// What was acquired stays so, and comes again when its locks end.
fn not_leader() -> Rewrite {
    Rewrite::message(|_version, answer: &mut ShareFetchResponse| {
        for row in answer.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
            row.error_code = ErrorCode::NOT_LEADER_OR_FOLLOWER;
            (row.records, row.acquired_records) = (None, Vec::new());
        }
    })
}

/// Runs a client in a scenario, for at most `patience`.
///
/// `client` is to consume all records of the topic in the group and to accept each, until it is told to stop; then it closes
/// its consumer and ends.
///
/// # Cancel safety
/// Dropped, it ends the broker; the client is dropped too.
///
/// # Errors
/// Where the broker, or its topic, cannot be set up. What the client does is in the result.
pub async fn judge<F>(
    scenario: &Scenario,
    patience: Duration,
    client: impl FnOnce(Place, oneshot::Receiver<()>) -> F,
) -> Result<ScenarioResult>
where
    F: Future<Output = std::result::Result<(), String>>,
{
    let started = Instant::now();
    let failed = |error: std::io::Error| Error::new(ErrorKind::Connect, format!("the proxy: {error}"));
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let broker = broker(address).await?;
    let watch = Shared::new(Watch::new(GROUP));
    let place = Place { bootstrap: address.to_string(), topic: TOPIC, group: GROUP };
    let run = async {
        set_up(&place.bootstrap).await?;
        let faults: Vec<FaultId> = scenario.faults.iter().map(|fault| broker.fault(fault.clone())).collect();
        watched(&broker, &faults, patience, &place, client).await
    };
    let ran = tokio::select! {
        ran = run => ran,
        () = proxy::run(listener, || broker.connect_in_memory(broker.nodes()[0].id), watch.clone()) => unreachable!(),
    };
    broker.shutdown().await;
    let Watched { left, ended, happened } = ran?;
    let watch = watch.lock();
    Ok(ScenarioResult {
        name: scenario.name,
        broken: watch.broken().iter().map(|(id, how)| ((*id).to_owned(), how.clone())).collect(),
        happened,
        left,
        ended,
        looked_at: watch.looked_at().clone(),
        time: started.elapsed(),
    })
}

/// With short locks and sessions, so that what a client lost comes again soon.
async fn broker(proxy: std::net::SocketAddr) -> Result<EmbeddedBroker> {
    let builder = EmbeddedBroker::builder().topic(TOPIC, PARTITIONS).advertise_port(proxy.port());
    let short = builder.configure(|config| {
        config.groups.record_lock_ms.0 = 1000;
        config.groups.session_timeout_ms.0 = 1000;
        config.groups.heartbeat_ms.0 = 100;
    });
    let failed = |error| Error::new(ErrorKind::Connect, format!("the embedded broker does not start: {error}"));
    short.start().await.map_err(failed)
}

/// Sets the group up, and writes the first half of the records.
async fn set_up(bootstrap: &str) -> Result<()> {
    let admin = Admin::new(ClientConfig::new(bootstrap))?;
    let settings = [
        ("share.auto.offset.reset", "earliest"),
        ("share.record.lock.duration.ms", "2000"),
        ("share.heartbeat.interval.ms", "200"),
    ];
    admin.alter_share_group_configs(GROUP, &settings).await?;
    write(bootstrap, 0..RECORDS / 2).await
}

async fn write(bootstrap: &str, numbers: Range<i64>) -> Result<()> {
    let producer = Producer::builder(bootstrap).build()?;
    for number in numbers {
        let partition = i32::try_from(number % i64::from(PARTITIONS)).unwrap_or(0);
        let record = ProducerRecord::new(TOPIC).partition(partition).value(number.to_string().into_bytes());
        drop(producer.send(record).await?);
    }
    producer.flush().await?;
    producer.close(PREPARING).await
}

/// How it ended.
struct Watched {
    left: i64,
    ended: Option<String>,
    happened: bool,
}

/// Runs the client until all records are done, and has it end then. Half of them come once all has gone wrong that was to.
async fn watched<F>(
    broker: &EmbeddedBroker,
    faults: &[FaultId],
    patience: Duration,
    place: &Place,
    client: impl FnOnce(Place, oneshot::Receiver<()>) -> F,
) -> Result<Watched>
where
    F: Future<Output = std::result::Result<(), String>>,
{
    let (stop, stopped) = oneshot::channel();
    let mut client = Box::pin(client(place.clone(), stopped));
    let happened = || faults.iter().all(|fault| broker.fault_hits(*fault) > 0);
    let done = async {
        while !happened() {
            tokio::time::sleep(LOOK).await;
        }
        write(&place.bootstrap, RECORDS / 2..RECORDS).await?;
        while left(broker) > 0 {
            tokio::time::sleep(LOOK).await;
        }
        Ok::<(), Error>(())
    };
    tokio::select! {
        ended = &mut client => {
            let why = ended.err().unwrap_or_else(|| "it ended before it was told to".to_owned());
            return Ok(Watched { left: left(broker), ended: Some(why), happened: happened() });
        }
        done = tokio::time::timeout(patience, done) => done.unwrap_or(Ok(()))?,
    }
    let (left, happened) = (left(broker), happened());
    let _ = stop.send(());
    let ended = match tokio::time::timeout(ENDING, client).await {
        Ok(ended) => ended.err(),
        Err(_) => Some(format!("it did not end within {} s after it was told to", ENDING.as_secs())),
    };
    Ok(Watched { left, ended, happened })
}

/// Records that the group is not done with.
fn left(broker: &EmbeddedBroker) -> i64 {
    let dump = broker.with_cluster(|cluster, _| cluster.share_dump());
    let done = dump.partitions.iter().filter(|p| p.group == GROUP && p.topic == TOPIC).map(|p| p.start_offset);
    RECORDS - done.sum::<i64>()
}
