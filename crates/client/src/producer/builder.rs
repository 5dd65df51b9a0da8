//! Settings of a producer, typed and under Kafka's property names.

use super::backend_choice::backend;
use super::sender::{Sender, Stop};
use super::shared::Shared;
use crate::config::{boolean, check_millis, millis};
use crate::ledger::{AckBackendChoice, LedgerSettings};
use crate::net::Cluster;
use crate::properties::warn_without_effect;
use crate::{ClientConfig, Error, ErrorKind, Result};
use kafka_share_core::producer::{Producer as Machine, ProducerConfig};
use kafka_share_core::transaction::{PreparedTransaction, Transaction};
use kafka_share_wire::Str;
pub use kafka_share_wire::compression::Compression;
use kafka_share_wire::compression::check_level;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// Settings of the Java producer that have no effect here, and why, beside those of all clients.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("retries", "delivery.timeout.ms decides"),
    ("key.serializer", "keys and values are bytes"),
    ("value.serializer", "keys and values are bytes"),
    ("interceptor.classes", "producers have no interceptors"),
    ("partitioner.class", "give a record its partition; else its key chooses it by its hash, as in Java"),
    ("partitioner.ignore.keys", "keys choose partitions; give a record its partition"),
    ("partitioner.adaptive.partitioning.enable", "records without a key stay with a partition for a batch"),
    ("partitioner.availability.timeout.ms", "records without a key stay with a partition for a batch"),
    ("partitioner.rack.aware", "partitions are not chosen by rack"),
    ("client.rack", "partitions are not chosen by rack"),
    ("buffer.memory.allocation.strategy", "records take as much of buffer.memory as they are long"),
    ("metadata.max.idle.ms", "what is known of a topic is kept"),
];

/// Settings of a [`Producer`](super::Producer) or [`TransactionalProducer`](super::TransactionalProducer).
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) client: ClientConfig,
    pub(super) transactional_id: Option<String>,
    /// As given by the application; 60 s.
    transaction_timeout: Option<Duration>,
    pub(super) two_phase_commit: bool,
    pub(super) max_block: Duration,
    pub(super) ack_key: i16,
    pub(super) ledger: LedgerSettings,
    pub(super) attempts: u32,
    pub(super) machine: ProducerConfig,
    /// By the application, and not by default.
    delivery_timeout_given: bool,
    /// `compression.*.level`, by codec.
    levels: Vec<(Compression, i32)>,
    pub(super) cluster: Option<Arc<Cluster>>,
}

impl Settings {
    pub(super) fn new(bootstrap_servers: &str) -> Self {
        let client = ClientConfig::new(bootstrap_servers);
        let backoff = client.retry_backoff;
        Settings {
            client,
            transactional_id: None,
            transaction_timeout: None,
            two_phase_commit: false,
            max_block: Duration::from_secs(60),
            attempts: 3,
            ack_key: kafka_share_messages::ApiKey::TXN_SHARE_ACKNOWLEDGE.0,
            ledger: LedgerSettings::default(),
            machine: ProducerConfig {
                batch_size: 16_384,
                linger: Duration::from_millis(5),
                buffer_memory: 32 << 20,
                max_request_size: 1 << 20,
                compression: Compression::None,
                compression_level: None,
                delivery_timeout: Duration::from_secs(120),
                request_timeout_ms: 30_000,
                max_in_flight: 5,
                backoff,
            },
            delivery_timeout_given: false,
            levels: Vec::new(),
            cluster: None,
        }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let fail = |what: &str| Err(Error::new(ErrorKind::Config, format!("{name}={value}: {what}")));
        let number = || value.trim().parse::<usize>().or_else(|_| fail("a number is expected").map(|()| 0));
        match name {
            "transactional.id" => self.transactional_id = Some(value.to_owned()),
            "transaction.timeout.ms" => self.transaction_timeout = Some(millis(name, value)?),
            "transaction.two.phase.commit.enable" => self.two_phase_commit = boolean(name, value)?,
            "max.block.ms" => self.max_block = millis(name, value)?,
            "batch.size" => self.machine.batch_size = number()?,
            "linger.ms" => self.machine.linger = millis(name, value)?,
            "buffer.memory" => self.machine.buffer_memory = number()?,
            "max.request.size" => self.machine.max_request_size = number()?,
            "delivery.timeout.ms" => self.set_delivery_timeout(millis(name, value)?),
            "max.in.flight.requests.per.connection" => self.machine.max_in_flight = number()?,
            "compression.type" => match value.trim().to_ascii_lowercase().parse() {
                Ok(codec) => self.machine.compression = codec,
                Err(_) => return fail("none, gzip, snappy, lz4 or zstd is expected"),
            },
            "compression.gzip.level" => self.set_level(name, Compression::Gzip, value)?,
            "compression.lz4.level" => self.set_level(name, Compression::Lz4, value)?,
            "compression.zstd.level" => self.set_level(name, Compression::Zstd, value)?,
            "share.acknowledgement.transaction.api.key" => match value.trim().parse() {
                Ok(key) => self.ack_key = key,
                Err(_) => return fail("an API key is expected"),
            },
            "acks" if matches!(value.trim(), "all" | "-1") => {}
            "acks" => return fail("this producer is idempotent, which needs all"),
            "enable.idempotence" if value.trim().eq_ignore_ascii_case("true") => {}
            "enable.idempotence" => return fail("this producer is always idempotent"),
            _ if self.ledger.set(name, value)? => {}
            _ if self.client.set(name, value)? => {}
            _ => warn_without_effect("producer", name, WITHOUT_EFFECT),
        }
        Ok(())
    }

