//! `kshare ledger raise`, and what `kshare groups` does before records come again.

use super::{Common, topic_of};
use crate::cluster_args::ClusterArgs;
use crate::exit::{Failure, note};
use crate::{progress, text};
use clap::Args;
use kafka_share::ledger::{LedgerDescription, LedgerIntent};
use kafka_share::{Admin, ErrorCode, Uuid};
use serde_json::json;

/// Options of `kshare ledger raise`.
#[derive(Debug, Args)]
#[command(
    after_help = "What the ledger knows of a group's records counts until it is raised: records that come again, as offsets were reset or
the group was deleted by another tool, would be acknowledged without output. `kshare groups reset`, `delete` and
`offsets --delete` do it by themselves. No member of the group may be at work, and no transaction of it open.

Records that are done and that the broker was not told of yet come twice after it. It is refused where there are such, unless
--records-come-again says that they are meant to.

Examples:
  kshare ledger raise billing --bootstrap-server HOST:9092
  kshare ledger raise billing --records-come-again --bootstrap-server HOST:9092"
)]
pub(super) struct RaiseArgs {
    /// Share group
    group: String,
    /// Though records are done that the broker was not told of: they come again, and are done again
    #[arg(long)]
    records_come_again: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: RaiseArgs) -> Result<(), Failure> {
    let (admin, topic) = args.common.open().await?;
    if !args.records_come_again {
        refuse_unconfirmed(&admin, &topic, &args.group).await?;
    }
    let raised = admin.raise_ledger_generation(&topic, &args.group);
    let generation = progress::during("raising the generation", raised).await?;
    if args.common.json {
        return text::print_json(&json!({ "topic": topic, "group": args.group, "generation": generation }));
    }
    let rows = [text::row([&"GROUP", &"GENERATION"]), text::row([&args.group, &generation])];
    text::table(&mut std::io::stdout(), &rows)
}

/// Intents of a group that count in its generation.
fn counting<'a>(found: &'a LedgerDescription, group: &'a str) -> impl Iterator<Item = &'a LedgerIntent> {
    let intents = found.partitions.iter().flat_map(|p| &p.intents);
    intents.filter(move |i| !i.outdated && i.groups.contains_key(group))
}

async fn refuse_unconfirmed(admin: &Admin, topic: &str, group: &str) -> Result<(), Failure> {
    let found = progress::during("reading the ledger", admin.describe_ledger(topic)).await?;
    let ended = counting(&found, group).filter(|i| !i.open);
    let count = match ended.map(|i| i.unconfirmed_of(group, &[])).sum::<Option<u64>>() {
        Some(0) => return Ok(()),
        Some(count) => count.to_string(),
        None => "an unknown number of".to_owned(),
    };
    Err(Failure::new(format_args!(
        "{count} records of share group {group:?} are done, and the broker was not told: after this they would come twice. Run a \
         member of the group for a moment first, or say --records-come-again"
    )))
}

/// What is about to come again: a group's records of some topics, or of all.
pub(crate) struct ComesAgain<'a> {
    pub(crate) group: &'a str,
    pub(crate) topics: Option<&'a [&'a str]>,
}

/// That the ledger has forgotten a group, for what follows and may fail.
pub(crate) struct Forgotten(Option<String>);

impl Forgotten {
    /// Says what it means that the step after it failed.
    pub(crate) fn explain(&self, error: kafka_share::Error) -> Failure {
        match &self.0 {
            Some(what) => Failure::from(error).context(what),
            None => error.into(),
        }
    }
}

/// Has the ledger, where there is one, forget a group whose records are about to come again. Whatever can be refused must have
/// been looked at before. Where only some topics come again, what is done and not confirmed of the others would be forgotten
/// with them.
pub(crate) async fn raise_before_records_come_again(
    admin: &Admin,
    cluster: &ClusterArgs,
    coming: ComesAgain<'_>,
) -> Result<Forgotten, Failure> {
    let backend = cluster.property_value("share.ack.transaction.backend")?;
    if backend.is_some_and(|backend| matches!(backend.as_str(), "none" | "native")) {
        return Ok(Forgotten(None));
    }
    let (topic, group) = (topic_of(cluster)?, coming.group);
    let look = progress::during("reading the ledger", admin.describe_ledger(&topic)).await;
    let found = match look {
        Err(error) if error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
            note(format_args!(
                "there is no ledger {topic:?}. If members of share group {group:?} use one of another name, name it with \
                 --property share.ack.ledger.topic=NAME, or records that come again are acknowledged without output"
            ));
            return Ok(Forgotten(None));
        }
        Err(error) => {
            let what = "records would come again, and the ledger must forget them first (with --property \
                        share.ack.transaction.backend=none it is left alone)";
            return Err(Failure::from(error).context(what));
        }
        Ok(found) => found,
    };
    let counting: Vec<_> = counting(&found, group).collect();
    if counting.iter().any(|i| i.open) {
        return Err(Failure::new(format_args!(
            "share group {group:?} has a transaction open in ledger {topic:?}: wait for its end, or end it with `kshare \
             ledger compact --older-than 1s`"
        )));
    }
    if counting.is_empty() {
        return Ok(Forgotten(None));
    }
    if let Some(topics) = coming.topics {
        let ids = topic_ids(admin, topics).await?;
        if counting.iter().any(|i| i.unconfirmed_of(group, &ids) != Some(0)) {
            return Err(Failure::new(format_args!(
                "records of other topics of share group {group:?} are done, and the broker was not told: they would come \
                 twice. Run a member of the group for a moment first, or do it for all topics"
            )));
        }
    }
    let generation = admin.raise_ledger_generation(&topic, group).await?;
    if found.partitions.iter().any(|p| p.left.contains(group)) {
        // It stays native in the new one.
        admin.leave_ledger(&topic, group).await?;
    }
    note(format_args!("ledger {topic:?} forgets share group {group:?} (generation {generation})"));
    Ok(Forgotten(Some(format!(
        "ledger {topic:?} has forgotten share group {group:?} (generation {generation}), but its records do not come again as \
         was asked: do it again before members start, or records that are done and that the broker was not told of come twice"
    ))))
}

async fn topic_ids(admin: &Admin, topics: &[&str]) -> Result<Vec<Uuid>, Failure> {
    let mut ids = Vec::new();
    for (_, found) in admin.describe_topics(topics).await? {
        match found {
            Ok(found) => ids.push(found.id),
            // Its records cannot come again.
            Err(error) if error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(ids)
}
