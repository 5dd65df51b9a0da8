//! `kshare ledger compact`.

use super::Common;
use crate::exit::Failure;
use crate::{progress, text};
use clap::Args;
use serde_json::json;
use std::time::Duration;

/// Options of `kshare ledger compact`.
#[derive(Debug, Args)]
#[command(
    after_help = "Members do this for each other as they go. It helps where none runs, or where a transaction was left open. A member
that is alive and has a transaction open for longer than --older-than loses it; its records come again. Transactions that
only their preparer may end (KIP-939) are left alone. The broker then removes what was tombstoned, in its own time.

Examples:
  kshare ledger compact --bootstrap-server HOST:9092
  kshare ledger compact --older-than 10m --json --bootstrap-server HOST:9092"
)]
pub(super) struct CompactArgs {
    #[command(flatten)]
    common: Common,
    /// Age from which an open transaction counts as left by the dead
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = text::duration)]
    older_than: Duration,
}

pub(super) async fn run(args: CompactArgs) -> Result<(), Failure> {
    let (admin, topic) = args.common.open().await?;
    let done = progress::during("settling the ledger", admin.settle_ledger(&topic, args.older_than)).await?;
    if args.common.json {
        text::print_json(&json!({
            "topic": topic,
            "fenced": done.fenced,
            "not_fenced": done.not_fenced,
            "refusal": done.refusal.map(|code| code.to_string()),
            "tombstoned": done.tombstoned,
            "left": done.left,
        }))?;
    } else {
        let rows = [
            text::row([&"FENCED", &"NOT-FENCED", &"TOMBSTONED", &"LEFT"]),
            text::row([&done.fenced, &done.not_fenced, &done.tombstoned, &done.left]),
        ];
        text::table(&mut std::io::stdout(), &rows)?;
    }
    let left = text::count(done.not_fenced, "transaction");
    match (done.not_fenced, done.refusal) {
        (0, _) => Ok(()),
        (_, None) => {
            let text = format_args!("{left} could not be ended: they were prepared by somebody who must end them");
            Err(Failure::new(text))
        }
        (_, Some(code)) => Err(Failure::new(format_args!(
            "{left} could not be ended: the coordinator answers {code} (this client needs WRITE on their transactional ids)"
        ))),
    }
}
