//! Clients that run in turns, and what they took in the middle.

use super::CommonArgs;
use super::place::{Client, Place};
use super::process::Measured;
use super::report::Row;
use crate::exit::{Failure, note};

/// Has `run` measure each client once in each round. A round begins with the client after the one that the round before it
/// began with, so that none has the better place each time.
pub(super) async fn in_turns(
    args: &CommonArgs,
    place: &mut Place,
    clients: &[Client],
    mut run: impl AsyncFnMut(&mut Place, &Client, u32) -> Result<Row, Failure>,
) -> Result<Vec<Row>, Failure> {
    let mut found: Vec<Vec<Measured>> = clients.iter().map(|_| Vec::new()).collect();
    for round in 0..args.rounds {
        if args.rounds > 1 {
            note(format_args!("round {} of {}", round + 1, args.rounds));
        }
        for place_in_round in 0..clients.len() {
            let at = (place_in_round + round as usize) % clients.len();
            found[at].push(run(place, &clients[at], round).await?.measured);
        }
    }
    let rows = clients.iter().zip(found);
    Ok(rows.map(|((name, _), runs)| Row { name: name.clone(), measured: middle(&runs) }).collect())
}

/// The median of each figure; of an even number, the lower one.
fn middle(runs: &[Measured]) -> Measured {
    Measured {
        records: median(runs.iter().map(|run| run.records).collect()).unwrap_or_default(),
        seconds: median(runs.iter().map(|run| run.seconds).collect()).unwrap_or_default(),
        transactions: median(runs.iter().filter_map(|run| run.transactions).collect()),
        median_transaction_ms: median(runs.iter().filter_map(|run| run.median_transaction_ms).collect()),
        cpu_seconds: median(runs.iter().filter_map(|run| run.cpu_seconds).collect()),
        peak_bytes: median(runs.iter().filter_map(|run| run.peak_bytes).collect()),
    }
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> Option<T> {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_its_own_median() {
        let run = |seconds, cpu| Measured {
            records: 10,
            seconds,
            transactions: Some(5),
            median_transaction_ms: None,
            cpu_seconds: Some(cpu),
            peak_bytes: Some(1),
        };
        let found = middle(&[run(3.0, 0.1), run(1.0, 0.3), run(2.0, 0.2)]);
        assert_eq!((found.records, found.seconds, found.cpu_seconds), (10, 2.0, Some(0.2)));
        assert_eq!((found.transactions, found.median_transaction_ms), (Some(5), None));
        assert_eq!(middle(&[run(4.0, 0.1), run(1.0, 0.3)]).seconds, 1.0);
    }
}
