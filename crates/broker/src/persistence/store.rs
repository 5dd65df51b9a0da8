//! A data directory in use: a journal of values and of how long each log is, and a file of batches per partition.
//!
//! A commit first appends to the files of batches, then writes one frame to the journal, which makes all of it count.
//! Bytes of a log beyond the length in the journal belong to a commit that was cut short: nobody was told of them, and
//! the next start removes them. A journal that is mostly overwritten values is written anew.

use super::directory::Directory;
use super::frame::{self, Entry, LogFile, Next};
use super::{Changes, DataDirError, Key, LogChange, LogId, RestoreError, Saved};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Files of batches that are kept open.
const OPEN_FILES: usize = 256;
/// A journal is not written anew below this size.
const JOURNAL_SLACK: u64 = 4 << 20;

/// What a log takes in a journal.
const LOG_ENTRY: u64 = 34;

/// How a journal was read.
struct Journal {
    number: u64,
    len: u64,
}

/// A data directory in use.
#[derive(Debug)]
pub(crate) struct Store {
    directory: Directory,
    /// Writes wait until the device has them.
    sync: bool,
    journal: File,
    number: u64,
    journal_len: u64,
    live_bytes: u64,
    values: BTreeMap<Key, Bytes>,
    logs: HashMap<LogId, LogFile>,
    open: HashMap<LogId, File>,
}

fn size(key: &Key, value: &Bytes) -> u64 {
    (key.encode().len() + value.len() + 16) as u64
}

