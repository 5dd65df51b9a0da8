//! `kshare groups`: lists, describes, resets, deletes and configures share groups.

mod config;
mod delete;
mod describe;
mod list;
mod offsets;
mod reset;

use crate::cluster_args::ClusterArgs;
use crate::exit::Failure;
use crate::{progress, text};
use clap::{Args, Subcommand};
use kafka_share::{Admin, ErrorCode};

/// Options of `kshare groups`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kshare groups list --bootstrap-server HOST:9092
  kshare groups describe billing --bootstrap-server HOST:9092
  kshare groups offsets billing --bootstrap-server HOST:9092 --json
  kshare groups reset billing --to-earliest --topic orders --bootstrap-server HOST:9092
  kshare groups config billing --set share.record.lock.duration.ms=20000 --bootstrap-server HOST:9092
  kshare groups delete billing --bootstrap-server HOST:9092")]
pub(crate) struct GroupsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists groups with type and state.
    List(list::ListArgs),
    /// Shows state, coordinator, members and assignment, start offsets and lag of a share group.
    Describe(describe::DescribeArgs),
    /// Shows start offsets and lag of a share group, or makes it forget topics.
    Offsets(offsets::OffsetsArgs),
    /// Moves start offsets of a share group without members.
    Reset(reset::ResetArgs),
    /// Deletes share groups without members.
    Delete(delete::DeleteArgs),
    /// Shows or changes settings of a share group.
    Config(config::ConfigArgs),
}

/// What all of them take.
#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

impl Common {
    async fn admin(&self) -> Result<Admin, Failure> {
        Ok(Admin::on(self.cluster.connect().await?))
    }
}

pub(crate) async fn run(args: GroupsArgs) -> Result<(), Failure> {
    match args.command {
        Command::List(args) => list::run(args).await,
        Command::Describe(args) => describe::run(args).await,
        Command::Offsets(args) => offsets::run(args).await,
        Command::Reset(args) => reset::run(args).await,
        Command::Delete(args) => delete::run(args).await,
        Command::Config(args) => config::run(args).await,
    }
}

/// A number, or `-` where there is none.
fn or_dash<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Whether there is such a share group; it must have no members.
async fn exists_without_members(admin: &Admin, group: &str) -> Result<bool, Failure> {
    match progress::during("describing the group", admin.describe_share_group(group)).await {
        Ok(found) if found.members.is_empty() => Ok(true),
        Ok(found) => {
            let members = text::count(found.members.len(), "member");
            let text = format_args!("share group {group:?} has {members}: stop them first (NON_EMPTY_GROUP)");
            Err(Failure::new(text))
        }
        // Of another type, or none: the broker says what cannot be done with it.
        Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
