//! Resident memory of this process.

/// In bytes, where the system tells it (Linux).
#[must_use]
pub fn resident() -> Option<u64> {
    // Pages of 4 KiB.
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split(' ').nth(1)?.parse::<u64>().ok().map(|pages| pages * 4096)
}
