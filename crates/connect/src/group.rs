//! The cluster and the share group of a connector: looked at and set up before its tasks start.

use crate::dead_letters;
use crate::{ConnectError, ConnectorConfig, Properties};
use kafka_share::{Admin, ClientConfig};
use std::collections::BTreeMap;

const COUNT_LIMIT: &str = "share.delivery.count.limit";

/// Looks at the cluster, and sets the group configs that the connector's settings map to. What is in force for the group and
/// not set by the connector becomes its setting.
pub(crate) async fn prepare(config: &mut ConnectorConfig) -> Result<(), ConnectError> {
    let admin = Admin::new(client_config(&config.consumer)?)?;
    if config.is_transactional() {
        crate::backend::check(&admin, &config.consumer).await?;
        check_same_cluster(config, &admin).await?;
    }
    let lock = config
        .lock_timeout
        .map(|t| ("share.record.lock.duration.ms", "share.acquisition.lock.timeout.ms", t.as_millis().to_string()));
    let count = config.max_delivery_count.map(|n| (COUNT_LIMIT, "share.max.delivery.count", n.to_string()));
    for (name, setting, value) in lock.into_iter().chain(count) {
        if let Err(error) = admin.alter_share_group_configs(&config.group_id, &[(name, &value)]).await {
            // Without the right to alter configs the group's own value counts; a value out of bounds is a mistake.
            if error.kind() != kafka_share::ErrorKind::Authorization {
                return Err(ConnectError::config(format!("{setting}={value} (group config {name}): {error}")));
            }
            tracing::warn!(setting, %error, "the group's own value stays in force");
            if name == COUNT_LIMIT {
                config.max_delivery_count = None;
            }
        }
    }
    // Kafka before 4.3 has no settings of share groups to tell, and not everybody may ask.
    let settings = admin.share_group_settings(&config.group_id).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "the group's settings are not known");
        BTreeMap::new()
    });
    let of_group = |name: &str| settings.get(name).and_then(|entry| entry.value.clone()).filter(|v| !v.is_empty());
    if config.max_delivery_count.is_none() {
        config.max_delivery_count = of_group(COUNT_LIMIT).and_then(|n| n.parse().ok());
    }
    dead_letters::prepare(config, &admin, of_group(dead_letters::TOPIC)).await
}

pub(crate) fn client_config(properties: &Properties) -> Result<ClientConfig, ConnectError> {
    let bootstrap = properties.get("bootstrap.servers").map_or("", String::as_str);
    let mut client = ClientConfig::new(bootstrap).client_id("kafka-share-connect");
    for (name, value) in properties {
        // What is not of the connection is checked by the consumer.
        client.set(name, value)?;
    }
    Ok(client)
}

/// A transaction cannot span clusters.
async fn check_same_cluster(config: &ConnectorConfig, source: &Admin) -> Result<(), ConnectError> {
    let servers = |p: &Properties| p.get("bootstrap.servers").cloned().unwrap_or_default();
    let (from, to) = (servers(&config.consumer), servers(&config.producer));
    if from == to {
        return Ok(());
    }
    let target = Admin::new(client_config(&config.producer)?)?;
    if source.describe_cluster().await?.cluster_id == target.describe_cluster().await?.cluster_id {
        return Ok(());
    }
    Err(ConnectError::config(format!(
        "share.delivery.semantics=exactly-once: the producer's bootstrap.servers={to} is another cluster than the consumer's {from}; a transaction cannot span both"
    )))
}
