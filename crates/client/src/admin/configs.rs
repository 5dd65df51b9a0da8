//! Configs of topics, brokers and groups.

use super::topics::missing;
use super::{Admin, check};
use crate::net::Purpose;
use crate::{Error, ErrorKind, Result};
use kafka_share_messages::describe_configs_request::DescribeConfigsResource;
use kafka_share_messages::describe_configs_response::DescribeConfigsResponse;
use kafka_share_messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_share_messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};
use kafka_share_wire::Str;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

/// What has configs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigResource {
    /// A topic, by name.
    Topic(String),
    /// A broker, by id; `None` for what all brokers share.
    Broker(Option<i32>),
    /// A group, by id (KIP-848, KIP-932).
    Group(String),
}

impl ConfigResource {
    fn to_wire(&self) -> (i8, Str) {
        match self {
            ConfigResource::Topic(name) => (2, Str::from(name)),
            ConfigResource::Broker(id) => (4, id.map_or(Str::default(), |id| Str::from(id.to_string()))),
            ConfigResource::Group(id) => (32, Str::from(id)),
        }
    }
}

impl fmt::Display for ConfigResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigResource::Topic(name) => write!(f, "topic {name:?}"),
            ConfigResource::Broker(Some(id)) => write!(f, "broker {id}"),
            ConfigResource::Broker(None) => f.write_str("all brokers"),
            ConfigResource::Group(id) => write!(f, "group {id:?}"),
        }
    }
}

/// A config as it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Value; `None` for secrets.
    pub value: Option<String>,
    /// Whether it is a default, so that nobody set it for this resource.
    pub is_default: bool,
    /// Whether it can be altered.
    pub read_only: bool,
}

/// `config_source` of values set for the resource itself, by resource type: topic 1, broker 2, group 8.
const OWN_SOURCES: [i8; 3] = [1, 2, 8];

impl Admin {
    /// Configs of a resource; all where `names` is empty.
    ///
    /// # Cancel safety
    /// Only asks (DescribeConfigs): nothing is half done.
    ///
    /// # Errors
    /// The broker's refusal; where no broker answers.
    pub async fn describe_configs(
        &self,
        resource: &ConfigResource,
        names: &[&str],
    ) -> Result<BTreeMap<String, ConfigEntry>> {
        let deadline = self.deadline();
        let request = describe_request(resource, names);
        retrying!(self, deadline, async {
            let response = match resource {
                // A broker's own configs are known to that broker only.
                ConfigResource::Broker(Some(id)) => {
                    self.cluster().refresh_topics(&[], deadline).await?;
                    self.cluster().call_node(*id, Purpose::Coordination, &request, deadline).await?
                }
                _ => self.cluster().call_any(&request, deadline).await?,
            };
            entries(resource, &response)
        })
    }

    /// Sets configs (`Some`), or takes them back to their defaults (`None`).
    ///
    /// Brokers see the change a little later; for share groups see [`Admin::alter_share_group_configs`].
    ///
    /// # Cancel safety
    /// One IncrementalAlterConfigs has all `changes`. Where it had not gone out, nothing is changed; else the
    /// controller makes all of them or none, and only its answer is lost. [`Admin::describe_configs`] tells, and the
    /// same call may follow.
    ///
    /// # Errors
    /// The broker's refusal, unknown names and bad values say; where no broker answers.
    pub async fn incremental_alter_configs(
        &self,
        resource: &ConfigResource,
        changes: &[(&str, Option<&str>)],
    ) -> Result<()> {
        let deadline = self.deadline();
        let (resource_type, resource_name) = resource.to_wire();
        let change = |(name, value): &(&str, Option<&str>)| AlterableConfig {
            name: Str::from(*name),
            config_operation: i8::from(value.is_none()),
            value: value.map(Str::from),
            ..AlterableConfig::default()
        };
        let row = AlterConfigsResource {
            resource_type,
            resource_name,
            configs: changes.iter().map(change).collect(),
            ..AlterConfigsResource::default()
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![row], ..Default::default() };
        retrying!(self, deadline, async {
            let response = self.cluster().call_any(&request, deadline).await?;
            let what = format!("altering configs of {resource}");
            let row = response.responses.first().ok_or_else(|| missing(&what))?;
            check(row.error_code, what, row.error_message.as_ref())
        })
    }

