//! The cluster of a run: an embedded broker, or the one that was named; topics and group on it.

use super::{BackendArg, Plan, Semantics};
use crate::cluster_args::ClusterArgs;
use crate::exit::Failure;
use kafka_share::admin::{Isolation, NewTopic};
use kafka_share::consumer::record_limit_offered;
use kafka_share::ledger::NewLedger;
use kafka_share::net::Cluster;
use kafka_share::{Admin, ClientConfig, PartitionReader, Producer};
use kafka_share_broker::{EmbeddedBroker, GroupBounds};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Locks under chaos, the first that the broker allows: a pause past it should be short.
const CHAOS_LOCKS: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(15)];

pub(super) struct Engine {
    embedded: Option<Arc<EmbeddedBroker>>,
    cluster: Arc<Cluster>,
    admin: Admin,
}

/// What the preparation found out.
pub(super) struct Setup {
    /// Length of the acquisition lock of the group.
    pub(super) lock: Duration,
}

impl Engine {
    pub(super) async fn start(args: &ClusterArgs, nodes: u16, chaos: bool, seed: u64) -> Result<Self, Failure> {
        let (embedded, config) = if args.is_given() {
            (None, args.client_config()?)
        } else {
            let mut bounds = GroupBounds::default();
            if chaos {
                // As an administrator may allow it; a pause past the lock would take half a minute otherwise.
                bounds.record_lock_ms.0 = 1_000;
                bounds.delivery_count_limit.1 = 25;
            }
            let broker =
                EmbeddedBroker::builder().nodes(usize::from(nodes)).seed(seed).group_bounds(bounds).start().await;
            let broker = broker.map_err(|e| Failure::new(format_args!("the embedded broker does not start: {e}")))?;
            let config = ClientConfig::new(&broker.bootstrap_servers()).client_id("kshare-demo");
            (Some(Arc::new(broker)), config)
        };
        let cluster = Cluster::new(config)?;
        let admin = Admin::on(Arc::clone(&cluster));
        Ok(Engine { embedded, cluster, admin })
    }

    pub(super) fn embedded(&self) -> Option<Arc<EmbeddedBroker>> {
        self.embedded.clone()
    }

    pub(super) fn cluster(&self) -> Arc<Cluster> {
        Arc::clone(&self.cluster)
    }

    /// Writes small batches: brokers that know no limit of records acquire whole ones.
    pub(super) fn producer(&self) -> Result<Producer, Failure> {
        Ok(Producer::builder("").cluster(self.cluster()).batch_size(2_000).build()?)
    }

    pub(super) async fn reader(&self, topic: &str) -> Result<PartitionReader, Failure> {
        Ok(PartitionReader::read_committed(self.cluster(), topic).await?)
    }

    /// Reads a topic on from some offsets.
    pub(super) async fn reader_from(&self, topic: &str, from: &[(i32, i64)]) -> Result<PartitionReader, Failure> {
        Ok(PartitionReader::new(self.cluster(), topic, Isolation::ReadCommitted, Some(from)).await?)
    }

    /// Says, before anything starts, whether the cluster can do what was asked; answers the backend of the acks.
    pub(super) async fn check(&self, semantics: Semantics, wanted: BackendArg) -> Result<&'static str, Failure> {
        let deadline = Instant::now() + Duration::from_secs(15);
        let features = self.cluster.features(deadline).await?;
        if semantics == Semantics::AtLeastOnce {
            return Ok("none");
        }
        let offered = kafka_share::transactional_acknowledgements_offered(&features);
        match wanted {
            BackendArg::Ledger => Ok("ledger"),
            BackendArg::Auto if !offered => Ok("ledger"),
            BackendArg::Auto | BackendArg::Native if offered => Ok("native"),
            BackendArg::Both if offered => Ok("both"),
            _ => Err(Failure::new(
                "this cluster has no transactional acknowledgements (KIP-1289 is not in any released Kafka): leave out \
                 --backend, for the ledger",
            )),
        }
    }

    pub(super) async fn limits_records(&self) -> Result<bool, Failure> {
        let features = self.cluster.features(Instant::now() + Duration::from_secs(15)).await?;
        Ok(record_limit_offered(&features))
    }

    /// Creates the topics and sets the group up.
    pub(super) async fn prepare(&self, plan: &Plan) -> Result<Setup, Failure> {
        for topic in [&plan.input_topic, &plan.output_topic] {
            self.admin.create_topic(NewTopic::new(topic.as_str(), plan.partitions)).await?;
        }
        if plan.has_ledger() {
            self.create_ledger(plan).await?;
        }
        let group = self.admin.alter_share_group_configs(&plan.group, &[("share.auto.offset.reset", "earliest")]).await;
        group.map_err(|e| Failure::new(format_args!("the share group cannot be set up: {e}")))?;
        let mut lock = Duration::from_secs(30);
        if plan.chaos {
            // Every strike costs a delivery; at the limit the broker archives the record, and it would count as missing.
            let limit = if self.embedded.is_some() { "25" } else { "10" };
            self.try_group_config(plan, "share.delivery.count.limit", limit).await;
            // A member that was killed is not waited for.
            for (name, value) in [("share.heartbeat.interval.ms", "500"), ("share.session.timeout.ms", "3000")] {
                self.try_group_config(plan, name, value).await;
            }
            // Brokers bound the lock, at 15 s by default; the pause past it gets longer with it, and that is all.
            for wanted in CHAOS_LOCKS {
                if self.try_group_config(plan, "share.record.lock.duration.ms", &wanted.as_millis().to_string()).await {
                    lock = wanted;
                    break;
                }
            }
        }
        Ok(Setup { lock })
    }

    /// A ledger of the run's own. Under chaos it is compacted as soon as brokers do it at all, so that members that were
    /// stopped meet what is missing.
    async fn create_ledger(&self, plan: &Plan) -> Result<(), Failure> {
        let mut ledger = NewLedger::new().topic(&plan.ledger).partitions(2);
        if plan.chaos {
            for (name, value) in [
                ("segment.ms", "3000"),
                ("min.compaction.lag.ms", "0"),
                ("delete.retention.ms", "1000"),
                ("min.cleanable.dirty.ratio", "0.01"),
            ] {
                ledger = ledger.config(name, value);
            }
        }
        let made = self.admin.create_ledger(&ledger).await;
        made.map(drop).map_err(|e| Failure::new(format_args!("the ledger cannot be created: {e}")))
    }

    async fn try_group_config(&self, plan: &Plan, name: &str, value: &str) -> bool {
        let result = self.admin.alter_share_group_configs(&plan.group, &[(name, value)]).await;
        if let Err(error) = &result {
            tracing::warn!(name, value, %error, "the broker does not allow this");
        }
        result.is_ok()
    }

    /// Removes what the run left on a cluster that goes on.
    pub(super) async fn finish(&self, plan: &Plan) {
        if self.embedded.is_none() {
            let mut topics = vec![plan.input_topic.as_str(), plan.output_topic.as_str()];
            if plan.has_ledger() {
                topics.push(&plan.ledger);
            }
            if let Err(error) = self.admin.delete_topics(&topics).await {
                tracing::warn!(%error, "the demo's topics stay on the cluster");
            }
            let _ = self.admin.delete_groups(&[plan.group.as_str()]).await;
        }
    }
}