    fn set_delivery_timeout(&mut self, time: Duration) {
        self.machine.delivery_timeout = time;
        self.delivery_timeout_given = true;
    }

    /// A delivery has time for one request, as in Java: the default is raised where it is too short, a value that was
    /// given is refused.
    fn fit_delivery_timeout(&mut self, request: Duration) -> Result<()> {
        let most = Duration::from_millis(i32::MAX as u64);
        let least = self.machine.linger.saturating_add(request).min(most);
        let given = self.machine.delivery_timeout;
        if given >= least {
            return Ok(());
        }
        let (given, needed) = (given.as_millis(), least.as_millis());
        if self.delivery_timeout_given {
            let text = format!(
                "delivery.timeout.ms is {given}, and must be at least linger.ms + request.timeout.ms, which is {needed}"
            );
            return Err(Error::new(ErrorKind::Config, text));
        }
        tracing::warn!(
            "delivery.timeout.ms is {needed} and not {given}, to be at least linger.ms + request.timeout.ms"
        );
        self.machine.delivery_timeout = least;
        Ok(())
    }

    /// A level counts for its own codec only, and is checked whichever is used.
    fn set_level(&mut self, name: &str, codec: Compression, value: &str) -> Result<()> {
        let fail = |why: String| Err(Error::new(ErrorKind::Config, format!("{name}={value}: {why}")));
        let Ok(level) = value.trim().parse::<i32>() else { return fail("a number is expected".into()) };
        self.levels.retain(|(of, _)| *of != codec);
        // Java's word for gzip's own default.
        if codec == Compression::Gzip && level == -1 {
            return Ok(());
        }
        match check_level(codec, level) {
            Ok(()) => self.levels.push((codec, level)),
            Err(error) => return fail(error.to_string()),
        }
        Ok(())
    }

    fn transaction_timeout(&self) -> Duration {
        self.transaction_timeout.unwrap_or(Duration::from_secs(60))
    }

    /// Level of the codec that is used.
    fn level(&self) -> Option<i32> {
        self.levels.iter().find(|(codec, _)| *codec == self.machine.compression).map(|(_, level)| *level)
    }

