//! Configs of groups and brokers.

use super::{Lab, SOON};
use crate::expect::{Check, Stop, fail};
use kafka_share::net::Purpose;
use kafka_share_messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use kafka_share_messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use kafka_share_messages::{DescribeConfigsResponse, ErrorCode};
use kafka_share_wire::Str;
use std::time::{Duration, Instant};

const BROKER: i8 = 4;
const GROUP: i8 = 32;

impl Lab {
    /// Sets configs of a group and waits until brokers tell them. What the broker refuses is not supported.
    pub(crate) async fn set_group_configs(&self, group: &Str, configs: &[(&str, &str)]) -> Check {
        let change = |(name, value): &(&str, &str)| AlterableConfig {
            name: Str::from(*name),
            config_operation: 0,
            value: Some(Str::from(*value)),
            ..Default::default()
        };
        let code = self.alter_group(group, configs.iter().map(change).collect()).await?;
        if let Some(text) = code {
            let wanted: Vec<String> = configs.iter().map(|(n, v)| format!("{n}={v}")).collect();
            return Err(Stop::NotSupported(format!("the broker refuses {} for a group: {text}", wanted.join(", "))));
        }
        self.made(|made| made.settings.extend(configs.iter().map(|(name, _)| (group.clone(), Str::from(*name)))));
        let until = Instant::now() + SOON;
        for (name, value) in configs {
            while self.group_config(group, name).await?.as_deref() != Some(value) {
                if Instant::now() > until {
                    return fail(format!("{name} of the group was set to {value} and never became visible"));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    /// Sets a config of a group, or deletes it; answers the error, if the broker refuses.
    pub(crate) async fn try_group_config(
        &self,
        group: &Str,
        name: &str,
        value: Option<&str>,
        validate_only: bool,
    ) -> Check<Option<String>> {
        let change = AlterableConfig {
            name: Str::from(name),
            config_operation: i8::from(value.is_none()),
            value: value.map(Str::from),
            ..Default::default()
        };
        let refused = self.alter(group, vec![change], validate_only).await?;
        if refused.is_none() && value.is_some() && !validate_only {
            self.made(|made| made.settings.push((group.clone(), Str::from(name))));
        }
        Ok(refused)
    }

    async fn alter_group(&self, group: &Str, configs: Vec<AlterableConfig>) -> Check<Option<String>> {
        self.alter(group, configs, false).await
    }

    async fn alter(&self, group: &Str, configs: Vec<AlterableConfig>, validate_only: bool) -> Check<Option<String>> {
        let row =
            AlterConfigsResource { resource_type: GROUP, resource_name: group.clone(), configs, ..Default::default() };
        let request = IncrementalAlterConfigsRequest { resources: vec![row], validate_only, ..Default::default() };
        self.note(format!("-> any broker: {request:?}"));
        let response = self.cluster().call_any(&request, self.deadline()).await?;
        self.note(format!("<- {response:?}"));
        let refused = response.responses.iter().find(|r| r.error_code.is_err());
        Ok(refused.map(|r| r.error_message.as_ref().map_or_else(|| r.error_code.to_string(), ToString::to_string)))
    }

    /// Takes the configs of a group back, so that nothing of it stays.
    pub(super) async fn clear_group_configs(&self, group: &Str) {
        let names: Vec<Str> =
            self.made(|made| made.settings.iter().filter(|(g, _)| g == group).map(|(_, name)| name.clone()).collect());
        let change = |name| AlterableConfig { name, config_operation: 1, ..Default::default() };
        if !names.is_empty() {
            let _ = self.alter_group(group, names.into_iter().map(change).collect()).await;
        }
    }

    /// A config of a group, if the broker knows one of that name.
    pub(crate) async fn group_config(&self, group: &Str, name: &str) -> Check<Option<String>> {
        let request = describe(GROUP, group.clone(), name);
        let response = self.cluster().call_any(&request, self.deadline()).await?;
        Ok(value(&response))
    }

    /// A config of a broker, where it has one of that name.
    pub(crate) async fn broker_config(&self, node: i32, name: &str) -> Check<Option<String>> {
        let request = describe(BROKER, Str::from(node.to_string()), name);
        let response = self.call(self.cluster(), node, Purpose::Coordination, &request, None).await?;
        Ok(value(&response))
    }
}

fn describe(resource_type: i8, resource_name: Str, name: &str) -> DescribeConfigsRequest {
    let row = DescribeConfigsResource {
        resource_type,
        resource_name,
        configuration_keys: Some(vec![Str::from(name)]),
        ..Default::default()
    };
    DescribeConfigsRequest { resources: vec![row], ..Default::default() }
}

fn value(response: &DescribeConfigsResponse) -> Option<String> {
    let row = response.results.first().filter(|r| r.error_code == ErrorCode::NONE)?;
    row.configs.first()?.value.as_ref().map(ToString::to_string)
}
