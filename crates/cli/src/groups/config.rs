//! `kshare groups config`.

use super::{Common, or_dash};
use crate::cluster_args::pair;
use crate::exit::Failure;
use crate::{progress, text};
use clap::Args;
use kafka_share::admin::{GroupSetting, ShareGroupSettings};
use serde_json::{Map, Value, json};

/// Options of `kshare groups config`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --set and --unset it shows all settings. Changes are made all or none, and waited for until every broker
shows them. Brokers bound most numbers (group.share.min.* and group.share.max.*), and older ones do not know all names.

Examples:
  kshare groups config billing --bootstrap-server HOST:9092
  kshare groups config billing --bootstrap-server HOST:9092 --set share.auto.offset.reset=earliest
  kshare groups config billing --bootstrap-server HOST:9092 --set share.record.lock.duration.ms=20000 \\
      --unset share.session.timeout.ms"
)]
pub(super) struct ConfigArgs {
    /// Share group; it need not exist yet
    group: String,
    #[command(flatten)]
    common: Common,
    /// Set a setting; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Take a setting back to the broker's default; can be repeated
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
}

pub(super) async fn run(args: ConfigArgs) -> Result<(), Failure> {
    let mut settings = ShareGroupSettings::new();
    for (name, value) in &args.set {
        settings = settings.set(name, value);
    }
    for name in &args.unset {
        if args.set.iter().any(|(set, _)| set == name) {
            return Err(Failure::usage(format_args!("{name} stands in --set and in --unset")));
        }
        settings = settings.unset(name);
    }
    settings.check().map_err(Failure::usage)?;
    let admin = args.common.admin().await?;
    progress::during("changing settings", admin.apply_share_group_settings(&args.group, &settings)).await?;
    let all = progress::during("reading settings", admin.share_group_settings(&args.group)).await?;
    if args.common.json {
        let one = |(name, entry): (&String, &kafka_share::admin::ConfigEntry)| {
            (name.clone(), json!({ "value": entry.value, "default": entry.is_default }))
        };
        return text::print_json(&Value::from(all.iter().map(one).collect::<Map<_, _>>()));
    }
    let mut rows = vec![text::row([&"NAME", &"VALUE", &"SOURCE", &"VALUES"])];
    for (name, entry) in &all {
        let source = if entry.is_default { "default" } else { "group" };
        let kind = name.parse::<GroupSetting>().ok().map(GroupSetting::kind);
        rows.push(text::row([name, &or_dash(entry.value.as_ref()), &source, &or_dash(kind)]));
    }
    text::table(&mut std::io::stdout(), &rows)
}
