//! The ledger topic: made with the settings that it needs, and checked before it is relied on.

use crate::admin::{Admin, ConfigResource, NewTopic, TopicDescription};
use crate::net::Cluster;
use crate::{Error, ErrorKind, Result, Uuid};
use kafka_share_core::ledger::Layout;
use kafka_share_messages::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

const POLICY: &str = "cleanup.policy";
const MIN_IN_SYNC: &str = "min.insync.replicas";
const UNCLEAN: &str = "unclean.leader.election.enable";
/// More brokers than this hold no copy, unless that is asked for.
const DEFAULT_REPLICAS: usize = 3;

/// A ledger to create, for [`Admin::create_ledger`].
#[derive(Debug, Clone)]
#[must_use = "it is created by Admin::create_ledger"]
pub struct NewLedger {
    topic: String,
    partitions: u32,
    replication: Option<i16>,
    min_in_sync: Option<i16>,
    configs: Vec<(String, String)>,
}

impl Default for NewLedger {
    fn default() -> Self {
        Self::new()
    }
}

impl NewLedger {
    /// `share-ack-ledger`, with 8 partitions, on three brokers (or as many as there are).
    pub fn new() -> Self {
        let topic = super::LedgerSettings::default().topic;
        NewLedger { topic, partitions: 8, replication: None, min_in_sync: None, configs: Vec::new() }
    }

    /// Another name (`share.ack.ledger.topic`).
    pub fn topic(mut self, name: impl Into<String>) -> Self {
        self.topic = name.into();
        self
    }

    /// Number of partitions, for ever. All transactions of a group go through one of them; groups share them.
    pub fn partitions(mut self, count: u32) -> Self {
        self.partitions = count;
        self
    }

    /// Number of replicas: no less than the outputs have.
    pub fn replication_factor(mut self, replicas: i16) -> Self {
        self.replication = Some(replicas);
        self
    }

    /// `min.insync.replicas`: no less than the outputs have. One less than there are replicas, by default.
    pub fn min_in_sync_replicas(mut self, replicas: i16) -> Self {
        self.min_in_sync = Some(replicas);
        self
    }

    /// Another topic config, `segment.ms` say.
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.push((name.into(), value.into()));
        self
    }

    fn configs(&self, min_in_sync: i16) -> BTreeMap<String, String> {
        let fixed = [
            (POLICY, "compact".to_owned()),
            (UNCLEAN, "false".to_owned()),
            (MIN_IN_SYNC, min_in_sync.to_string()),
            // The segment that is written to is never compacted.
            ("segment.ms", "300000".to_owned()),
            ("segment.bytes", (16 << 20).to_string()),
            ("min.cleanable.dirty.ratio", "0.1".to_owned()),
            // A day, the default, of tombstones and markers would be read by every new member.
            ("delete.retention.ms", "300000".to_owned()),
            ("min.compaction.lag.ms", "300000".to_owned()),
        ];
        let own = fixed.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.configs.iter().cloned()).collect()
    }
}

