//! `kshare groups delete`.

use super::Common;
use crate::exit::{Failure, note};
use crate::{ledger, progress, text};
use clap::Args;
use serde_json::{Value, json};

/// Options of `kshare groups delete`.
#[derive(Debug, Args)]
#[command(after_help = "Groups with members are not deleted: stop the members first. Their offsets go with the groups.

Examples:
  kshare groups delete billing --bootstrap-server HOST:9092
  kshare groups delete billing shipping --bootstrap-server HOST:9092 --json

Exit code 1 if one of them was not deleted.")]
pub(super) struct DeleteArgs {
    /// Groups
    #[arg(required = true)]
    groups: Vec<String>,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: DeleteArgs) -> Result<(), Failure> {
    let admin = args.common.admin().await?;
    let names: Vec<&str> = args.groups.iter().map(String::as_str).collect();
    ledger::raise_before_records_come_again(&admin, &args.common.cluster, &names, true).await?;
    let outcomes = progress::during("deleting groups", admin.delete_groups(&names)).await;
    let failed: Vec<_> = outcomes.iter().filter_map(|(_, result)| result.as_ref().err()).collect();
    if args.common.json {
        let one = |(group, result): &(String, kafka_share::Result<()>)| {
            let error = result.as_ref().err().map(ToString::to_string);
            json!({ "group": group, "deleted": error.is_none(), "error": error })
        };
        text::print_json(&Value::from(outcomes.iter().map(one).collect::<Vec<_>>()))?;
    } else {
        let good = outcomes.iter().filter(|(_, result)| result.is_ok());
        let rows: Vec<_> = good.map(|(group, _)| vec![format!("deleted: {group}")]).collect();
        text::table(&mut std::io::stdout(), &rows)?;
    }
    match &failed[..] {
        [] => Ok(()),
        [error] => Err((*error).clone().into()),
        several => {
            several.iter().for_each(note);
            Err(Failure::new(format_args!("{} of {} groups were not deleted", several.len(), outcomes.len())))
        }
    }
}
