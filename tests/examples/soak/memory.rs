//! Resident memory of this process, which holds the broker, the members and the book.

use std::fmt;
use std::process::{Command, ExitCode};

/// Settings of glibc's allocator under which memory that was freed is given back at once. By its defaults it keeps what
/// large buffers leave behind, and resident memory then says little about what is in use.
const ALLOCATOR: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "65536"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

/// Runs this program once more with these settings, unless it has them.
pub(crate) fn again_with_plain_allocator() -> Option<ExitCode> {
    if ALLOCATOR.iter().all(|(name, _)| std::env::var_os(name).is_some()) {
        return None;
    }
    let program = std::env::current_exe().expect("this program has a path");
    let ended = Command::new(program).args(std::env::args_os().skip(1)).envs(ALLOCATOR).status();
    let code = ended.expect("this program starts once more").code().and_then(|code| u8::try_from(code).ok());
    Some(ExitCode::from(code.unwrap_or(1)))
}

/// Samples in bytes, where the system tells them.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<u64>);

impl Samples {
    pub(crate) fn take(&mut self) {
        self.0.extend(kafka_share_tests::memory::resident());
    }

    /// Whether the last quarter's lowest lies no higher than the second's, give or take what an allocator keeps. What is above
    /// it are segments that the broker has not deleted yet: how many those are follows the rate.
    pub(crate) fn flat(&self) -> bool {
        let quarter = self.0.len() / 4;
        if quarter == 0 {
            return true;
        }
        let lowest = |part: &[u64]| part.iter().min().copied().unwrap_or(0);
        let (early, late) = (lowest(&self.0[quarter..2 * quarter]), lowest(&self.0[self.0.len() - quarter..]));
        late <= early + early / 10 + (32 << 20)
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.last(), self.0.iter().max()) {
            (Some(last), Some(most)) => write!(f, "{} MiB (at most {})", last >> 20, most >> 20),
            _ => f.write_str("not measured"),
        }
    }
}
