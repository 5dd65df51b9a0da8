//! `kshare groups delete`.

use super::{Common, exists_without_members};
use crate::exit::{Failure, note};
use crate::ledger::{self, ComesAgain};
use crate::{progress, text};
use clap::Args;
use kafka_share::Admin;
use serde_json::{Value, json};

/// Options of `kshare groups delete`.
#[derive(Debug, Args)]
#[command(after_help = "Groups with members are not deleted: stop the members first. Their offsets go with the groups.
Where members use a ledger of another name than share-ack-ledger, name it with --property share.ack.ledger.topic=NAME: it must
forget what would come again in a group of the same name.

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
    let mut outcomes = Vec::new();
    for group in &args.groups {
        outcomes.push((group.clone(), delete(&admin, &args, group).await));
    }
    if args.common.json {
        let one = |(group, result): &(String, Result<(), Failure>)| {
            let error = result.as_ref().err().map(ToString::to_string);
            json!({ "group": group, "deleted": error.is_none(), "error": error })
        };
        text::print_json(&Value::from(outcomes.iter().map(one).collect::<Vec<_>>()))?;
    } else {
        let good = outcomes.iter().filter(|(_, result)| result.is_ok());
        let rows: Vec<_> = good.map(|(group, _)| vec![format!("deleted: {group}")]).collect();
        text::table(&mut std::io::stdout(), &rows)?;
    }
    let count = outcomes.len();
    let mut failed: Vec<Failure> = outcomes.into_iter().filter_map(|(_, result)| result.err()).collect();
    match &failed[..] {
        [] => Ok(()),
        [_] => Err(failed.remove(0)),
        several => {
            several.iter().for_each(note);
            Err(Failure::new(format_args!("{} of {} groups were not deleted", several.len(), count)))
        }
    }
}

async fn delete(admin: &Admin, args: &DeleteArgs, group: &str) -> Result<(), Failure> {
    // A group that cannot be deleted is not forgotten either.
    if !exists_without_members(admin, group).await? {
        return delete_one(admin, group).await.map_err(Failure::from);
    }
    let coming = ComesAgain { group, topics: None };
    let forgotten = ledger::raise_before_records_come_again(admin, &args.common.cluster, coming).await?;
    delete_one(admin, group).await.map_err(|error| forgotten.explain(error))
}

async fn delete_one(admin: &Admin, group: &str) -> kafka_share::Result<()> {
    let outcomes = progress::during("deleting groups", admin.delete_groups(&[group])).await;
    outcomes.into_iter().try_for_each(|(_, outcome)| outcome)
}
