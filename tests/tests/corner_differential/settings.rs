//! Settings of topics, groups and brokers.

use crate::player::Player;
use kafka_share_messages::describe_configs_request::DescribeConfigsResource;
use kafka_share_messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_share_messages::*;
use kafka_share_wire::Str;

fn described() -> Vec<Vec<DescribeConfigsResource>> {
    let resource = |resource_type, name: &str, keys: Option<&[&str]>| DescribeConfigsResource {
        resource_type,
        resource_name: Str::from(name),
        configuration_keys: keys.map(|keys| keys.iter().map(|key| Str::from(*key)).collect()),
        ..Default::default()
    };
    let some: &[&str] = &["retention.ms", "cleanup.policy", "no.such", "segment.ms"];
    vec![
        vec![resource(2, "st", Some(some))],
        vec![resource(2, "st", Some(&[]))],
        vec![resource(2, "st", Some(&["retention.ms"])), resource(2, "st", Some(&["segment.ms"]))],
        vec![resource(2, "no-such", Some(some))],
        vec![resource(2, "", Some(some))],
        vec![resource(2, "a b", Some(some))],
        vec![resource(32, "g", Some(&["share.auto.offset.reset", "share.record.lock.duration.ms"]))],
        vec![resource(32, "", Some(&[]))],
        vec![resource(4, "1", Some(&["no.such"]))],
        vec![resource(4, "9", Some(&["no.such"]))],
        vec![resource(4, "x", Some(&["no.such"]))],
        vec![resource(4, "", Some(&["no.such"]))],
        vec![resource(3, "x", None)],
        vec![resource(0, "x", None)],
        vec![resource(127, "x", None)],
        vec![],
    ]
}

pub(crate) fn describe(p: &mut Player) {
    p.topic("st", 1, &[]);
    for resources in described() {
        let what = format!(
            "{:?}",
            resources
                .iter()
                .map(|r| (r.resource_type, r.resource_name.as_str(), r.configuration_keys.as_ref().map(Vec::len)))
                .collect::<Vec<_>>()
        );
        for (include_synonyms, include_documentation) in [(false, false), (true, false)] {
            let request = DescribeConfigsRequest {
                resources: resources.clone(),
                include_synonyms,
                include_documentation,
                ..Default::default()
            };
            // The order of settings is a hash map's.
            for version in 1..=4 {
                let mut answer = p.call(&request, version);
                answer.results.iter_mut().for_each(|r| r.configs.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str())));
                let mut lines: Vec<String> = Vec::new();
                for result in &answer.results {
                    lines.push(format!(
                        "{:?} {:?} {} {:?}",
                        result.error_code,
                        result.error_message.is_some(),
                        result.resource_type,
                        result.resource_name
                    ));
                    // A real cluster has set it for all of its brokers.
                    for c in result.configs.iter().filter(|c| c.name.as_str() != "min.insync.replicas") {
                        let synonyms: Vec<_> =
                            c.synonyms.iter().map(|s| (s.name.as_str(), s.value.as_deref(), s.source)).collect();
                        lines.push(format!(
                            "{} {:?} ro {} src {} sens {} {synonyms:?} type {} doc {}",
                            c.name,
                            c.value,
                            c.read_only,
                            c.config_source,
                            c.is_sensitive,
                            c.config_type,
                            c.documentation.is_some()
                        ));
                    }
                }
                p.lines.push(format!("describe v{version} {what} {include_synonyms} -> {lines:?}"));
            }
        }
    }
}

pub(crate) fn alter(p: &mut Player) {
    p.topic("sa", 1, &[]);
    let change = |name: &str, config_operation, value: Option<&str>| AlterableConfig {
        name: Str::from(name),
        config_operation,
        value: value.map(Str::from),
        ..Default::default()
    };
    let alter = |resource_type, name: &str, configs: Vec<AlterableConfig>| AlterConfigsResource {
        resource_type,
        resource_name: Str::from(name),
        configs,
        ..Default::default()
    };
    let lists = [
        vec![alter(2, "sa", vec![change("retention.ms", 0, Some("5"))])],
        vec![
            alter(2, "sa", vec![change("retention.ms", 0, Some("5"))]),
            alter(2, "sa", vec![change("retention.ms", 0, Some("5"))]),
        ],
        vec![alter(2, "sa", vec![change("retention.ms", 0, Some("5")), change("retention.ms", 1, None)])],
        vec![alter(2, "sa", vec![change("retention.ms", 9, Some("5"))])],
        vec![alter(2, "sa", vec![change("retention.ms", -1, Some("5"))])],
        vec![alter(2, "sa", vec![change("retention.ms", 0, None)])],
        vec![alter(2, "sa", vec![change("retention.ms", 1, None)])],
        vec![alter(2, "sa", vec![change("segment.ms", 1, None)])],
        vec![alter(2, "sa", vec![change("no.such", 1, None)])],
        vec![alter(2, "sa", vec![change("no.such", 0, Some("1"))])],
        vec![alter(2, "sa", vec![change("", 0, Some("1"))])],
        vec![alter(2, "sa", vec![change("retention.ms", 2, Some("1"))])],
        vec![alter(2, "sa", vec![change("cleanup.policy", 2, Some("compact"))])],
        vec![alter(2, "sa", vec![change("cleanup.policy", 3, Some("delete"))])],
        vec![alter(2, "sa", vec![change("cleanup.policy", 3, Some("compact"))])],
        vec![alter(2, "sa", vec![change("cleanup.policy", 2, Some("x"))])],
        vec![alter(2, "sa", vec![])],
        vec![alter(2, "no-such", vec![change("retention.ms", 0, Some("5"))])],
        vec![alter(2, "", vec![change("retention.ms", 0, Some("5"))])],
        vec![alter(32, "g", vec![change("share.record.lock.duration.ms", 0, Some("1"))])],
        vec![alter(32, "g", vec![change("share.auto.offset.reset", 0, Some("x"))])],
        vec![alter(32, "", vec![change("share.auto.offset.reset", 0, Some("latest"))])],
        vec![alter(3, "x", vec![change("a", 0, Some("1"))])],
        vec![alter(0, "x", vec![change("a", 0, Some("1"))])],
        vec![],
    ];
    for resources in lists {
        let what = format!(
            "{:?}",
            resources
                .iter()
                .map(|r| (
                    r.resource_type,
                    r.resource_name.as_str(),
                    r.configs
                        .iter()
                        .map(|c| (c.name.as_str(), c.config_operation, c.value.as_deref()))
                        .collect::<Vec<_>>()
                ))
                .collect::<Vec<_>>()
        );
        let request = IncrementalAlterConfigsRequest { resources, validate_only: true, ..Default::default() };
        p.play_all(&what, &request, 0..=1);
    }
}

pub(crate) fn list(p: &mut Player) {
    for resource_types in [&[2][..], &[32], &[99], &[0], &[8, 4], &[16], &[2, 2]] {
        let request = ListConfigResourcesRequest { resource_types: resource_types.to_vec(), ..Default::default() };
        let answer = p.call(&request, 1);
        p.lines.push(format!("list {resource_types:?} -> {:?}", answer.error_code));
    }
    p.latest("cluster", &DescribeClusterRequest { endpoint_type: 3, ..Default::default() });
}
