//! `kshare connections`: whether each broker can be reached from here, and how, for support.

use crate::cluster_args::ClusterArgs;
use crate::exit::Failure;
use crate::{progress, text};
use clap::Args;
use kafka_share::net::{Cluster, ConnectionInfo, ConnectionState, Purpose};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a broker is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Options of `kshare connections`.
#[derive(Debug, Args)]
#[command(
    after_help = "Connects to every broker that the cluster names, and tells of each connection: address, state, security protocol, who the
client says it is (never a password), bytes, requests that wait, and in JSON the APIs that the broker offers. Ends with 1 where a
broker cannot be reached.

Examples:
  kshare connections --bootstrap-server HOST:9092
  kshare connections --config client.properties --json"
)]
pub(crate) struct ConnectionsArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// JSON on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ConnectionsArgs) -> Result<(), Failure> {
    let cluster = args.cluster.connect().await?;
    let missing = progress::during("connecting to every broker", reach(&cluster)).await?;
    let all = cluster.connections();
    if args.json {
        text::print_json(&Value::from(all.iter().map(json).collect::<Vec<_>>()))?;
    } else {
        let head: [&dyn std::fmt::Display; 7] =
            [&"BROKER", &"ADDRESS", &"STATE", &"SECURITY", &"PRINCIPAL", &"SENT/RECEIVED", &"APIS"];
        let mut rows = vec![text::row(head)];
        rows.extend(all.iter().map(row));
        text::table(&mut std::io::stdout(), &rows)?;
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(missing.join("\n"))),
    }
}

/// Connects to all brokers at the same time; what went wrong with which.
async fn reach(cluster: &Arc<Cluster>) -> Result<Vec<String>, kafka_share::Error> {
    let deadline = Instant::now() + PATIENCE;
    let tasks: Vec<_> = cluster
        .node_ids()
        .into_iter()
        .map(|node| {
            let cluster = Arc::clone(cluster);
            tokio::spawn(async move {
                let ready = async { cluster.connection(node, Purpose::Coordination)?.ready(deadline).await };
                ready.await.err().map(|error| format!("broker {node}: {error}"))
            })
        })
        .collect();
    let mut missing = Vec::new();
    for task in tasks {
        missing.extend(task.await.ok().flatten());
    }
    Ok(missing)
}

fn state(info: &ConnectionInfo) -> String {
    match &info.state {
        ConnectionState::Closed(why) => format!("closed: {why}"),
        other => format!("{other:?}").to_ascii_lowercase(),
    }
}

fn row(info: &ConnectionInfo) -> Vec<String> {
    let node = info.node.map_or_else(|| "bootstrap".to_owned(), |node| node.to_string());
    let traffic = format!("{}/{}", info.bytes_sent, info.bytes_received);
    let principal = info.principal.as_deref().unwrap_or("-");
    let security = info.security_protocol.name();
    text::row([&node, &info.address, &state(info), &security, &principal, &traffic, &info.api_versions.len()])
}

fn json(info: &ConnectionInfo) -> Value {
    let apis = info.api_versions.iter().map(|(key, min, max)| json!({ "key": key, "min": min, "max": max }));
    json!({
        "node": info.node, "address": info.address, "purpose": info.purpose, "state": state(info),
        "security_protocol": info.security_protocol.name(), "principal": info.principal,
        "in_flight": info.in_flight, "bytes_sent": info.bytes_sent, "bytes_received": info.bytes_received,
        "throttled_ms": info.throttled_ms, "last_answer_us": info.last_answer_us,
        "api_versions": apis.collect::<Vec<_>>(),
    })
}