    fn validate(&self) -> Result<()> {
        let fail = |text: &str| Err(Error::new(ErrorKind::Config, text));
        for (name, time) in [
            ("transaction.timeout.ms", self.transaction_timeout()),
            ("max.block.ms", self.max_block),
            ("linger.ms", self.machine.linger),
            ("delivery.timeout.ms", self.machine.delivery_timeout),
        ] {
            check_millis(name, time)?;
        }
        self.ledger.validate()?;
        if self.transactional_id.as_ref().is_some_and(String::is_empty) {
            return fail("transactional.id is empty: give one that no other producer uses");
        }
        if self.two_phase_commit && self.transaction_timeout.is_some() {
            return fail(
                "transaction.timeout.ms beside transaction.two.phase.commit.enable=true: such transactions have no time limit, \
                 leave one of them away",
            );
        }
        if self.transaction_timeout().is_zero() || self.max_block.is_zero() || self.machine.delivery_timeout.is_zero() {
            return fail("transaction.timeout.ms, max.block.ms and delivery.timeout.ms must not be 0");
        }
        if !(1..=5).contains(&self.machine.max_in_flight) {
            return fail("max.in.flight.requests.per.connection: 1 to 5 keep the order of an idempotent producer");
        }
        Ok(())
    }

    /// Checks the settings and starts the background task; with a transaction that another process prepared.
    pub(super) fn start(mut self, prepared: Option<&PreparedTransaction>) -> Result<(Arc<Shared>, Arc<Stop>)> {
        self.validate()?;
        let handle = tokio::runtime::Handle::try_current()
            .map_err(|_| Error::new(ErrorKind::InvalidState, "a producer must be built inside a tokio runtime"))?;
        let cluster = match self.cluster.take() {
            Some(cluster) => cluster,
            None => Cluster::new(self.client.clone())?,
        };
        self.client.check_beside(cluster.config())?;
        self.machine.compression_level = self.level();
        self.machine.backoff = cluster.config().retry_backoff;
        let request = cluster.config().request_timeout;
        self.fit_delivery_timeout(request)?;
        self.machine.request_timeout_ms = i32::try_from(request.as_millis()).unwrap_or(i32::MAX);
        let timeout = i32::try_from(self.transaction_timeout().as_millis()).unwrap_or(i32::MAX);
        let transaction = self.transactional_id.map(|id| match prepared {
            Some(prepared) => Transaction::resumed(prepared, timeout),
            None => Transaction::new(Str::from(id), timeout),
        });
        let transaction = transaction.map(|t| t.with_two_phase_commit(self.two_phase_commit));
        let machine = Machine::new(self.machine, transaction, RandomState::new().hash_one(0));
        let shared = Shared::new(cluster, machine, self.max_block);
        #[cfg(feature = "metrics")]
        {
            let (weak, id) = (Arc::downgrade(&shared), shared.cluster.config().client_id.clone());
            crate::facade::keep_telling(id, move || Some(weak.upgrade()?.metrics()));
        }
        let stop = Arc::new(Stop::default());
        handle.spawn(Sender::new(Arc::clone(&shared), Arc::clone(&stop)).run());
        Ok((shared, stop))
    }
}

/// The setters that both builders have.
macro_rules! common_setters {
    () => {
        /// From Kafka's property names. Unknown names are passed over with a warning in the log, and so are those of the
        /// Java producer that have no effect here, with the reason.
        ///
        /// # Errors
        /// Values that do not parse or that an idempotent producer cannot have.
        pub fn from_properties<K: AsRef<str>, V: AsRef<str>>(
            properties: impl IntoIterator<Item = (K, V)>,
        ) -> Result<Self> {
            let mut builder = Self { settings: Settings::new("") };
            for (name, value) in properties {
                builder.settings.set(name.as_ref(), value.as_ref())?;
            }
            Ok(builder)
        }

        /// Sets one property by its Kafka name.
        ///
        /// # Errors
        /// As [`from_properties`](Self::from_properties).
        pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
            self.settings.set(name, value)
        }

        /// Connection settings. Beside a [`cluster`](Self::cluster) they are refused where the cluster's own are others.
        pub fn client_config(mut self, config: ClientConfig) -> Self {
            self.settings.client = config;
            self
        }

        /// Uses the connections of another client, and its connection settings.
        pub fn cluster(mut self, cluster: Arc<Cluster>) -> Self {
            self.settings.cluster = Some(cluster);
            self
        }

        /// `linger.ms` (default 5 ms): how long a batch waits for more records.
        pub fn linger(mut self, time: Duration) -> Self {
            self.settings.machine.linger = time;
            self
        }

        /// `batch.size` (default 16 KiB): bytes of a batch before compression. One that is larger than
        /// `max.request.size` goes in a request of its own.
        pub fn batch_size(mut self, bytes: usize) -> Self {
            self.settings.machine.batch_size = bytes;
            self
        }

        /// `compression.type` (default none).
        pub fn compression(mut self, codec: Compression) -> Self {
            self.settings.machine.compression = codec;
            self
        }

        /// `max.block.ms` (default 60 s): longest wait for metadata, for room in the buffer, and of each call that
        /// speaks to a coordinator.
        pub fn max_block(mut self, time: Duration) -> Self {
            self.settings.max_block = time;
            self
        }

        /// `delivery.timeout.ms` (default 120 s): time from a record's send to its delivery or failure. At least
        /// `linger.ms` + `request.timeout.ms`: the default is raised to that, and what is given here is refused below it.
        pub fn delivery_timeout(mut self, time: Duration) -> Self {
            self.settings.set_delivery_timeout(time);
            self
        }
    };
}

