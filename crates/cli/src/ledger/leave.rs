//! `kshare ledger leave`.

use super::Common;
use crate::exit::{Failure, note};
use crate::{progress, text};
use clap::Args;
use kafka_share::ledger::{LedgerIntent, LedgerRemainder};
use serde_json::json;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(500);

/// Options of `kshare ledger leave`.
#[derive(Debug, Args)]
#[command(
    after_help = "For clusters that take acknowledgements into transactions (KIP-1289), once every member of the group was
restarted with share.ack.transaction.backend=both, or with auto since the cluster takes them. Members that acknowledge by
the ledger alone commit nothing from then on; the others go on natively as soon as nothing of such members is left: no open
transaction (`kshare ledger compact` ends those of the dead), and no record that the broker was not told of (members do that
as they go).

Exit code 0 only if nothing is left: then members with share.ack.transaction.backend=native may be started, and not before.
With `kshare ledger raise`, without members, the group is on the ledger again.

Examples:
  kshare ledger leave billing --bootstrap-server HOST:9092
  kshare ledger leave billing --wait 5m --bootstrap-server HOST:9092"
)]
pub(super) struct LeaveArgs {
    /// Share group
    group: String,
    #[command(flatten)]
    common: Common,
    /// Waits so long for what is left; without it, tells what is there now
    #[arg(long, value_name = "TIME", value_parser = text::duration)]
    wait: Option<Duration>,
}

pub(super) async fn run(args: LeaveArgs) -> Result<(), Failure> {
    let (admin, topic) = args.common.open().await?;
    let until = Instant::now() + args.wait.unwrap_or_default();
    let left = loop {
        let left = progress::during("leaving the ledger", admin.leave_ledger(&topic, &args.group)).await?;
        if left.is_empty() || Instant::now() + PAUSE > until {
            break left;
        }
        tokio::time::sleep(PAUSE).await;
    };
    if args.common.json {
        let (open, unconfirmed) = (left.open.len(), left.unconfirmed.len());
        text::print_json(&json!({
            "topic": topic, "group": args.group, "open": open, "unconfirmed": unconfirmed, "safe": left.is_empty(),
        }))?;
    } else if left.is_empty() {
        let line = format!("share group {} has left ledger {topic}: its members may be native", args.group);
        text::table(&mut std::io::stdout(), &[vec![line]])?;
    }
    if left.is_empty() { Ok(()) } else { Err(tell(&args.group, &left)) }
}

fn tell(group: &str, left: &LedgerRemainder) -> Failure {
    let place = |i: &LedgerIntent| format!("the transaction of {:?} at ledger offset {}", i.transactional_id, i.offset);
    for intent in &left.open {
        note(format_args!(
            "{} has not ended: `kshare ledger compact` ends it, where its member is dead",
            place(intent)
        ));
    }
    for intent in &left.unconfirmed {
        let records = intent.unconfirmed.map_or_else(|| "records".to_owned(), |n| text::count(n as usize, "record"));
        note(format_args!(
            "{} has done {records} that the broker may not know of: members tell it as they go",
            place(intent)
        ));
    }
    let count = left.open.len() + left.unconfirmed.len();
    Failure::new(format_args!(
        "share group {group:?} is on its way, and {} left of members that use the ledger alone: start no native member yet, and \
         ask again",
        if count == 1 { "1 transaction is".to_owned() } else { format!("{count} transactions are") }
    ))
}
