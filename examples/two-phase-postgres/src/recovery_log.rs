//! The recovery log: a file with a line for each decision to commit, and one for each that was carried out.

use crate::Failure;
use kafka_share::PreparedTransaction;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

/// `commit GID PAPER` or `done GID` a line, each made safe before anything else happens.
#[derive(Debug)]
pub(crate) struct RecoveryLog {
    file: File,
}

impl RecoveryLog {
    /// Opens the log, or makes it; answers the decisions that were not carried out.
    pub(crate) fn open(path: &Path) -> Result<(Self, BTreeMap<String, PreparedTransaction>), Failure> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A line without an end was never safe, and nobody has acted on it.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64)?;
        let mut open = BTreeMap::new();
        for line in text[..whole].lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["commit", gid, paper] => drop(open.insert(gid.to_owned(), paper.parse()?)),
                ["done", gid] => drop(open.remove(gid)),
                _ => return Err(format!("{}: not a line of a recovery log: {line:?}", path.display()).into()),
            }
        }
        Ok((RecoveryLog { file }, open))
    }

    /// The decision. Once this returns, both parties will be committed, whatever happens.
    pub(crate) fn commit(&mut self, gid: &str, paper: &PreparedTransaction) -> Result<(), Failure> {
        self.line(&format!("commit {gid} {paper}\n"))
    }

    /// Both parties are committed.
    pub(crate) fn done(&mut self, gid: &str) -> Result<(), Failure> {
        self.line(&format!("done {gid}\n"))
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.file.write_all(line.as_bytes())?;
        Ok(self.file.sync_data()?)
    }
}
