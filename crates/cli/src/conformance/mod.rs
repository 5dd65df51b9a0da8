//! `kshare conformance`: judges a broker, case by case, or a client, scenario by scenario.

mod client;

use crate::exit::Failure;
use clap::{Args, ValueEnum};
use kafka_share::ClientConfig;
use kafka_share_broker::EmbeddedBroker;
use kafka_share_conformance::{Case, CaseResult, Report, Runner, Verdict, cases};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Runs that take longer than this show how far they are.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// Options of `kshare conformance`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each case speaks to the broker on the wire, with topics and groups of its own that it removes in the end.

Examples:
  kshare conformance                                    the embedded broker
  kshare conformance --bootstrap-server HOST:9092 --report junit --out report.xml
  kshare conformance --bootstrap-server HOST:9092 --report html --out report.html
  kshare conformance --bootstrap-server HOST:9092 --id SHARE-SESSION
  kshare conformance --client 'kshare consume {topic} --group {group} --bootstrap-server {bootstrap}'

--client judges a share consumer instead: it is started anew for each of a dozen scenarios, on an embedded broker, and what it
sends is checked. The program is to consume the topic in the group and to accept every record, until SIGTERM or the end of its
standard input; then it closes its consumer and ends with exit code 0, within 15 s.

Exit code 1 if a case or scenario failed."
)]
pub(crate) struct ConformanceArgs {
    /// Brokers to judge, as host:port[,host:port..]; an embedded broker by default
    #[arg(long, value_name = "HOST:PORT")]
    bootstrap_server: Option<String>,
    /// Only cases of this rule, of this family of rules (SHARE-SESSION), or of this name; can be repeated
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// Only cases of this KIP; can be repeated
    #[arg(long, value_name = "N")]
    kip: Vec<u16>,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = Form::Text)]
    report: Form,
    /// File for the report instead of the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Cases that run side by side
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    side_by_side: u16,
    /// Judge this client instead of a broker; the words {bootstrap}, {topic} and {group} are replaced
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["bootstrap_server", "id", "kip", "list"])]
    client: Option<String>,
    /// List the cases and run none
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// For programs
    Json,
    /// For build servers
    Junit,
    /// A page for a browser
    Html,
}

pub(crate) async fn run(args: ConformanceArgs) -> Result<(), Failure> {
    if let Some(command) = &args.client {
        return client::run(command, &args).await;
    }
    let chosen = choose(&args)?;
    if args.list {
        for case in &chosen {
            println!("{:<44} KIP-{:<5} {}", case.name, case.kip, case.ids.join(" "));
        }
        return Ok(());
    }
    let report = match &args.bootstrap_server {
        Some(servers) => judge(servers, servers, &args, &chosen).await?,
        None => {
            let broker = EmbeddedBroker::builder()
                .configure(|config| {
                    config.groups.record_lock_ms.0 = 1000;
                    config.groups.session_timeout_ms.0 = 1000;
                    config.groups.heartbeat_ms.0 = 100;
                })
                .start()
                .await
                .map_err(Failure::new)?;
            let report = judge(&broker.bootstrap_servers(), "embedded broker", &args, &chosen).await?;
            broker.shutdown().await;
            report
        }
    };
    write(&args, &report)?;
    match report.failed() {
        0 => Ok(()),
        failed => Err(Failure::new(format_args!("{failed} of {} cases failed", report.results.len()))),
    }
}

fn choose(args: &ConformanceArgs) -> Result<Vec<Case>, Failure> {
    if let Some(unknown) = args.id.iter().find(|id| cases::matching(id).is_empty()) {
        return Err(Failure::usage(format_args!("--id {unknown}: no case has that id or name; --list shows them")));
    }
    let by_id =
        |c: &Case| args.id.is_empty() || args.id.iter().any(|id| cases::matching(id).iter().any(|m| m.name == c.name));
    let by_kip = |c: &Case| args.kip.is_empty() || args.kip.contains(&c.kip);
    let chosen: Vec<Case> = cases::all().into_iter().filter(|c| by_id(c) && by_kip(c)).collect();
    if chosen.is_empty() {
        return Err(Failure::usage("no case is left after --id and --kip; --list shows them"));
    }
    Ok(chosen)
}

async fn judge(servers: &str, name: &str, args: &ConformanceArgs, chosen: &[Case]) -> Result<Report, Failure> {
    let config = ClientConfig::new(servers).client_id("kshare");
    let runner = Runner::new(config).cluster_name(name).side_by_side(usize::from(args.side_by_side));
    let (start, mut done, mut failed) = (Instant::now(), 0, 0);
    let progress = |result: &CaseResult| {
        done += 1;
        failed += usize::from(matches!(result.verdict, Verdict::Failed(_)));
        if start.elapsed() > SHOW_AFTER {
            eprintln!("{done} of {} cases, {failed} failed: {}", chosen.len(), result.case.name);
        }
    };
    Ok(runner.run(chosen, progress).await?)
}

fn write(args: &ConformanceArgs, report: &Report) -> Result<(), Failure> {
    put(
        args,
        match args.report {
            Form::Text => report.text(),
            Form::Json => report.json(),
            Form::Junit => report.junit(),
            Form::Html => report.html(),
        },
    )
}

fn put(args: &ConformanceArgs, text: String) -> Result<(), Failure> {
    match &args.out {
        Some(path) => std::fs::write(path, text).map_err(|e| Failure::usage(format_args!("{}: {e}", path.display()))),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}
