//! Members of a share group on a real cluster of three nodes that go down and come back, with leaders that move.
//!
//! `cargo run --release -p kafka-share-tests --example cluster_chaos -- [--records 1000000] [--members 4]
//! [--partitions 12] [--seconds 180] [--rounds 4] [--down 6] [--seed 1] [--version 4.4.0]`

use kafka_share_tests::cluster_run::{self, Plan};
use std::process::ExitCode;
use std::time::Duration;

fn plan() -> Result<Plan, String> {
    let mut plan = Plan {
        version: "4.4.0".into(),
        records: 1_000_000,
        members: 4,
        partitions: 12,
        length: Duration::from_secs(180),
        rounds: 4,
        down: Duration::from_secs(6),
        seed: 1,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        if word == "--version" {
            plan.version = value;
            continue;
        }
        let value: u32 = value.parse().map_err(|_| format!("{word} needs a number, not {value:?}"))?;
        match word.as_str() {
            "--records" => plan.records = value.into(),
            "--members" => plan.members = value as usize,
            "--partitions" => plan.partitions = i32::try_from(value).map_err(|e| e.to_string())?,
            "--seconds" => plan.length = Duration::from_secs(value.max(1).into()),
            "--rounds" => plan.rounds = value,
            "--down" => plan.down = Duration::from_secs(value.into()),
            "--seed" => plan.seed = value.into(),
            _ => return Err(format!("{word} is not an option; see the head of this example's source")),
        }
    }
    Ok(plan)
}

fn main() -> ExitCode {
    let plan = match plan() {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let Some(report) = cluster_run::run("cluster_chaos", &plan) else { return ExitCode::FAILURE };
    println!("{report}");
    if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