impl Store {
    /// Opens the directory, cuts off what a crash left half written, and gives what was saved.
    pub(crate) fn open(path: &Path, sync: bool) -> Result<(Store, Saved), DataDirError> {
        let directory = Directory::open(path)?;
        let mut values = BTreeMap::new();
        let mut logs = HashMap::new();
        let found = read_journal(&directory, &mut values, &mut logs)?;
        // The first commit holds no records yet: where there are some, there was a journal.
        if found.as_ref().is_none_or(|found| found.len == 0) && !directory.logs()?.is_empty() {
            let why = if found.is_some() { "the journal is cut short" } else { "the journal is missing" };
            let number = found.as_ref().map_or(1, |found| found.number);
            return Err(DataDirError::corrupt(&directory.journal(number), 0, why));
        }
        let saved = Saved { logs: read_logs(&directory, &logs)?, values: values.clone() };
        remove_unknown(&directory, &logs)?;
        let number = found.as_ref().map_or(1, |found| found.number);
        let journal_path = directory.journal(number);
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true);
        let mut journal = options.open(&journal_path).map_err(DataDirError::io("write to", &journal_path))?;
        let journal_len = found.map_or(0, |found| found.len);
        let cut = journal.set_len(journal_len).and_then(|()| journal.seek(SeekFrom::End(0)));
        cut.map_err(DataDirError::io("cut", &journal_path))?;
        let live_bytes = values.iter().map(|(key, value)| size(key, value)).sum();
        let open = HashMap::new();
        let store = Store { directory, sync, journal, number, journal_len, live_bytes, values, logs, open };
        if sync {
            store.directory.sync()?;
        }
        Ok((store, saved))
    }

    /// Names the file of a log that cannot be restored.
    pub(crate) fn explain(&self, error: RestoreError) -> DataDirError {
        let journal = self.directory.journal(self.number);
        match &error {
            RestoreError::Log { id, position, .. } => {
                let path = self.logs.get(id).map_or(journal, |file| self.directory.log(*id, *file));
                DataDirError::corrupt(&path, *position, error.to_string())
            }
            RestoreError::Value(..) => DataDirError::corrupt(&journal, 0, error.to_string()),
        }
    }

    /// Writes changes, all or none. After an error the store must not be used again.
    pub(crate) fn commit(&mut self, changes: Changes) -> Result<(), DataDirError> {
        let mut entries = Vec::with_capacity(changes.values.len() + changes.logs.len());
        let mut garbage = Vec::new();
        for (id, change) in changes.logs {
            let file = self.write_log(id, &change, &mut garbage)?;
            entries.push(Entry::Log(id, file));
        }
        for (key, value) in changes.values {
            if self.values.get(&key) != value.as_ref() {
                entries.push(Entry::Value(key, value));
            }
        }
        if entries.is_empty() {
            return Ok(());
        }
        let frame = frame::encode(entries.iter());
        let path = self.directory.journal(self.number);
        self.journal.write_all(&frame).map_err(DataDirError::io("write to", &path))?;
        if self.sync {
            self.journal.sync_data().map_err(DataDirError::io("sync", &path))?;
        }
        self.journal_len += frame.len() as u64;
        for entry in entries {
            self.note(entry);
        }
        for path in garbage {
            // Left behind, it is removed at the next start.
            let _ = fs::remove_file(path);
        }
        if self.journal_len > JOURNAL_SLACK + 4 * (self.live_bytes + LOG_ENTRY * self.logs.len() as u64) {
            self.rewrite_journal()?;
        }
        Ok(())
    }

    fn note(&mut self, entry: Entry) {
        match entry {
            Entry::Value(key, value) => {
                if let Some(old) = self.values.remove(&key) {
                    self.live_bytes -= size(&key, &old);
                }
                if let Some(value) = value {
                    self.live_bytes += size(&key, &value);
                    self.values.insert(key, value);
                }
            }
            Entry::Log(id, Some(file)) => {
                self.logs.insert(id, file);
            }
            Entry::Log(id, None) => {
                self.logs.remove(&id);
                self.open.remove(&id);
            }
        }
    }

    /// Writes a log's batches where they do not count yet.
    fn write_log(
        &mut self,
        id: LogId,
        change: &LogChange,
        garbage: &mut Vec<PathBuf>,
    ) -> Result<Option<LogFile>, DataDirError> {
        let old = self.logs.get(&id).copied();
        let bytes = match change {
            LogChange::Append(bytes) => bytes,
            LogChange::Rewrite(bytes) => {
                garbage.extend(old.map(|file| self.directory.log(id, file)));
                self.open.remove(&id);
                bytes
            }
            LogChange::Remove => {
                garbage.extend(old.map(|file| self.directory.log(id, file)));
                return Ok(None);
            }
        };
        let target = match (old, change) {
            (Some(file), LogChange::Append(_)) => file,
            (old, _) => LogFile { generation: old.map_or(0, |file| file.generation + 1), len: 0 },
        };
        let path = self.directory.log(id, target);
        if !self.open.contains_key(&id) {
            if self.open.len() >= OPEN_FILES {
                self.open.clear();
            }
            let mut options = OpenOptions::new();
            let options = options.create(true).truncate(false).write(true);
            let mut file = options.open(&path).map_err(DataDirError::io("write to", &path))?;
            let at = file.set_len(target.len).and_then(|()| file.seek(SeekFrom::End(0)));
            at.map_err(DataDirError::io("write to", &path))?;
            if self.sync {
                self.directory.sync()?;
            }
            self.open.insert(id, file);
        }
        if let Some(file) = self.open.get_mut(&id) {
            file.write_all(bytes).map_err(DataDirError::io("write to", &path))?;
            if self.sync {
                file.sync_data().map_err(DataDirError::io("sync", &path))?;
            }
        }
        Ok(Some(LogFile { len: target.len + bytes.len() as u64, ..target }))
    }

    /// Writes all that counts into a new journal, which takes the old one's place at once.
    fn rewrite_journal(&mut self) -> Result<(), DataDirError> {
        let temporary = self.directory.temporary_journal();
        let values = self.values.iter().map(|(key, value)| Entry::Value(key.clone(), Some(value.clone())));
        let logs = self.logs.iter().map(|(id, file)| Entry::Log(*id, Some(*file)));
        let entries: Vec<Entry> = values.chain(logs).collect();
        let bytes = frame::encode(entries.iter());
        let next = self.directory.journal(self.number + 1);
        let mut journal = File::create(&temporary).map_err(DataDirError::io("write to", &temporary))?;
        journal.write_all(&bytes).map_err(DataDirError::io("write to", &temporary))?;
        if self.sync {
            journal.sync_data().map_err(DataDirError::io("sync", &temporary))?;
        }
        fs::rename(&temporary, &next).map_err(DataDirError::io("rename", &temporary))?;
        if self.sync {
            self.directory.sync()?;
        }
        let _ = fs::remove_file(self.directory.journal(self.number));
        self.journal = journal;
        self.number += 1;
        self.journal_len = bytes.len() as u64;
        Ok(())
    }
}

