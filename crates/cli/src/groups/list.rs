//! `kshare groups list`.

use super::Common;
use crate::exit::Failure;
use crate::{progress, text};
use clap::{Args, ValueEnum};
use kafka_share::admin::GroupFilter;
use serde_json::{Value, json};

/// Options of `kshare groups list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kshare groups list --bootstrap-server HOST:9092
  kshare groups list --bootstrap-server HOST:9092 --type all --json
  kshare groups list --bootstrap-server HOST:9092 --state Empty")]
pub(super) struct ListArgs {
    #[command(flatten)]
    common: Common,
    /// Only groups of this type; can be repeated
    #[arg(long = "type", value_name = "TYPE", value_enum, default_values_t = [Type::Share])]
    types: Vec<Type>,
    /// Only groups in this state, such as Empty or Stable; can be repeated
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Type {
    /// Share groups
    Share,
    /// Consumer groups
    Consumer,
    /// Groups of the classic protocol
    Classic,
    /// Groups of Kafka Streams
    Streams,
    /// Groups of every type
    All,
}

pub(super) async fn run(args: ListArgs) -> Result<(), Failure> {
    let admin = args.common.admin().await?;
    let mut filter = args.states.iter().fold(GroupFilter::default(), |filter, state| filter.state(state));
    if !args.types.contains(&Type::All) {
        let name = |t: &Type| t.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default();
        filter = args.types.iter().fold(filter, |filter, t| filter.group_type(&name(t)));
    }
    let groups = progress::during("listing groups", admin.list_groups_with(&filter)).await?;
    if args.common.json {
        let one =
            |g: &kafka_share::admin::GroupListing| json!({ "group": g.id, "type": g.group_type, "state": g.state });
        return text::print_json(&Value::from(groups.iter().map(one).collect::<Vec<_>>()));
    }
    let mut rows = vec![text::row([&"GROUP", &"TYPE", &"STATE"])];
    rows.extend(groups.iter().map(|g| text::row([&g.id, &g.group_type, &g.state])));
    text::table(&mut std::io::stdout(), &rows)
}
