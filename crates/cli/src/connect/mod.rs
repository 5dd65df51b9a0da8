//! `kshare connect`: runs sinks from Kafka Connect's kind of files, and checks such files.

mod http;
mod mask;
mod prometheus;
mod rest;
mod run;
mod validate;
mod workers;

use crate::exit::Failure;
use crate::properties::read_properties;
use clap::{Args, Subcommand};
use kafka_share_connect::Properties;
use std::path::Path;

/// Options of `kshare connect`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = AFTER_HELP)]
pub(crate) struct ConnectArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    run: Option<run::RunArgs>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Checks the files of a worker and its connectors, without a cluster: all that is wrong at once.
    Validate(validate::ValidateArgs),
}

const AFTER_HELP: &str = "Example:
  kshare connect worker.properties sink.json
  kshare connect validate worker.properties sink.json

worker.properties:
  bootstrap.servers=127.0.0.1:9092
  consumer.group.protocol=share
  value.converter=string
  listeners=http://127.0.0.1:8083

sink.json:
  {\"name\": \"orders\", \"config\": {\"connector.class\": \"file\", \"topics\": \"orders\", \"file\": \"orders.jsonl\", \"tasks.max\": 4}}

Sinks: file (file=PATH, JSON lines; file.rotate.bytes=N), kafka (target.topic=NAME, in which ${topic} is the topic of the record),
console (print.key=true, ..), blackhole, and postgres, with the settings of JDBC sinks (value.converter=json):
  {\"name\": \"shop\", \"config\": {\"connector.class\": \"postgres\", \"topics\": \"orders\", \"connection.url\": \"postgres://shop@db/shop\",
   \"connection.password\": \"..\", \"insert.mode\": \"upsert\", \"pk.mode\": \"record_value\", \"pk.fields\": \"id\"}}

With share.delivery.semantics=exactly-once, the kafka sink's output and the acknowledgements commit together. On released Kafka
that needs the ledger: `kshare ledger create`, or ledger.auto.create=true. The postgres sink keeps what it has stored in the
database, in the same transaction as the rows, and needs no ledger.

With listeners, Connect's REST interface is there: GET /connectors, /connectors/NAME, its /config, /status, /tasks, /topics,
/tasks/N/status; POST its /restart, /tasks/N/restart; PUT its /pause, /resume, /stop; PUT /connector-plugins/CLASS/config/validate;
and GET /metrics for Prometheus. Then tasks that have failed do not end the command: they may be restarted.

A task that fails stays FAILED; with task.restart.max=N it is started again up to N times in a row, after task.restart.backoff.ms,
but not where a record would be delivered for the last time (share.max.delivery.count, 5 by default), or another process has taken the
task over.";

pub(crate) async fn run(args: ConnectArgs) -> Result<(), Failure> {
    match (args.what, args.run) {
        (Some(What::Validate(args)), _) => validate::run(&args),
        (None, Some(args)) => run::run(args).await,
        (None, None) => Err(Failure::usage("WORKER.PROPERTIES and SINK.JSON are missing; see kshare connect --help")),
    }
}

fn worker_properties(path: &Path) -> Result<Properties, Failure> {
    Ok(read_properties(path)?.into_iter().collect())
}

fn text_of(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::usage(format_args!("{}: {e}", path.display())))
}
