//! Reading the input file, and loading it into the input topic.

use super::Plan;
use super::engine::Engine;
use crate::exit::Failure;
use std::path::Path;

/// A year of hourly temperatures; see the README beside the file.
const SAMPLE: &str = include_str!("../../data/seattle-temps.csv");
/// Longest line: topics take records of 1 MiB with their overhead by default (`max.message.bytes`).
const MAX_LINE: usize = 1_000_000;

/// The lines of the file, or of the sample.
pub(super) fn read(path: Option<&Path>) -> Result<Vec<String>, Failure> {
    let (name, bytes) = match path {
        None => ("the sample".to_owned(), SAMPLE.as_bytes().to_vec()),
        Some(path) => {
            let bytes =
                std::fs::read(path).map_err(|e| Failure::usage(format_args!("--input {}: {e}", path.display())))?;
            (path.display().to_string(), bytes)
        }
    };
    let text = String::from_utf8(bytes).map_err(|e| {
        let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = good.iter().filter(|b| **b == b'\n').count() + 1;
        Failure::usage(format_args!("--input {name}: line {line} is not valid UTF-8"))
    })?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return Err(Failure::usage(format_args!("--input {name}: the file is empty, there is nothing to do")));
    }
    if let Some(at) = lines.iter().position(|l| l.len() > MAX_LINE) {
        let text =
            format!("--input {name}: line {} has {} bytes; a record can have {MAX_LINE}", at + 1, lines[at].len());
        return Err(Failure::usage(text));
    }
    Ok(lines)
}

/// Line `index` goes to partition `index % partitions`, where its offset is `index / partitions`.
pub(super) fn place(index: usize, partitions: i32) -> (i32, i64) {
    let partitions = partitions as usize;
    ((index % partitions) as i32, (index / partitions) as i64)
}

/// Writes all lines to the input topic and waits until the brokers have them.
pub(super) async fn load(engine: &Engine, plan: &Plan, lines: &[String]) -> Result<(), Failure> {
    load_from(engine, plan, lines, 0, lines.len()).await
}

/// Writes so many records, from a place in the lines on, which begin again where they end.
pub(super) async fn load_from(
    engine: &Engine,
    plan: &Plan,
    lines: &[String],
    first: usize,
    count: usize,
) -> Result<(), Failure> {
    let producer = engine.producer()?;
    let mut deliveries = Vec::with_capacity(count);
    for index in first..first + count {
        let (partition, line) = (place(index, plan.partitions).0, &lines[index % lines.len()]);
        let record = kafka_share::ProducerRecord::new(&plan.input_topic).partition(partition).value(line.as_bytes());
        deliveries.push(producer.send(record).await?);
    }
    producer.flush().await?;
    for (index, delivery) in (first..).zip(deliveries) {
        let metadata = delivery.await?;
        let expected = place(index, plan.partitions);
        if (metadata.partition(), metadata.offset()) != expected {
            let text = format!(
                "input line {} was stored at {:?} instead of {expected:?}",
                index + 1,
                (metadata.partition(), metadata.offset())
            );
            return Err(Failure::new(text));
        }
    }
    producer.close(std::time::Duration::from_secs(10)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_what_its_readme_says() {
        let lines = read(None).unwrap();
        assert_eq!(lines.len(), 8760);
        let unique: std::collections::BTreeSet<_> = lines.iter().collect();
        assert_eq!(unique.len(), lines.len());
    }

    #[test]
    fn lines_are_spread_over_partitions() {
        assert_eq!((place(0, 4), place(5, 4), place(7, 1)), ((0, 0), (1, 1), (0, 7)));
    }
}
