//! The directory itself: whose it is, its format, the lock, the names in it.

use super::frame::LogFile;
use super::{DataDirError, LogId};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// Says what the directory is. A later format has a greater number.
const FORMAT_FILE: &str = "kafka-share-broker.format";
const FORMAT_TITLE: &str = "kafka-share-broker data directory, format ";
const FORMAT: u32 = 1;
const LOCK: &str = "lock";
const LOGS: &str = "logs";

/// An open data directory; the lock is held until it is dropped, or its process ends in whatever way.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Opens or creates the directory and locks it.
    pub(super) fn open(path: &Path) -> Result<Directory, DataDirError> {
        fs::create_dir_all(path).map_err(DataDirError::io("create the data directory", path))?;
        let fresh = !check_format(path)?;
        let lock = path.join(LOCK);
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true);
        let file = options.open(&lock).map_err(DataDirError::io("write to", &lock))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DataDirError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(DataDirError::io("lock", &lock)(error)),
        }
        let logs = path.join(LOGS);
        fs::create_dir_all(&logs).map_err(DataDirError::io("create", &logs))?;
        if fresh {
            let format = path.join(FORMAT_FILE);
            let temporary = path.join("format.tmp");
            fs::write(&temporary, format!("{FORMAT_TITLE}{FORMAT}\n"))
                .map_err(DataDirError::io("write", &temporary))?;
            fs::rename(&temporary, &format).map_err(DataDirError::io("write", &format))?;
        }
        Ok(Directory { path: path.to_owned(), _lock: file })
    }

    pub(super) fn journal(&self, number: u64) -> PathBuf {
        self.path.join(format!("journal-{number:010}"))
    }

    pub(super) fn temporary_journal(&self) -> PathBuf {
        self.path.join("journal.tmp")
    }

    /// Numbers of the journals, ascending.
    pub(super) fn journals(&self) -> Result<Vec<u64>, DataDirError> {
        let number = |name: &str| name.strip_prefix("journal-")?.parse().ok();
        let mut numbers: Vec<u64> = names(&self.path)?.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    pub(super) fn log(&self, id: LogId, file: LogFile) -> PathBuf {
        self.path.join(LOGS).join(log_name(id, file.generation))
    }

    /// Names of all log files.
    pub(super) fn logs(&self) -> Result<Vec<PathBuf>, DataDirError> {
        let logs = self.path.join(LOGS);
        let ours = |name: &String| name.ends_with(".batches");
        Ok(names(&logs)?.into_iter().filter(ours).map(|name| logs.join(name)).collect())
    }

    /// Makes names durable, which a file's own sync does not.
    pub(super) fn sync(&self) -> Result<(), DataDirError> {
        for path in [self.path.clone(), self.path.join(LOGS)] {
            // Not every system lets a directory be opened; those that do not write names through.
            if let Ok(directory) = File::open(&path) {
                directory.sync_all().map_err(DataDirError::io("sync", &path))?;
            }
        }
        Ok(())
    }
}

/// Hexadecimal, as some file systems do not tell upper from lower case.
fn log_name((topic, partition): LogId, generation: u32) -> String {
    let topic: String = topic.0.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{topic}-{partition}-{generation}.batches")
}

fn names(path: &Path) -> Result<Vec<String>, DataDirError> {
    let failed = || DataDirError::io("read", path);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(failed())? {
        names.push(entry.map_err(failed())?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

/// Whether the directory has a format that this version reads (`true`), or nothing yet.
fn check_format(path: &Path) -> Result<bool, DataDirError> {
    let foreign = |why: String| Err(DataDirError::Foreign { path: path.to_owned(), why });
    let format = path.join(FORMAT_FILE);
    if !format.exists() {
        let names = names(path)?;
        let other = |name: &&String| ![LOCK, LOGS, "format.tmp", "lost+found"].contains(&name.as_str());
        return match names.iter().find(other) {
            None => Ok(false),
            Some(_) if names.iter().any(|name| name == "meta.properties") => {
                foreign("it belongs to Apache Kafka".into())
            }
            Some(name) => foreign(format!("it holds {name:?}")),
        };
    }
    let text = fs::read_to_string(&format).map_err(DataDirError::io("read", &format))?;
    let version = text.strip_prefix(FORMAT_TITLE).and_then(|rest| rest.trim().parse::<u32>().ok());
    match version {
        Some(version) if version > FORMAT => {
            Err(DataDirError::NewerVersion { path: path.to_owned(), version, newest: FORMAT })
        }
        Some(1..) => Ok(true),
        _ => foreign(format!("{FORMAT_FILE} does not say a format")),
    }
}