    /// Sets configs of a share group, `share.auto.offset.reset` say, and waits until every broker shows them.
    ///
    /// A group reads some of its configs once, when it first sees a partition: a member that joins before all brokers
    /// have the change can start at the wrong offset for good. A broker that is down is waited for until it leaves the
    /// metadata.
    ///
    /// # Cancel safety
    /// First comes one IncrementalAlterConfigs with all `changes`; then Metadata and, to each broker, DescribeConfigs,
    /// over and over. Dropped before the first went out, the group is as it was; after it, the changes are made, all or
    /// none, and only the wait is over: some brokers may show the former values yet. The same call again waits for
    /// them.
    ///
    /// # Errors
    /// The broker's refusal; a timeout where some broker does not show the change in time.
    pub async fn alter_share_group_configs(&self, group: &str, changes: &[(&str, &str)]) -> Result<()> {
        let changes: Vec<(&str, Option<&str>)> = changes.iter().map(|(n, v)| (*n, Some(*v))).collect();
        self.alter_group_and_wait(group, &changes).await
    }

    /// Sets (`Some`) and takes back (`None`) configs of a group, and waits until every broker shows it.
    pub(super) async fn alter_group_and_wait(&self, group: &str, changes: &[(&str, Option<&str>)]) -> Result<()> {
        let deadline = self.deadline();
        let resource = ConfigResource::Group(group.to_owned());
        self.incremental_alter_configs(&resource, changes).await?;
        let (mut attempt, mut known) = (0, None);
        loop {
            let behind = match (self.cluster().refresh_topics(&[], deadline).await, known) {
                (Err(error), Some(node)) if error.is_timeout() => Some(node),
                (refreshed, _) => {
                    refreshed?;
                    self.first_behind(&resource, changes, deadline).await
                }
            };
            let Some(node) = behind else { return Ok(()) };
            // At the deadline a broker may seem behind that only could not answer any more.
            let node = known.filter(|_| Instant::now() >= deadline).unwrap_or(node);
            known = Some(node);
            attempt += 1;
            if !self.cluster().pause_before_retry(attempt, deadline).await {
                let text =
                    format!("altering configs of {resource}: accepted, but broker {node} does not show them yet");
                return Err(Error::new(ErrorKind::Timeout, text));
            }
        }
    }

    async fn first_behind(
        &self,
        resource: &ConfigResource,
        want: &[(&str, Option<&str>)],
        deadline: Instant,
    ) -> Option<i32> {
        let names: Vec<&str> = want.iter().map(|(name, _)| *name).collect();
        let request = describe_request(resource, &names);
        let shows = |have: &BTreeMap<String, ConfigEntry>, name: &str, value: Option<&str>| match value {
            Some(value) => {
                have.get(name).and_then(|e| e.value.as_deref()).is_some_and(|v| v.eq_ignore_ascii_case(value))
            }
            None => have.get(name).is_none_or(|entry| entry.is_default),
        };
        for node in self.cluster().node_ids() {
            let limit = self.cluster().request_deadline(deadline);
            let answer = self.cluster().call_node(node, Purpose::Coordination, &request, limit).await;
            let shown = answer
                .and_then(|r| entries(resource, &r))
                .is_ok_and(|have| want.iter().all(|(name, value)| shows(&have, name, *value)));
            if !shown {
                return Some(node);
            }
        }
        None
    }
}

fn describe_request(resource: &ConfigResource, names: &[&str]) -> DescribeConfigsRequest {
    let (resource_type, resource_name) = resource.to_wire();
    let keys = (!names.is_empty()).then(|| names.iter().map(|n| Str::from(*n)).collect());
    let row = DescribeConfigsResource {
        resource_type,
        resource_name,
        configuration_keys: keys,
        ..DescribeConfigsResource::default()
    };
    DescribeConfigsRequest { resources: vec![row], ..DescribeConfigsRequest::default() }
}

fn entries(resource: &ConfigResource, response: &DescribeConfigsResponse) -> Result<BTreeMap<String, ConfigEntry>> {
    let what = format!("describing configs of {resource}");
    let row = response.results.first().ok_or_else(|| missing(&what))?;
    check(row.error_code, what, row.error_message.as_ref())?;
    let entry = |c: &kafka_share_messages::describe_configs_response::DescribeConfigsResourceResult| {
        let entry = ConfigEntry {
            value: c.value.as_ref().map(ToString::to_string),
            is_default: !OWN_SOURCES.contains(&c.config_source),
            read_only: c.read_only,
        };
        (c.name.to_string(), entry)
    };
    Ok(row.configs.iter().map(entry).collect())
}
