//! `kafka-share-simulation`: long runs of the models. Exit codes: 0 all holds, 1 something is wrong or not all was seen,
//! 2 usage.

mod options;

use clap::Parser;
use kafka_share_simulation::explore::{Checked, Limits, Report, explore};
use options::{Backend, Command, Model};
use std::fmt::Debug;
use std::hash::Hash;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Parser)]
#[command(version, about = "Checks the models of kafka-share's acknowledgement backends.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let Command::Model(options) = Arguments::parse().command;
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(usage) => {
            eprintln!("{usage}");
            ExitCode::from(2)
        }
    }
}

/// Whether all is as it should be.
fn run(options: &Model) -> Result<bool, String> {
    if let Some(name) = &options.plant {
        return plant(options, name);
    }
    let mut good = true;
    if options.backend != Backend::Native {
        let config = options.ledger()?;
        println!("ledger: {config:?}");
        good &= say(&check(options, &config));
    }
    if options.backend != Backend::Ledger {
        let config = options.native()?;
        println!("native: {config:?}");
        good &= say(&check(options, &config));
    }
    Ok(good)
}

/// Runs a model with a broken rule: it must be found.
fn plant(options: &Model, name: &str) -> Result<bool, String> {
    let report = if let Some(planted) = options::ledger_planted(name) {
        check(options, &planted.config())
    } else if let Some(planted) = options::native_planted(name) {
        check(options, &planted.config())
    } else {
        return Err(format!("there is no planted fault {name}; there are: {}", options::planted_names().join(", ")));
    };
    println!("{report}");
    let found = report.broken.is_some() || report.stuck.is_some();
    println!("{}", if found { "found, as it must be" } else { "NOT FOUND" });
    Ok(found)
}

fn say(report: &Report) -> bool {
    println!("{report}");
    let verdict = match report {
        _ if report.holds() => "all holds",
        Report { complete: false, broken: None, .. } => "nothing found, but not all was seen: raise --states",
        _ => "SOMETHING IS WRONG",
    };
    println!("{verdict}");
    report.holds()
}

fn check<M>(options: &Model, model: &M) -> Report
where
    M: Checked,
    M::State: Hash + Eq + Clone + Debug,
    M::Action: Debug + Clone,
{
    let started = Instant::now();
    let mut last = started;
    explore(model, Limits { states: options.states }, |seen, waiting| {
        if last.elapsed() >= Duration::from_secs(5) {
            last = Instant::now();
            eprintln!("{seen} states, {waiting} of this depth to go, {:.0} s", started.elapsed().as_secs_f64());
        }
    })
}