/// Reads the newest journal, and removes others, which were being replaced.
fn read_journal(
    directory: &Directory,
    values: &mut BTreeMap<Key, Bytes>,
    logs: &mut HashMap<LogId, LogFile>,
) -> Result<Option<Journal>, DataDirError> {
    let _ = fs::remove_file(directory.temporary_journal());
    let mut numbers = directory.journals()?;
    let Some(number) = numbers.pop() else { return Ok(None) };
    for old in numbers {
        let path = directory.journal(old);
        fs::remove_file(&path).map_err(DataDirError::io("remove", &path))?;
    }
    let path = directory.journal(number);
    let bytes = Bytes::from(fs::read(&path).map_err(DataDirError::io("read", &path))?);
    let mut at = 0;
    loop {
        match frame::next(&bytes.slice(at..), at as u64) {
            Next::Frame(entries, len) => {
                for entry in entries {
                    apply(entry, values, logs);
                }
                at += len;
            }
            // A journal takes the place of another one only once its first frame, which holds everything, is whole.
            Next::End | Next::Torn if at == 0 && number > 1 => {
                return Err(DataDirError::corrupt(&path, 0, "the journal is cut short"));
            }
            Next::End => break,
            Next::Torn => {
                let cut = bytes.len() - at;
                tracing::warn!(file = %path.display(), bytes = cut, "removing the rest of a write that was cut short");
                break;
            }
            Next::Corrupt(why) => return Err(DataDirError::corrupt(&path, at as u64, why)),
        }
    }
    Ok(Some(Journal { number, len: at as u64 }))
}

fn apply(entry: Entry, values: &mut BTreeMap<Key, Bytes>, logs: &mut HashMap<LogId, LogFile>) {
    match entry {
        Entry::Value(key, Some(value)) => {
            // Detached: a value must not keep the whole journal in memory.
            values.insert(key, Bytes::copy_from_slice(&value));
        }
        Entry::Value(key, None) => {
            values.remove(&key);
        }
        Entry::Log(id, Some(file)) => {
            logs.insert(id, file);
        }
        Entry::Log(id, None) => {
            logs.remove(&id);
        }
    }
}

/// Reads as much of each log as counts.
fn read_logs(directory: &Directory, logs: &HashMap<LogId, LogFile>) -> Result<HashMap<LogId, Bytes>, DataDirError> {
    let mut all = HashMap::new();
    for (id, file) in logs {
        let path = directory.log(*id, *file);
        let bytes = Bytes::from(fs::read(&path).map_err(DataDirError::io("read", &path))?);
        if (bytes.len() as u64) < file.len {
            let why = format!("{} bytes were acknowledged, the file ends before", file.len);
            return Err(DataDirError::corrupt(&path, bytes.len() as u64, why));
        }
        all.insert(*id, bytes.slice(..file.len as usize));
    }
    Ok(all)
}

/// Removes logs that no journal knows: commits that were cut short wrote them.
fn remove_unknown(directory: &Directory, logs: &HashMap<LogId, LogFile>) -> Result<(), DataDirError> {
    let known: std::collections::HashSet<PathBuf> = logs.iter().map(|(id, file)| directory.log(*id, *file)).collect();
    for path in directory.logs()?.into_iter().filter(|path| !known.contains(path)) {
        fs::remove_file(&path).map_err(DataDirError::io("remove", &path))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
