//! A client's process: its processor time, its peak of memory and the line it prints.

use crate::exit::Failure;
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

/// How often the peak of memory is read; the system keeps the peak, so only the last moments can be missed.
const LOOK: Duration = Duration::from_millis(20);
/// Linux counts processor time in these parts of a second, whatever its own clock.
const TICKS: f64 = 100.0;

/// What a client took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// As it says itself.
    pub(super) records: u64,
    /// That it counts, as it says itself.
    pub(super) seconds: f64,
    /// Committed, as it says itself.
    pub(super) transactions: Option<u64>,
    /// Of a transaction, as it says itself.
    pub(super) median_transaction_ms: Option<f64>,
    /// Processor time of the whole process.
    pub(super) cpu_seconds: Option<f64>,
    pub(super) peak_bytes: Option<u64>,
}

/// Runs a command with further arguments to its end.
pub(super) async fn measure(command: &[String], more: &[String]) -> Result<Measured, Failure> {
    let (program, first) = command.split_first().ok_or_else(|| Failure::usage("a peer's command is empty"))?;
    let before = children_seconds();
    let mut process = tokio::process::Command::new(program);
    process.args(first).args(more).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let child = process.spawn().map_err(|error| Failure::new(format_args!("{program}: {error}")))?;
    let status = child.id().map(|id| format!("/proc/{id}/status"));
    let end = child.wait_with_output();
    tokio::pin!(end);
    let mut peak = None;
    let output = loop {
        tokio::select! {
            output = &mut end => break output.map_err(|error| Failure::new(format_args!("{program}: {error}")))?,
            () = tokio::time::sleep(LOOK) => peak = status.as_deref().and_then(peak_bytes).or(peak),
        }
    };
    if !output.status.success() {
        return Err(Failure::new(format_args!("{program} ended with {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
    let said: Value = serde_json::from_str(line).unwrap_or_default();
    let (Some(records), Some(seconds)) = (said["records"].as_u64(), said["seconds"].as_f64()) else {
        return Err(Failure::new(format_args!("{program} printed no line with its records and seconds")));
    };
    let cpu_seconds = children_seconds().zip(before).map(|(after, before)| after - before);
    let transactions = said["transactions"].as_u64();
    let median_transaction_ms = said["median_transaction_ms"].as_f64();
    Ok(Measured { records, seconds, transactions, median_transaction_ms, cpu_seconds, peak_bytes: peak })
}

/// Processor time of all children that have ended.
fn children_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name may hold anything; what follows it are numbers.
    let (_, numbers) = stat.rsplit_once(')')?;
    let numbers: Vec<&str> = numbers.split_whitespace().collect();
    // cutime and cstime, fields 16 and 17 of proc_pid_stat(5).
    let ticks = numbers.get(13)?.parse::<f64>().ok()? + numbers.get(14)?.parse::<f64>().ok()?;
    Some(ticks / TICKS)
}

fn peak_bytes(status: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
