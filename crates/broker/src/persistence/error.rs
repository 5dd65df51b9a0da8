//! What can be wrong with a data directory.

use std::io;
use std::path::{Path, PathBuf};

/// Why a data directory cannot be used, or can be used no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// The operating system refused an operation, for instance as the disk is full or the directory is not writable.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Another broker uses the directory.
    #[error("{} is in use by another broker; stop that one, or take another directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds something else.
    #[error("{} is not a data directory of this broker: {why}; take an empty or a new directory", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What is there.
        why: String,
    },
    /// A later version of this broker wrote the directory.
    #[error(
        "{} has format {version}, this broker reads formats up to {newest}; use the version that wrote it, or an empty \
         directory", path.display()
    )]
    NewerVersion {
        /// The directory.
        path: PathBuf,
        /// Its format.
        version: u32,
        /// The newest that is known here.
        newest: u32,
    },
    /// Bytes that had been written and acknowledged are damaged or gone.
    #[error(
        "{} is damaged at byte {offset}: {why}; put the directory back from a copy, or start with an empty one",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What is wrong.
        why: String,
    },
}

impl DataDirError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
        let path = path.to_owned();
        move |source| DataDirError::Io { action, path, source }
    }

    pub(super) fn corrupt(path: &Path, offset: u64, why: impl Into<String>) -> DataDirError {
        DataDirError::Corrupt { path: path.to_owned(), offset, why: why.into() }
    }
}
