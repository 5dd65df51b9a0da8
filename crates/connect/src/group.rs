//! The cluster and the share group of a connector: looked at and set up before its tasks start.

use crate::dead_letters;
use crate::{ConnectError, ConnectorConfig, Properties};
use kafka_share::consumer::record_limit_offered;
use kafka_share::{Admin, ClientConfig, ErrorCode};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const COUNT_LIMIT: &str = "share.delivery.count.limit";
const ACQUIRE_MODE: &str = "share.acquire.mode";
/// How long the cluster may take to say what it offers.
const FEATURES: Duration = Duration::from_secs(30);

/// Looks at the cluster, and sets the group configs that the connector's settings map to. What is in force for the group and
/// not set by the connector becomes its setting. Answers which of the connector's topics do not exist.
pub(crate) async fn prepare(config: &mut ConnectorConfig) -> Result<Vec<String>, ConnectError> {
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
    limit_records(config, &admin).await;
    dead_letters::prepare(config, &admin, of_group(dead_letters::TOPIC)).await?;
    Ok(missing_topics(config, &admin).await)
}

/// Topics that do not exist, which a misspelt name would not either. They are waited for: a consumer looks for them again and
/// again.
async fn missing_topics(config: &ConnectorConfig, admin: &Admin) -> Vec<String> {
    let names: Vec<&str> = config.topics.iter().map(String::as_str).collect();
    let found = admin.describe_topics(&names).await.unwrap_or_default();
    let unknown = |error: &kafka_share::Error| error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let missing = found.into_iter().filter(|(_, result)| result.as_ref().is_err_and(unknown)).map(|(name, _)| name);
    let missing: Vec<String> = missing.collect();
    for topic in &missing {
        tracing::warn!(connector = %config.name, topic, "the topic does not exist; its records are read once it is created");
    }
    missing
}

/// Where nobody has said how records are acquired, no more are than a poll takes, where brokers can do that. The others would
/// wait in the consumer while the sink works, and their locks, which nobody renews, may run out: each time that costs a
/// delivery, and at the group's limit the record.
async fn limit_records(config: &mut ConnectorConfig, admin: &Admin) {
    if config.consumer.contains_key(ACQUIRE_MODE) {
        return;
    }
    match admin.cluster().features(Instant::now() + FEATURES).await {
        Ok(features) if record_limit_offered(&features) => {
            config.consumer.insert(ACQUIRE_MODE.to_owned(), "record_limit".to_owned());
        }
        Ok(_) => tracing::debug!("brokers acquire whole batches: share.acquire.mode=record_limit needs Kafka 4.2"),
        Err(error) => tracing::warn!(
            connector = %config.name, %error,
            "the cluster does not say whether it can limit records: {ACQUIRE_MODE} is batch_optimized"
        ),
    }
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
