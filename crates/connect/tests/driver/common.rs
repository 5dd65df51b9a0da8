//! A broker, records, and sinks that do as a script says.

use async_trait::async_trait;
use kafka_share::admin::NewTopic;
use kafka_share::ledger::NewLedger;
use kafka_share::{Admin, ClientConfig, PartitionReader, Producer, ProducerRecord};
use kafka_share_broker::{BrokerBuilder, EmbeddedBroker, GroupBounds};
use kafka_share_connect::{
    ConnectError, ConnectorConfig, Data, ExactlyOnceSupport, Properties, SinkConnector, SinkRecord, SinkTask,
    SinkTaskContext, TaskState, TaskStatus, Worker, WorkerConfig,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than any machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// Topic that sinks read.
pub(crate) const TOPIC: &str = "in";

pub(crate) struct Bench {
    pub(crate) servers: String,
    /// Where it is not a real Kafka.
    pub(crate) broker: Option<EmbeddedBroker>,
    pub(crate) admin: Admin,
}

impl Bench {
    pub(crate) async fn start(partitions: i32) -> Self {
        Self::with(partitions, |b| b).await
    }

    pub(crate) async fn with(partitions: i32, change: impl FnOnce(BrokerBuilder) -> BrokerBuilder) -> Self {
        let bounds = GroupBounds { record_lock_ms: (1_000, 60_000), ..GroupBounds::default() };
        let builder = EmbeddedBroker::builder().topic(TOPIC, partitions).topic("out", 2).group_bounds(bounds);
        let broker = change(builder).start().await.expect("broker");
        let servers = broker.bootstrap_servers();
        Self::of(servers, Some(broker)).await
    }

    /// A broker that takes acknowledgements into transactions, and one that has a ledger instead.
    pub(crate) async fn both(partitions: i32) -> [Self; 2] {
        let ledger = Self::with(partitions, |b| b.transactional_acks(false)).await;
        ledger.admin.create_ledger(&NewLedger::new().partitions(2)).await.expect("ledger");
        [Self::start(partitions).await, ledger]
    }

    /// A real Kafka, which has nothing yet.
    pub(crate) async fn real(servers: String, partitions: i32) -> Self {
        let bench = Self::of(servers, None).await;
        for (topic, partitions) in [(TOPIC, partitions), ("out", 2)] {
            bench.admin.create_topic(NewTopic::new(topic, partitions)).await.expect("topic");
        }
        bench
    }

    async fn of(servers: String, broker: Option<EmbeddedBroker>) -> Self {
        let admin = Admin::new(ClientConfig::new(&servers)).expect("admin");
        let earliest = [("share.auto.offset.reset", "earliest")];
        admin.alter_share_group_configs("connect-sink", &earliest).await.expect("group config");
        Bench { servers, broker, admin }
    }

    /// Writes values round robin; each is a batch of its own where `apart` says so.
    pub(crate) async fn load(&self, partitions: i32, values: impl IntoIterator<Item = String>, apart: bool) {
        let producer = Producer::builder(&self.servers).build().expect("producer");
        for (i, value) in values.into_iter().enumerate() {
            let record = ProducerRecord::new(TOPIC).partition(i as i32 % partitions).value(value.into_bytes());
            drop(producer.send(record).await.expect("send"));
            if apart {
                producer.flush().await.expect("flush");
            }
        }
        producer.flush().await.expect("flush");
        producer.close(PATIENCE).await.expect("close");
    }

    pub(crate) fn config(&self, extra: &[(&str, &str)]) -> ConnectorConfig {
        self.try_config(extra).expect("config")
    }

    pub(crate) fn try_config(&self, extra: &[(&str, &str)]) -> Result<ConnectorConfig, ConnectError> {
        let worker = owned(&[("bootstrap.servers", &self.servers), ("consumer.group.protocol", "share")]);
        let mut all = owned(&[("name", "sink"), ("connector.class", "test"), ("topics", TOPIC)]);
        all.extend(owned(&[("value.converter", "string")]));
        all.extend(owned(extra));
        ConnectorConfig::new(all, &WorkerConfig::new(worker)?)
    }

    /// Values that read_committed readers see in `out`.
    pub(crate) async fn output(&self) -> Vec<String> {
        let mut reader =
            PartitionReader::read_committed(Arc::clone(self.admin.cluster()), "out").await.expect("reader");
        let batches = reader.read_to_end().await.expect("read");
        let text = |v: Option<&[u8]>| String::from_utf8(v.expect("value").to_vec()).expect("text");
        let mut all: Vec<String> =
            batches.iter().flat_map(|b| b.iter().map(|r| text(r.value())).collect::<Vec<_>>()).collect();
        all.sort();
        all
    }

    /// Waits until the group is done with all records: nothing is left to deliver.
    pub(crate) async fn all_done(&self, ends: &[(i32, i64)]) {
        let until = Instant::now() + PATIENCE;
        loop {
            // Start offsets are told as of the write before, as Kafka does; lags are of now.
            let offsets = self.admin.describe_share_group_offsets("connect-sink").await.expect("offsets");
            let mut left: Vec<(i32, Option<i64>)> = offsets.into_iter().map(|o| (o.partition, o.lag)).collect();
            left.sort_unstable();
            if left == ends.iter().map(|(partition, _)| (*partition, Some(0))).collect::<Vec<_>>() {
                return;
            }
            assert!(Instant::now() < until, "the group has {left:?} records to go, to {ends:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn owned(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
}

pub(crate) fn values(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("v{i:04}")).collect()
}

/// Waits until the status is as wanted.
pub(crate) async fn until(worker: &Worker, what: &str, wanted: impl Fn(&[TaskStatus]) -> bool) -> Vec<TaskStatus> {
    let end = Instant::now() + PATIENCE;
    loop {
        let status = worker.status();
        if wanted(&status) {
            return status;
        }
        assert!(Instant::now() < end, "{what}: {status:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn accepted(status: &[TaskStatus]) -> u64 {
    status.iter().map(|t| t.accepted).sum()
}

pub(crate) fn rejected(status: &[TaskStatus]) -> u64 {
    status.iter().map(|t| t.rejected).sum()
}

pub(crate) fn released(status: &[TaskStatus]) -> u64 {
    status.iter().map(|t| t.released).sum()
}

/// Whether every record read is accounted for.
pub(crate) fn settled(status: &[TaskStatus]) -> bool {
    status.iter().all(|t| !t.is_busy() && t.read == t.accepted + t.released + t.rejected)
}

/// Why the one task failed.
pub(crate) fn failure(status: &[TaskStatus]) -> Option<&str> {
    status.iter().find_map(|t| match &t.state {
        TaskState::Failed(why) => Some(why.as_str()),
        _ => None,
    })
}

/// One call of put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Put {
    pub(crate) task: usize,
    /// Offset, value and delivery count.
    pub(crate) records: Vec<(i64, String, i16)>,
    pub(crate) ok: bool,
}

pub(crate) type Script = dyn Fn(&[SinkRecord], &SinkTaskContext) -> Result<(), ConnectError> + Send + Sync;

/// A sink that answers as its script says, and remembers every put. Given a target it also sends each record there
/// through the driver's producer, before it answers.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: Arc<Script>,
    pub(crate) sends: bool,
    /// What the next flushes fail with.
    pub(crate) flushes: Arc<Mutex<Vec<ConnectError>>>,
    /// How long starts take until they fail, if they do.
    pub(crate) start: Arc<Mutex<Option<Duration>>>,
    pub(crate) puts: Arc<Mutex<Vec<Put>>>,
    /// What the next flush reports.
    pub(crate) late: Arc<Mutex<Vec<SinkRecord>>>,
}

impl Scripted {
    pub(crate) fn new(
        script: impl Fn(&[SinkRecord], &SinkTaskContext) -> Result<(), ConnectError> + Send + Sync + 'static,
    ) -> Self {
        Scripted {
            script: Arc::new(script),
            sends: false,
            flushes: Arc::default(),
            start: Arc::default(),
            puts: Arc::default(),
            late: Arc::default(),
        }
    }

    pub(crate) fn boxed(&self) -> Box<dyn SinkConnector> {
        Box::new(self.clone())
    }

    pub(crate) fn puts(&self) -> Vec<Put> {
        self.puts.lock().expect("puts").clone()
    }

    /// Values of all puts that went well, sorted.
    pub(crate) fn stored(&self) -> Vec<String> {
        let puts = self.puts();
        let mut all: Vec<String> =
            puts.iter().filter(|p| p.ok).flat_map(|p| p.records.iter().map(|r| r.1.clone())).collect();
        all.sort();
        all
    }
}

impl SinkConnector for Scripted {
    fn start(&mut self, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(ScriptedTask { of: self.clone(), context: None })
    }

    fn exactly_once_support(&self) -> ExactlyOnceSupport {
        match self.sends {
            true => ExactlyOnceSupport::KafkaTransaction,
            false => ExactlyOnceSupport::Unsupported,
        }
    }
}

struct ScriptedTask {
    of: Scripted,
    context: Option<SinkTaskContext>,
}

pub(crate) fn text(data: &Data) -> String {
    match data {
        Data::String(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

#[async_trait]
impl SinkTask for ScriptedTask {
    fn version(&self) -> &str {
        "1"
    }

    async fn start(&mut self, context: SinkTaskContext, _properties: &Properties) -> Result<(), ConnectError> {
        self.context = Some(context);
        let Some(time) = *self.of.start.lock().expect("start") else { return Ok(()) };
        tokio::time::sleep(time).await;
        Err(ConnectError::config("no start"))
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
        let context = self.context.as_ref().expect("started");
        if self.of.sends {
            let producer = context.producer().expect("a producer");
            for record in records {
                let out = ProducerRecord::new("out").value(text(&record.value).into_bytes());
                drop(producer.send(out).await?);
            }
            producer.flush().await?;
        }
        let result = (self.of.script)(records, context);
        let rows = records.iter().map(|r| (r.offset, text(&r.value), r.delivery_count)).collect();
        let put = Put { task: context.task(), records: rows, ok: result.is_ok() };
        self.of.puts.lock().expect("puts").push(put);
        result
    }

    async fn flush(&mut self) -> Result<(), ConnectError> {
        let context = self.context.as_ref().expect("started");
        for record in self.of.late.lock().expect("late").drain(..) {
            context.errant_record_reporter().report(&record, "not mine");
        }
        self.of.flushes.lock().expect("flushes").pop().map_or(Ok(()), Err)
    }
}
