//! The group's dead letter queue (KIP-1191, Kafka 4.4): looked at before tasks start.
//!
//! The broker alone writes it, of what is rejected or was delivered too often, and archives a record whether or not that
//! write goes well. Hence a queue that cannot take records is refused at the start, and not found out by losing them.

use crate::{ConnectError, ConnectorConfig, Tolerance};
use kafka_share::admin::{ConfigResource, NewTopic};
use kafka_share::{Admin, ErrorCode, ErrorKind};

/// Setting of a connector, and of the group.
pub(crate) const TOPIC: &str = "errors.deadletterqueue.topic.name";
const REPLICATION: &str = "errors.deadletterqueue.topic.replication.factor";
/// Config of the topic.
const ALLOWED: &str = "errors.deadletterqueue.group.enable";
/// Config of brokers.
const PREFIX: &str = "errors.deadletterqueue.topic.name.prefix";

/// Creates the queue where the connector asks for one, checks it, and sets it on the group. `of_group`: what the group has.
pub(crate) async fn prepare(
    config: &ConnectorConfig,
    admin: &Admin,
    of_group: Option<String>,
) -> Result<(), ConnectError> {
    let Some(topic) = config.dead_letter_topic.as_ref().or(of_group.as_ref()) else {
        if config.tolerance == Tolerance::All {
            tracing::warn!(
                connector = %config.name,
                "errors.tolerance=all without {TOPIC}: rejected records are archived, and nobody sees them again"
            );
        }
        return Ok(());
    };
    let own = config.dead_letter_topic.is_some();
    match check(config, admin, topic, own).await {
        // What somebody else has set must not keep a connector from running that rejects nothing.
        Err(error) if !own && config.tolerance == Tolerance::None => {
            tracing::warn!(connector = %config.name, %error, "the group's dead letter queue takes no records");
            return Ok(());
        }
        result => result?,
    }
    if own && of_group.as_ref() != Some(topic) {
        let set = admin.alter_share_group_configs(&config.group_id, &[(TOPIC, topic)]).await;
        set.map_err(|error| {
            ConnectError::config(format!(
                "{TOPIC}={topic}: it cannot be set for the group {}, which needs Kafka 4.4 and the right to alter its configs: {error}",
                config.group_id
            ))
        })?;
    }
    Ok(())
}

async fn check(config: &ConnectorConfig, admin: &Admin, topic: &str, own: bool) -> Result<(), ConnectError> {
    let wrong = |what: String| ConnectError::config(format!("{TOPIC}={topic}: {what}"));
    if let Some(prefix) = prefix(admin).await
        && !topic.starts_with(&prefix)
    {
        return Err(wrong(format!("the name must begin with {prefix:?} ({PREFIX} of the brokers)")));
    }
    let missing = |error: &kafka_share::Error| error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let found = admin.describe_topics(&[topic]).await?;
    if found.iter().any(|(_, result)| result.as_ref().is_err_and(missing)) {
        return match own {
            true => create(config, admin, topic).await,
            false => Err(wrong(format!("the topic does not exist; create it with {ALLOWED}=true"))),
        };
    }
    let of_topic = ConfigResource::Topic(topic.to_owned());
    let allowed = match admin.describe_configs(&of_topic, &[ALLOWED]).await {
        Ok(configs) => configs.get(ALLOWED).and_then(|entry| entry.value.clone()),
        Err(error) if error.kind() == ErrorKind::Authorization => {
            tracing::warn!(topic, %error, "whether the dead letter queue takes records is not known");
            return Ok(());
        }
        Err(error) => return Err(ConnectError::Kafka(error.context(TOPIC))),
    };
    match allowed.as_deref() {
        Some("true") => Ok(()),
        Some(_) => Err(wrong(format!("the topic takes no dead letters; set {ALLOWED}=true on it"))),
        None => Err(wrong(format!("the brokers know no {ALLOWED}: dead letter queues of share groups need Kafka 4.4"))),
    }
}

/// `None` where the brokers do not tell.
async fn prefix(admin: &Admin) -> Option<String> {
    let node = admin.describe_cluster().await.ok()?.brokers.first()?.id;
    let configs = admin.describe_configs(&ConfigResource::Broker(Some(node)), &[PREFIX]).await.ok()?;
    configs.get(PREFIX)?.value.clone()
}

async fn create(config: &ConnectorConfig, admin: &Admin, topic: &str) -> Result<(), ConnectError> {
    let mut new = NewTopic::new(topic, -1).config(ALLOWED, "true");
    if let Some(factor) = config.dead_letter_replication {
        new = new.replication_factor(factor);
    }
    let error = match admin.create_topic(new).await {
        Ok(_) => return Ok(()),
        Err(error) if error.code() == Some(ErrorCode::TOPIC_ALREADY_EXISTS) => return Ok(()),
        Err(error) => error,
    };
    let factor = config.dead_letter_replication.map_or_else(String::new, |n| format!(" with {REPLICATION}={n}"));
    Err(ConnectError::config(format!(
        "{TOPIC}={topic}: the topic does not exist and cannot be created{factor}: {error}; create it with {ALLOWED}=true, \
         or change {REPLICATION}"
    )))
}
