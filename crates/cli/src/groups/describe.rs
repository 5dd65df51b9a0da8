//! `kshare groups describe`.

use super::offsets::{offset_json, offset_rows};
use super::{Common, or_dash};
use crate::exit::Failure;
use crate::{progress, text};
use clap::Args;
use kafka_share::admin::{BrokerDescription, ShareGroupDescription, ShareGroupMember, SharePartitionOffset};
use serde_json::{Value, json};
use std::io::Write;

/// Options of `kshare groups describe`.
#[derive(Debug, Args)]
#[command(
    after_help = "Lag counts the records that the group is not done with; brokers before Kafka 4.3 do not tell it.

Examples:
  kshare groups describe billing --bootstrap-server HOST:9092
  kshare groups describe billing --bootstrap-server HOST:9092 --json | jq '.partitions[] | {topic, partition, lag}'"
)]
pub(super) struct DescribeArgs {
    /// Share group
    group: String,
    #[command(flatten)]
    common: Common,
}

struct Found {
    group: ShareGroupDescription,
    offsets: Vec<SharePartitionOffset>,
    coordinator: Option<BrokerDescription>,
}

pub(super) async fn run(args: DescribeArgs) -> Result<(), Failure> {
    let admin = args.common.admin().await?;
    let look = async {
        let group = admin.describe_share_group(&args.group).await?;
        let offsets = admin.describe_share_group_offsets(&args.group).await?;
        let brokers = admin.describe_cluster().await?.brokers;
        let coordinator = brokers.into_iter().find(|b| b.id == group.coordinator);
        Ok::<_, kafka_share::Error>(Found { group, offsets, coordinator })
    };
    let found = progress::during("describing the group", look).await?;
    if args.common.json { text::print_json(&as_json(&found)) } else { print(&found) }
}

fn as_json(found: &Found) -> Value {
    let member = |m: &ShareGroupMember| {
        let assigned = |(topic, partitions): &(String, Vec<i32>)| json!({ "topic": topic, "partitions": partitions });
        json!({
            "member": m.id,
            "client_id": m.client_id,
            "host": m.host,
            "rack": m.rack,
            "epoch": m.epoch,
            "subscription": m.subscription,
            "assignment": m.assignment.iter().map(assigned).collect::<Vec<_>>(),
        })
    };
    let group = &found.group;
    json!({
        "group": group.id,
        "state": group.state,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": group.assignor,
        "coordinator": {
            "id": group.coordinator,
            "host": found.coordinator.as_ref().map(|b| b.host.clone()),
            "port": found.coordinator.as_ref().map(|b| b.port),
        },
        "members": group.members.iter().map(member).collect::<Vec<_>>(),
        "partitions": found.offsets.iter().map(offset_json).collect::<Vec<_>>(),
    })
}

fn print(found: &Found) -> Result<(), Failure> {
    let group = &found.group;
    let mut out = std::io::stdout();
    let place = found.coordinator.as_ref().map(|b| format!(" ({}:{})", b.host, b.port)).unwrap_or_default();
    let coordinator = format!("{}{place}", group.coordinator);
    let heading =
        text::row([&"GROUP", &"STATE", &"EPOCH", &"ASSIGNMENT-EPOCH", &"ASSIGNOR", &"MEMBERS", &"COORDINATOR"]);
    let line = text::row([
        &group.id,
        &group.state,
        &group.epoch,
        &group.assignment_epoch,
        &group.assignor,
        &group.members.len(),
        &coordinator,
    ]);
    text::table(&mut out, &[heading, line])?;
    let part = |rows: &[Vec<String>]| {
        let mut out = std::io::stdout();
        writeln!(out).map_err(|e| Failure::output(&e))?;
        text::table(&mut out, rows)
    };
    if !found.offsets.is_empty() {
        part(&offset_rows(&found.offsets))?;
    }
    if group.members.is_empty() {
        return Ok(());
    }
    let mut rows = vec![text::row([&"MEMBER", &"CLIENT-ID", &"HOST", &"RACK", &"EPOCH", &"ASSIGNMENT"])];
    for m in &group.members {
        let assigned = m.assignment.iter().map(|(topic, partitions)| {
            let numbers: Vec<String> = partitions.iter().map(ToString::to_string).collect();
            format!("{topic}:{}", numbers.join(","))
        });
        let assigned = assigned.collect::<Vec<_>>().join(" ");
        rows.push(text::row([&m.id, &m.client_id, &m.host, &or_dash(m.rack.as_ref()), &m.epoch, &assigned]));
    }
    part(&rows)
}
