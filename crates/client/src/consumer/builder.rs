//! Settings of a share consumer, typed and under Kafka's property names.

use super::KafkaShareConsumer;
use super::shared::{Options, Shared};
use crate::config::{boolean, check_millis, millis};
use crate::ledger::{AckBackendChoice, LedgerSettings};
use crate::net::Cluster;
use crate::properties::{PropertyEffect, warn_of, without_effect};
use crate::{ClientConfig, Error, ErrorKind, Result};
use kafka_share_core::share_acks::AckOutcome;
use kafka_share_core::share_consumer::{ConsumerConfig, ShareConsumer};
use kafka_share_core::share_fetch::DecodeLimits;
use kafka_share_wire::compression::DEFAULT_DECOMPRESSED_LIMIT;
use kafka_share_wire::{Str, Uuid};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `share.acknowledgement.mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AcknowledgementMode {
    /// Coming back to `poll` (or a commit) accepts what the poll before handed out.
    #[default]
    Implicit,
    /// The application acknowledges records one by one. Records may be outstanding while it polls again.
    Explicit,
}

/// `share.acquire.mode` (KIP-1206)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AcquireMode {
    /// Brokers may acquire whole batches beyond `max.poll.records`; the surplus comes with the next polls.
    #[default]
    BatchOptimized,
    /// Brokers acquire `max.poll.records` at most; needs Kafka 4.2.
    RecordLimit,
}

/// Settings that the Java share consumer refuses, and so do we, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("auto.offset.reset", "set share.auto.offset.reset on the group"),
    ("enable.auto.commit", "share groups have no offset commits; see share.acknowledgement.mode"),
    ("group.instance.id", "share groups have no static members"),
    ("isolation.level", "set share.isolation.level on the group"),
    ("partition.assignment.strategy", "the broker assigns"),
    ("interceptor.classes", "share consumers have no interceptors"),
    ("session.timeout.ms", "set share.session.timeout.ms on the group"),
    ("heartbeat.interval.ms", "set share.heartbeat.interval.ms on the group"),
    ("group.protocol", "a share consumer is always of protocol share"),
    ("group.remote.assignor", "the broker assigns"),
];

/// Settings of the Java share consumer that have no effect here, and why, beside those of all clients.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("key.deserializer", "deserialisers are given in code: see Deserializer"),
    ("value.deserializer", "deserialisers are given in code: see Deserializer"),
    ("check.crcs", "checksums are always checked"),
    ("max.partition.fetch.bytes", "brokers do not look at it in a share fetch; see fetch.max.bytes"),
    (
        "max.poll.interval.ms",
        "members of a share group are kept by their heartbeats; see share.record.lock.duration.ms",
    ),
    ("auto.commit.interval.ms", "share groups have no offset commits"),
    ("exclude.internal.topics", "there is no subscription by pattern"),
    ("internal.throw.on.fetch.stable.offset.unsupported", "it is of the inside of the Java client"),
];

/// Builds a [`KafkaShareConsumer`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct ShareConsumerBuilder {
    client: ClientConfig,
    group_id: String,
    rack: Option<String>,
    mode: AcknowledgementMode,
    acquire: AcquireMode,
    max_poll_records: usize,
    max_wait: Duration,
    min_bytes: i32,
    max_bytes: i32,
    decode_limits: DecodeLimits,
    cluster: Option<Arc<Cluster>>,
    prefetch: usize,
    lock_renewal: Option<Duration>,
    callback: Option<OutcomeCallback>,
    creates_topics: bool,
    ledger: LedgerSettings,
}

/// What [`ShareConsumerBuilder::acknowledgement_commit_callback`] is given.
pub(super) type OutcomeCallback = Arc<dyn Fn(&[AckOutcome]) + Send + Sync>;

impl std::fmt::Debug for ShareConsumerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShareConsumerBuilder")
            .field("client", &self.client)
            .field("group_id", &self.group_id)
            .field("mode", &self.mode)
            .field("acquire", &self.acquire)
            .field("max_poll_records", &self.max_poll_records)
            .finish_non_exhaustive()
    }
}

impl ShareConsumerBuilder {
    pub(super) fn new(bootstrap_servers: &str, group_id: &str) -> Self {
        ShareConsumerBuilder {
            client: ClientConfig::new(bootstrap_servers),
            group_id: group_id.to_owned(),
            rack: None,
            mode: AcknowledgementMode::default(),
            acquire: AcquireMode::default(),
            max_poll_records: 500,
            max_wait: Duration::from_millis(500),
            min_bytes: 1,
            max_bytes: 52_428_800,
            decode_limits: DecodeLimits { batch: DEFAULT_DECOMPRESSED_LIMIT, answer: 4 * DEFAULT_DECOMPRESSED_LIMIT },
            cluster: None,
            prefetch: 0,
            lock_renewal: None,
            callback: None,
            creates_topics: true,
            ledger: LedgerSettings::default(),
        }
    }

    /// From Kafka's property names. Unknown names are passed over with a warning in the log, and so are those of the Java
    /// share consumer that have no effect here, with the reason.
    ///
    /// # Errors
    /// Missing `bootstrap.servers` or `group.id`, values out of range, and names that a share consumer refuses.
    pub fn from_properties<K, V>(properties: impl IntoIterator<Item = (K, V)>) -> Result<Self>
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        let mut builder = ShareConsumerBuilder::new("", "");
        for (name, value) in properties {
            builder.set(name.as_ref(), value.as_ref())?;
        }
        Ok(builder)
    }

    /// Sets one property by its Kafka name.
    ///
    /// # Errors
    /// As [`from_properties`](Self::from_properties).
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let effect = self.set_and_tell(name, value)?;
        warn_of("share consumer", name, effect);
        Ok(())
    }

    /// Sets one property by its Kafka name, and tells what it does, where [`set`](Self::set) says so in the log.
    ///
    /// # Errors
    /// As [`from_properties`](Self::from_properties).
    pub fn set_and_tell(&mut self, name: &str, value: &str) -> Result<PropertyEffect> {
        let config = |text: String| Error::new(ErrorKind::Config, text);
        if let Some((_, reason)) = REFUSED.iter().find(|(n, _)| *n == name) {
            return Err(config(format!("{name} cannot be set on a share consumer: {reason}")));
        }
        let number =
            || value.trim().parse::<i32>().map_err(|_| config(format!("{name}={value}: a number is expected")));
        match name {
            "group.id" => value.clone_into(&mut self.group_id),
            "client.rack" => self.rack = Some(value.to_owned()).filter(|v| !v.is_empty()),
            "share.acknowledgement.mode" => {
                self.mode = match value.trim().to_ascii_lowercase().as_str() {
                    "implicit" => AcknowledgementMode::Implicit,
                    "explicit" => AcknowledgementMode::Explicit,
                    _ => return Err(config(format!("{name}={value}: implicit or explicit is expected"))),
                }
            }
            "share.acquire.mode" => {
                self.acquire = match value.trim().to_ascii_lowercase().as_str() {
                    "batch_optimized" => AcquireMode::BatchOptimized,
                    "record_limit" => AcquireMode::RecordLimit,
                    _ => return Err(config(format!("{name}={value}: batch_optimized or record_limit is expected"))),
                }
            }
            "max.poll.records" => self.max_poll_records = usize::try_from(number()?).unwrap_or(0),
            "fetch.max.wait.ms" => self.max_wait = millis(name, value)?,
            "fetch.min.bytes" => self.min_bytes = number()?,
            "fetch.max.bytes" => self.max_bytes = number()?,
            "allow.auto.create.topics" => self.creates_topics = boolean(name, value)?,
            _ if self.ledger.set(name, value)? => {}
            _ if self.client.set(name, value)? => {}
            _ => return Ok(without_effect(name, WITHOUT_EFFECT)),
        }
        Ok(PropertyEffect::Taken)
    }

    /// Connection settings. Beside a [`cluster`](Self::cluster) they are refused where the cluster's own are others.
    pub fn client_config(mut self, change: impl FnOnce(ClientConfig) -> ClientConfig) -> Self {
        self.client = change(self.client);
        self
    }

    /// `client.rack`: where this consumer runs, for rack-aware assignment.
    pub fn rack(mut self, rack: &str) -> Self {
        self.rack = Some(rack.to_owned());
        self
    }

    /// `share.acknowledgement.mode` (default implicit).
    pub fn acknowledgement_mode(mut self, mode: AcknowledgementMode) -> Self {
        self.mode = mode;
        self
    }

    /// `share.acquire.mode` (default batch-optimised).
    pub fn acquire_mode(mut self, mode: AcquireMode) -> Self {
        self.acquire = mode;
        self
    }

    /// `max.poll.records` (default 500, 1 to 2^31-1): most records that one poll returns.
    pub fn max_poll_records(mut self, records: usize) -> Self {
        self.max_poll_records = records;
        self
    }

    /// `fetch.max.wait.ms` (default 500): how long a broker holds a fetch that has nothing to bring. Also the longest
    /// time that a commit waits behind such a fetch.
    pub fn fetch_max_wait(mut self, time: Duration) -> Self {
        self.max_wait = time;
        self
    }

    /// `fetch.min.bytes` (default 1): bytes that a broker waits for, up to [`fetch_max_wait`](Self::fetch_max_wait), before
    /// it answers a fetch. With 0 it answers at once, also with nothing.
    pub fn fetch_min_bytes(mut self, bytes: i32) -> Self {
        self.min_bytes = bytes;
        self
    }

    /// `fetch.max.bytes` (default 50 MiB).
    pub fn fetch_max_bytes(mut self, bytes: i32) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Bytes that compressed records may expand to (default: 64 MiB for one batch, 256 MiB for the records of one answer
    /// to a fetch that are expanded at a time), so that what a producer or broker compressed cannot take all memory. There
    /// is an answer of each broker at a time, and one more of each with [`prefetch`](Self::prefetch).
    ///
    /// A `batch` that expands to more is rejected as a corrupt one, with an error in the log: raise the limit where producers
    /// send such. Records beyond the limit of the `answer` stay compressed until polls have handed out those before them,
    /// their locks running. An answer's limit is never less than a batch's.
    pub fn max_decompressed_bytes(mut self, batch: usize, answer: usize) -> Self {
        self.decode_limits = DecodeLimits { batch, answer };
        self
    }

    /// Fetches up to about this many records ahead while the application works on those it has (default 0: a fetch goes
    /// out when [`poll`](KafkaShareConsumer::poll) waits for one). A fetch asks for all there is room for, divided among the
    /// brokers, and for `max.poll.records` at least: larger ones cost brokers and clients less. So a few may come beyond.
    ///
    /// The acquisition lock of a record starts at the *fetch*: what waits here has that much less time left, and other
    /// members cannot have it. Prefetching ends when nobody polls for half a lock time.
    pub fn prefetch(mut self, records: usize) -> Self {
        self.prefetch = records;
        self
    }

    /// Renews the locks of records in the application's hands before they end, for at most `limit` from the poll that
    /// handed them out (default: not at all). Needs Kafka 4.2, and `share.renew.acknowledge.enable` on the group.
    ///
    /// These renewals have no outcome, and the records are not handed out again, as after a RENEW of the application's own.
    pub fn lock_renewal(mut self, limit: Duration) -> Self {
        self.lock_renewal = Some(limit).filter(|limit| !limit.is_zero());
        self
    }

    /// Calls `callback` with the outcomes of acknowledgements as they become known: in order, one call at a time, on the
    /// consumer's task or in the call that learned of them, and before `commit_sync` returns. It must not block. A panic
    /// in it is logged and goes no further. [`poll_outcomes`](KafkaShareConsumer::poll_outcomes) tells of them too.
    ///
    /// It may acknowledge, call `commit_async` and `wakeup`. What waits for the consumer (`poll`, `recv`, `commit_sync`,
    /// `close`) is refused in it with [`InvalidState`](ErrorKind::InvalidState): the consumer waits for the callback.
    ///
    /// It is kept as long as the consumer: what it needs of the consumer, it should hold weakly.
    /// [`KafkaShareConsumer::set_acknowledgement_commit_callback`] sets it on a running consumer.
    pub fn acknowledgement_commit_callback(mut self, callback: impl Fn(&[AckOutcome]) + Send + Sync + 'static) -> Self {
        self.callback = Some(Arc::new(callback));
        self
    }

    /// `allow.auto.create.topics` (default true): whether subscribing to a topic that does not exist creates it, where
    /// the broker allows that (`auto.create.topics.enable`). Without, the consumer waits until somebody else creates it.
    pub fn allow_auto_create_topics(mut self, allow: bool) -> Self {
        self.creates_topics = allow;
        self
    }

    /// `share.ack.transaction.backend` (default: not said): how acknowledgements of this consumer get into transactions. With
    /// `Ledger` or `Both`, or `Auto` on a cluster that has a ledger or no transactional acknowledgements, the
    /// [ledger](crate::ledger) is read to its end before the first record is asked for, and records that others have done or
    /// are about to do are not handed out. Say so wherever a group uses the ledger: it takes nearly all conflicts out of the
    /// transactions. Where nothing is said, the ledger is read from the first transaction on that uses it.
    ///
    /// A ledger that cannot be used is an error of every [`poll`](KafkaShareConsumer::poll), and looked for again about once
    /// a second.
    pub fn share_ack_backend(mut self, backend: AckBackendChoice) -> Self {
        self.ledger.backend = Some(backend);
        self
    }

    /// `share.ack.ledger.topic` (default `share-ack-ledger`): the topic of the [ledger](crate::ledger), whose
    /// guide lists all of its properties.
    pub fn ledger_topic(mut self, name: impl Into<String>) -> Self {
        self.ledger.topic = name.into();
        self
    }

    /// `ledger.auto.create` (default false): makes the ledger topic where it is missing, as
    /// [`NewLedger::new`](crate::ledger::NewLedger::new) has it.
    pub fn ledger_auto_create(mut self, on: bool) -> Self {
        self.ledger.auto_create = on;
        self
    }

    /// Shares connections and metadata with other clients of the same cluster. Its settings of connections hold.
    pub fn cluster(mut self, cluster: Arc<Cluster>) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// Looks whether the settings fit together, as [`build`](Self::build) does; no runtime is needed for that.
    ///
    /// # Errors
    /// Settings that make no sense.
    pub fn validate(&self) -> Result<()> {
        let config = |text: &str| Err(Error::new(ErrorKind::Config, text));
        if self.group_id.is_empty() {
            return config("group.id is empty");
        }
        if self.max_poll_records == 0 || i32::try_from(self.max_poll_records).is_err() {
            return config("max.poll.records must be 1 to 2147483647");
        }
        if self.min_bytes < 0 || self.max_bytes < 0 {
            return config("fetch.min.bytes and fetch.max.bytes must not be negative");
        }
        if self.decode_limits.batch == 0 {
            return config("max_decompressed_bytes must not be 0 for a batch");
        }
        if self.prefetch > 0 && self.acquire == AcquireMode::RecordLimit {
            return config("share.acquire.mode=record_limit locks no more than asked for: prefetch cannot go with it");
        }
        self.ledger.validate()?;
        check_millis("fetch.max.wait.ms", self.max_wait)?;
        check_millis("lock_renewal", self.lock_renewal.unwrap_or_default())?;
        let connections = self.cluster.as_ref().map_or(&self.client, |cluster| cluster.config());
        let limit = connections.request_timeout;
        if self.max_wait >= limit {
            let text = format!("fetch.max.wait.ms must be less than request.timeout.ms ({})", limit.as_millis());
            return Err(Error::new(ErrorKind::Config, text));
        }
        self.client.check_beside(connections)
    }

    /// Builds the consumer and starts its task. Nothing is sent before it subscribes.
    ///
    /// # Errors
    /// Settings that make no sense; no tokio runtime.
    pub fn build(self) -> Result<KafkaShareConsumer> {
        self.validate()?;
        let cluster = match self.cluster {
            Some(cluster) => cluster,
            None => Cluster::new(self.client)?,
        };
        let config = ConsumerConfig {
            group_id: Str::from(self.group_id),
            //= SHARE-MEMBER-10
            member_id: Str::from(Uuid::random().to_string()),
            rack: self.rack.map(Str::from),
            implicit: self.mode == AcknowledgementMode::Implicit,
            max_poll_records: self.max_poll_records,
            max_wait: self.max_wait,
            min_bytes: self.min_bytes,
            max_bytes: self.max_bytes,
            record_limit: self.acquire == AcquireMode::RecordLimit,
            backoff: cluster.config().retry_backoff,
            max_ack_age: Duration::from_secs(5),
            max_acks_pending: 10_000,
            api_timeout: cluster.config().default_api_timeout,
            metadata_max_age: cluster.config().metadata_max_age,
            prefetch: self.prefetch,
            decode_limits: self.decode_limits,
            lock_renewal: self.lock_renewal,
        };
        let machine = ShareConsumer::new(config, Instant::now());
        let options = Options {
            mode: self.mode,
            decode_limits: self.decode_limits,
            renews: self.lock_renewal.is_some(),
            prefetches: self.prefetch > 0,
            callback: self.callback,
            creates_topics: self.creates_topics,
            ledger: self.ledger,
        };
        let shared = Arc::new(Shared::new(cluster, machine, options));
        #[cfg(feature = "metrics")]
        {
            let (weak, id) = (Arc::downgrade(&shared), shared.cluster.config().client_id.clone());
            crate::facade::keep_telling(id, move || Some(weak.upgrade()?.snapshot()));
        }
        KafkaShareConsumer::start(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_names_say_why() {
        for (name, reason) in REFUSED {
            let error = ShareConsumerBuilder::from_properties([(*name, "x")]).unwrap_err();
            assert!(error.to_string().contains(name) && error.to_string().contains(reason));
        }
    }

    #[test]
    fn bad_values_are_refused_by_name() {
        for (name, value) in [
            ("max.poll.records", "0"),
            ("max.poll.records", "-1"),
            ("max.poll.records", "many"),
            ("fetch.max.wait.ms", "99999999999"),
            ("fetch.max.wait.ms", "30000"),
            ("fetch.max.wait.ms", "-1"),
            ("fetch.max.bytes", "-1"),
            ("default.api.timeout.ms", "-5"),
            ("retry.backoff.ms", "2147483648"),
            ("fetch.min.bytes", "-1"),
            ("share.acknowledgement.mode", "maybe"),
            ("share.acquire.mode", "all"),
            ("allow.auto.create.topics", "perhaps"),
            ("group.id", ""),
        ] {
            let properties = [("bootstrap.servers", "h:1"), ("group.id", "g"), (name, value)];
            let result = ShareConsumerBuilder::from_properties(properties).and_then(|b| b.validate().map(|()| b));
            let text = result.expect_err(name).to_string();
            assert!(text.contains(name), "{text}");
        }
    }

    #[test]
    fn building_outside_a_runtime_is_an_error() {
        let error = KafkaShareConsumer::builder("h:1", "g").build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
    }
}