impl Admin {
    /// Creates a ledger with the settings that it needs. One that is there already is checked instead.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = kafka_share_broker::EmbeddedBroker::builder().start().await?;
    /// use kafka_share::ledger::NewLedger;
    /// use kafka_share::{Admin, ClientConfig};
    ///
    /// let admin = Admin::new(ClientConfig::new(&broker.bootstrap_servers()))?;
    /// let id = admin.create_ledger(&NewLedger::new().partitions(4)).await?;
    /// assert_eq!(admin.create_ledger(&NewLedger::new().partitions(4)).await?, id);
    /// assert!(admin.create_ledger(&NewLedger::new().partitions(5)).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Asks first (DescribeCluster), then as [`Admin::create_topic`]. The same call may follow: a ledger that is there
    /// with these settings is an answer, and no error.
    ///
    /// # Errors
    /// The broker's refusal; one that is there with other settings.
    pub async fn create_ledger(&self, ledger: &NewLedger) -> Result<Uuid> {
        let deadline = Instant::now() + self.cluster().config().default_api_timeout;
        let Some(layout) = Layout::new(ledger.partitions) else {
            return Err(Error::new(ErrorKind::InvalidInput, "a ledger needs one partition at least"));
        };
        let brokers = self.describe_cluster().await?.brokers.len();
        let replicas = i16::try_from(brokers.min(DEFAULT_REPLICAS)).unwrap_or(1);
        let replicas = ledger.replication.unwrap_or(replicas);
        let min_in_sync = ledger.min_in_sync.unwrap_or_else(|| (replicas - 1).max(1));
        let count = i32::try_from(ledger.partitions).unwrap_or(i32::MAX);
        let topic = NewTopic::new(&ledger.topic, count).replication_factor(replicas);
        let topic = ledger.configs(min_in_sync).into_iter().fold(topic, |t, (name, value)| t.config(name, value));
        match self.create_topic(topic).await {
            Err(error) if error.code() == Some(ErrorCode::TOPIC_ALREADY_EXISTS) => {}
            result => return result,
        }
        let found = existing(self.cluster(), &ledger.topic, deadline).await?;
        if found.layout != layout {
            return Err(found.unusable(format_args!(
                "it has {} partitions and not {count}, which cannot be changed",
                found.layout.partitions()
            )));
        }
        Ok(found.id)
    }
}

/// A topic that exists, as its creation was refused for that: another broker may not know of it yet.
async fn existing(cluster: &Arc<Cluster>, name: &str, deadline: Instant) -> Result<LedgerTopic> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match LedgerTopic::open(cluster, name, false, deadline).await {
            Err(error)
                if error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
                    && cluster.pause_before_retry(attempt, deadline).await => {}
            result => return result,
        }
    }
}

/// A ledger topic whose settings are as they must be.
#[derive(Debug)]
pub(crate) struct LedgerTopic {
    pub(crate) name: String,
    pub(crate) id: Uuid,
    pub(crate) layout: Layout,
    replicas: usize,
    min_in_sync: usize,
}

fn unusable(topic: &str, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Config, format!("ledger topic {topic:?} cannot be used: {why}"))
}

