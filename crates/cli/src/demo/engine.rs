//! The cluster of a run: an embedded broker, or the one that was named; topics and group on it.

use super::{Plan, Semantics};
use crate::cluster_args::ClusterArgs;
use crate::exit::Failure;
use kafka_share::admin::NewTopic;
use kafka_share::net::Cluster;
use kafka_share::{Admin, ClientConfig, PartitionReader, Producer};
use kafka_share_broker::{EmbeddedBroker, GroupBounds};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Lock under chaos, so that a pause past it is short.
const CHAOS_LOCK: Duration = Duration::from_secs(2);

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

    pub(super) fn producer(&self) -> Result<Producer, Failure> {
        Ok(Producer::builder("").cluster(self.cluster()).build()?)
    }

    pub(super) async fn reader(&self, topic: &str) -> Result<PartitionReader, Failure> {
        Ok(PartitionReader::read_committed(self.cluster(), topic).await?)
    }

    /// Says, before anything starts, whether the cluster can do what was asked; answers the backend of the acks.
    pub(super) async fn check(&self, semantics: Semantics) -> Result<&'static str, Failure> {
        let deadline = Instant::now() + Duration::from_secs(15);
        let features = self.cluster.features(deadline).await?;
        if semantics == Semantics::AtLeastOnce {
            return Ok("none");
        }
        if kafka_share::transactional_acknowledgements_offered(&features) {
            return Ok("native");
        }
        Err(Failure::new(
            "this cluster has no transactional acknowledgements (KIP-1289 is not in any released Kafka), so exactly-once \
             is not possible on it; use --semantics at-least-once, or leave out --bootstrap-server for the embedded broker",
        ))
    }

    /// Creates the topics and sets the group up.
    pub(super) async fn prepare(&self, plan: &Plan) -> Result<Setup, Failure> {
        for topic in [&plan.input_topic, &plan.output_topic] {
            self.admin.create_topic(NewTopic::new(topic.as_str(), plan.partitions)).await?;
        }
        let group = self.admin.alter_share_group_configs(&plan.group, &[("share.auto.offset.reset", "earliest")]).await;
        group.map_err(|e| Failure::new(format_args!("the share group cannot be set up: {e}")))?;
        let mut lock = Duration::from_secs(30);
        if plan.chaos {
            // Brokers bound these; where a bound is tighter, the pause past the lock is longer, and that is all.
            let ms = CHAOS_LOCK.as_millis().to_string();
            for (name, value) in [("share.record.lock.duration.ms", ms.as_str()), ("share.delivery.count.limit", "10")]
            {
                match self.admin.alter_share_group_configs(&plan.group, &[(name, value)]).await {
                    Ok(()) if name == "share.record.lock.duration.ms" => lock = CHAOS_LOCK,
                    Ok(()) => {}
                    Err(error) => tracing::warn!(name, value, %error, "the broker does not allow this"),
                }
            }
        }
        Ok(Setup { lock })
    }

    /// Removes what the run left on a cluster that goes on.
    pub(super) async fn finish(&self, plan: &Plan) {
        if self.embedded.is_none() {
            let topics = [plan.input_topic.as_str(), plan.output_topic.as_str()];
            if let Err(error) = self.admin.delete_topics(&topics).await {
                tracing::warn!(%error, "the demo's topics stay on the cluster");
            }
            let _ = self.admin.delete_groups(&[plan.group.as_str()]).await;
        }
    }
}