/// Builds a [`Producer`](super::Producer).
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct ProducerBuilder {
    settings: Settings,
}

impl ProducerBuilder {
    pub(super) fn new(bootstrap_servers: &str) -> Self {
        ProducerBuilder { settings: Settings::new(bootstrap_servers) }
    }

    common_setters!();

    /// Checks the settings and starts the producer's task; connects with the first record.
    ///
    /// # Errors
    /// Settings that make no sense; a call outside a tokio runtime.
    pub fn build(self) -> Result<super::Producer> {
        if self.settings.transactional_id.is_some() {
            return Err(Error::new(ErrorKind::Config, "transactional.id is set: build a TransactionalProducer"));
        }
        let (shared, stop) = self.settings.start(None)?;
        Ok(super::Producer::new(shared, stop))
    }
}

/// Builds a [`TransactionalProducer`](super::TransactionalProducer).
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct TransactionalProducerBuilder {
    settings: Settings,
}

impl TransactionalProducerBuilder {
    pub(super) fn new(bootstrap_servers: &str, transactional_id: &str) -> Self {
        let mut settings = Settings::new(bootstrap_servers);
        settings.transactional_id = Some(transactional_id.to_owned());
        TransactionalProducerBuilder { settings }
    }

    common_setters!();

    /// `transaction.timeout.ms` (default 60 s): age at which the coordinator aborts the transaction. Not beside
    /// [`two_phase_commit`](Self::two_phase_commit).
    pub fn transaction_timeout(mut self, time: Duration) -> Self {
        self.settings.transaction_timeout = Some(time);
        self
    }

    /// How often [`transaction`](super::TransactionalProducer::transaction) does its work, at most (default 3).
    pub fn transaction_attempts(mut self, attempts: u32) -> Self {
        self.settings.attempts = attempts;
        self
    }

    /// `transaction.two.phase.commit.enable` (default false): the coordinator keeps a transaction open, however old, until
    /// it is committed or aborted (KIP-939). An abandoned one holds its records and their readers for ever. Needs
    /// InitProducerId version 6, which Kafka 4.4 offers with `unstable.api.versions.enable`, and a broker that has the
    /// setting of the same name on.
    pub fn two_phase_commit(mut self, on: bool) -> Self {
        self.settings.two_phase_commit = on;
        self
    }

    /// `share.ack.transaction.backend` (default auto): how acknowledgements get into a transaction. A group whose members run
    /// on the [ledger](crate::ledger) goes on to native acknowledgements by way of `Both`, one member at a time.
    pub fn share_ack_backend(mut self, backend: AckBackendChoice) -> Self {
        self.settings.ledger.backend = Some(backend);
        self
    }

    /// `share.ack.ledger.topic` (default `share-ack-ledger`): the topic of the [ledger](crate::ledger), whose
    /// guide lists all of its properties.
    pub fn ledger_topic(mut self, name: impl Into<String>) -> Self {
        self.settings.ledger.topic = name.into();
        self
    }