impl LedgerTopic {
    /// Looks the topic up and checks its settings; makes it where it is missing, if `create`.
    pub(crate) async fn open(cluster: &Arc<Cluster>, name: &str, create: bool, deadline: Instant) -> Result<Self> {
        let admin = Admin::on(Arc::clone(cluster));
        let mut attempt = 0;
        let described = loop {
            let error = match describe(&admin, name).await {
                Ok(described) => break described,
                Err(error) => error,
            };
            match error.code() {
                Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) if create => {
                    let made = Box::pin(admin.create_ledger(&NewLedger::new().topic(name))).await;
                    made.map_err(|e| e.context(format_args!("creating ledger topic {name:?} (ledger.auto.create)")))?;
                }
                Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
                    let why = "it does not exist: create it with `kshare ledger create`, or set ledger.auto.create=true, or \
                               name another one with share.ack.ledger.topic";
                    return Err(unusable(name, why).with_code(error.code()));
                }
                Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED) => return Err(unauthorised(name, "DESCRIBE")),
                _ if !error.is_retriable() => return Err(error),
                _ => {}
            }
            attempt += 1;
            if !cluster.pause_before_retry(attempt, deadline).await {
                return Err(error.context(format_args!("looking for ledger topic {name:?}")));
            }
        };
        Self::check(&admin, described).await
    }

    /// As [`LedgerTopic::open`]; `None` where there is none.
    pub(crate) async fn find(cluster: &Arc<Cluster>, name: &str, deadline: Instant) -> Result<Option<Self>> {
        match Self::open(cluster, name, false, deadline).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => Ok(None),
            Err(error) => Err(error.context(
                "this cluster takes acknowledgements into transactions, and other members may use the ledger beside that \
                 (if none does, share.ack.transaction.backend=native leaves it alone)",
            )),
        }
    }

    async fn check(admin: &Admin, described: TopicDescription) -> Result<Self> {
        let name = described.name;
        let resource = ConfigResource::Topic(name.clone());
        let configs = match admin.describe_configs(&resource, &[POLICY, MIN_IN_SYNC, UNCLEAN]).await {
            Ok(configs) => configs,
            Err(e) if e.kind() == ErrorKind::Authorization => return Err(unauthorised(&name, "DESCRIBE_CONFIGS")),
            Err(error) => return Err(error),
        };
        let value = |name: &str| configs.get(name).and_then(|c| c.value.as_deref()).unwrap_or_default();
        if value(POLICY).trim() != "compact" {
            return Err(unusable(
                &name,
                format_args!(
                    "{POLICY} is {:?} and must be compact alone, or intents are lost before their time",
                    value(POLICY)
                ),
            ));
        }
        if value(UNCLEAN).trim() != "false" {
            return Err(unusable(
                &name,
                format_args!("{UNCLEAN} must be false: what is acknowledged in it is the lock"),
            ));
        }
        let layout = u32::try_from(described.partitions.len()).ok().and_then(Layout::new);
        Ok(LedgerTopic {
            id: described.id,
            layout: layout.ok_or_else(|| unusable(&name, "it has no partitions"))?,
            replicas: described.partitions.iter().map(|p| p.replicas.len()).min().unwrap_or(0),
            min_in_sync: value(MIN_IN_SYNC).trim().parse().unwrap_or(1),
            name,
        })
    }

    /// Checks that a failure that loses ledger records loses the output too.
    pub(crate) async fn check_output(&self, cluster: &Arc<Cluster>, topic: &str) -> Result<()> {
        let admin = Admin::on(Arc::clone(cluster));
        let described = describe(&admin, topic).await?;
        let replicas = described.partitions.iter().map(|p| p.replicas.len()).max().unwrap_or(0);
        if self.replicas < replicas {
            return Err(self.unusable(format_args!(
                "it has {} replicas and output topic {topic:?} has {replicas}: it must have no less",
                self.replicas
            )));
        }
        let resource = ConfigResource::Topic(topic.to_owned());
        let configs = match admin.describe_configs(&resource, &[MIN_IN_SYNC]).await {
            Ok(configs) => configs,
            Err(error) if error.kind() == ErrorKind::Authorization => {
                tracing::warn!(
                    output = topic,
                    "this client lacks DESCRIBE_CONFIGS on the output topic: whether its {MIN_IN_SYNC} is more than the ledger's \
                     is not known, and a failure could lose ledger records and keep the output"
                );
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let value = configs.get(MIN_IN_SYNC).and_then(|c| c.value.as_deref()).unwrap_or_default();
        let wanted = value.trim().parse().unwrap_or(1);
        if self.min_in_sync < wanted {
            return Err(self.unusable(format_args!(
                "its {MIN_IN_SYNC} is {} and that of output topic {topic:?} is {wanted}: it must be no less",
                self.min_in_sync
            )));
        }
        Ok(())
    }

    pub(super) fn unusable(&self, why: impl std::fmt::Display) -> Error {
        unusable(&self.name, why)
    }

    pub(crate) fn unauthorised(&self, right: &str) -> Error {
        unauthorised(&self.name, right)
    }
}

fn unauthorised(topic: &str, right: &str) -> Error {
    let text = format!(
        "ledger topic {topic:?} cannot be used: this client lacks {right} on it; it needs READ, WRITE, DESCRIBE and \
         DESCRIBE_CONFIGS"
    );
    Error::new(ErrorKind::Authorization, text).with_code(Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED))
}

async fn describe(admin: &Admin, topic: &str) -> Result<TopicDescription> {
    let found = admin.describe_topics(&[topic]).await?.into_iter().next();
    found.map_or_else(|| Err(Error::new(ErrorKind::Protocol, format!("topic {topic:?} was left out"))), |(_, t)| t)
}