    /// `ledger.auto.create` (default false): makes the ledger topic where it is missing, as
    /// [`NewLedger::new`](crate::ledger::NewLedger::new) has it.
    pub fn ledger_auto_create(mut self, on: bool) -> Self {
        self.settings.ledger.auto_create = on;
        self
    }

    /// The same settings under another transactional id.
    pub(super) fn under(mut self, transactional_id: String) -> Self {
        self.settings.transactional_id = Some(transactional_id);
        self
    }

    pub(super) fn transactional_id(&self) -> Option<&str> {
        self.settings.transactional_id.as_deref()
    }

    /// Checks the settings and starts the producer's task; connects with the first call.
    ///
    /// # Errors
    /// Settings that make no sense; a call outside a tokio runtime.
    pub fn build(self) -> Result<super::TransactionalProducer> {
        self.build_with(None)
    }

    /// A producer that has only a transaction to end, which another process prepared.
    pub(super) fn build_with(self, prepared: Option<&PreparedTransaction>) -> Result<super::TransactionalProducer> {
        if self.settings.transactional_id.is_none() {
            return Err(Error::new(ErrorKind::Config, "transactional.id is missing"));
        }
        let (key, attempts) = (self.settings.ack_key, self.settings.attempts.max(1));
        let ledger = self.settings.ledger.clone();
        let (shared, stop) = self.settings.start(prepared)?;
        let backend = backend(&shared, ledger, key);
        Ok(super::TransactionalProducer::new(shared, stop, backend, attempts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_has_time_for_one_request() {
        let request = Duration::from_secs(30);
        let mut short = settings(&[("delivery.timeout.ms", "30004")]).unwrap();
        let error = short.fit_delivery_timeout(request).unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("30005"), "{error}");
        let mut exact = settings(&[("linger.ms", "100"), ("delivery.timeout.ms", "30100")]).unwrap();
        exact.fit_delivery_timeout(request).unwrap();
        assert_eq!(exact.machine.delivery_timeout, Duration::from_millis(30_100));
        // The default is no choice of the application's.
        let mut default = settings(&[("linger.ms", "1000")]).unwrap();
        default.fit_delivery_timeout(Duration::from_secs(300)).unwrap();
        assert_eq!(default.machine.delivery_timeout, Duration::from_secs(301));
        default.fit_delivery_timeout(request).unwrap();
        assert_eq!(default.machine.delivery_timeout, Duration::from_secs(301), "never lowered");
    }

    #[test]
    fn a_transaction_without_a_limit_is_given_none() {
        let both = [("transaction.two.phase.commit.enable", "true"), ("transaction.timeout.ms", "60000")];
        let error = settings(&both).unwrap().validate().unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("leave one of them away"), "{error}");
        both.iter().for_each(|one| settings(&[*one]).unwrap().validate().unwrap());
    }

    fn settings(properties: &[(&str, &str)]) -> Result<Settings> {
        let mut settings = Settings::new("");
        properties.iter().try_for_each(|(name, value)| settings.set(name, value))?;
        Ok(settings)
    }

    #[test]
    fn a_compression_level_counts_for_its_own_codec() {
        let given = [("compression.gzip.level", "9"), ("compression.zstd.level", "-7"), ("compression.type", "lz4")];
        let mut settings = settings(&given).unwrap();
        assert_eq!(settings.level(), None);
        settings.machine.compression = Compression::Zstd;
        assert_eq!(settings.level(), Some(-7));
        settings.machine.compression = Compression::Gzip;
        assert_eq!(settings.level(), Some(9));
        settings.set("compression.gzip.level", "-1").unwrap();
        assert_eq!(settings.level(), None, "its own default");
    }

    #[test]
    fn levels_out_of_range_are_refused_by_name_whichever_codec_is_used() {
        for (name, value) in [
            ("compression.gzip.level", "0"),
            ("compression.gzip.level", "10"),
            ("compression.gzip.level", "-2"),
            ("compression.lz4.level", "0"),
            ("compression.lz4.level", "18"),
            ("compression.zstd.level", "23"),
            ("compression.zstd.level", "fast"),
        ] {
            let Err(error) = settings(&[(name, value)]) else { panic!("{name}={value} is taken") };
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains(name), "{error}");
        }
    }
}
