//! Which transaction belongs to which checkpoint: the books of a checkpoint coordinator.
//!
//! A transactional id has one transaction at a time, and the next checkpoint's records must not wait for the last one's
//! commit. So each checkpoint has a transaction under an id of its own, from a pool that goes round.

use super::{DamagedTransaction, PreparedTransaction};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

const MAGIC: &str = "kafka-share-checkpoint/1";
/// Most transactional ids of one coordinator.
pub const MAX_POOL: usize = 1024;

/// What a checkpoint must remember: the transactions that are prepared, and not known to have ended.
///
/// Its text form ([`fmt::Display`], [`FromStr`]) has a line for each, and notices damage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckpointState {
    /// Number of transactional ids that the coordinator uses.
    pub pool: usize,
    /// Prepared transactions by checkpoint.
    pub prepared: BTreeMap<u64, PreparedTransaction>,
}

impl fmt::Display for CheckpointState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MAGIC} {} {}", self.pool, self.prepared.len())?;
        for (checkpoint, prepared) in &self.prepared {
            write!(f, "\n{checkpoint} {prepared}")?;
        }
        Ok(())
    }
}

impl FromStr for CheckpointState {
    type Err = DamagedTransaction;

    fn from_str(text: &str) -> Result<Self, DamagedTransaction> {
        let mut lines = text.trim().lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [MAGIC, pool, count] = head[..] else {
            return Err(DamagedTransaction("it does not begin with kafka-share-checkpoint/1 and two numbers"));
        };
        let number = |_| DamagedTransaction("a number in it cannot be read");
        let (pool, count): (usize, usize) = (pool.parse().map_err(number)?, count.parse().map_err(number)?);
        if pool > MAX_POOL || count > pool {
            return Err(DamagedTransaction("it has more transactions than a coordinator can have"));
        }
        let mut prepared = BTreeMap::new();
        for line in lines {
            let (checkpoint, paper) = line.split_once(' ').ok_or(DamagedTransaction("a line of it is cut short"))?;
            if prepared.insert(checkpoint.parse().map_err(number)?, paper.parse()?).is_some() {
                return Err(DamagedTransaction("it has a checkpoint twice"));
            }
        }
        if prepared.len() != count {
            return Err(DamagedTransaction("lines of it are missing"));
        }
        Ok(CheckpointState { pool, prepared })
    }
}

/// Why a checkpoint cannot be prepared now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// Checkpoints are numbered upwards.
    #[error("checkpoint {0} is not later than checkpoint {1}, which was prepared before")]
    NotLater(u64, u64),
    /// Every other transactional id holds a prepared transaction.
    #[error("{0} checkpoints are prepared and neither complete nor aborted: end one of them, or use a larger pool")]
    PoolExhausted(usize),
}

/// The books.
#[derive(Debug)]
pub struct Checkpoints {
    pool: usize,
    /// Number of the transactional id whose transaction takes records now.
    current: usize,
    prepared: BTreeMap<u64, (usize, PreparedTransaction)>,
    last: Option<u64>,
}

impl Checkpoints {
    /// No checkpoint yet. `pool`: number of transactional ids, 2 to [`MAX_POOL`].
    #[must_use]
    pub fn new(pool: usize) -> Self {
        Checkpoints { pool: pool.clamp(2, MAX_POOL), current: 0, prepared: BTreeMap::new(), last: None }
    }

    /// Number of the transactional id whose transaction takes records now.
    #[must_use]
    pub fn current(&self) -> usize {
        self.current
    }

    /// Checks that a checkpoint may be prepared now.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn check(&self, checkpoint: u64) -> Result<(), CheckpointError> {
        match self.last.filter(|last| *last >= checkpoint) {
            Some(last) => Err(CheckpointError::NotLater(checkpoint, last)),
            None if self.prepared.len() + 1 >= self.pool => Err(CheckpointError::PoolExhausted(self.prepared.len())),
            None => Ok(()),
        }
    }

    /// The current transaction was prepared for a checkpoint; the next one takes records from now on.
    ///
    /// # Errors
    /// As [`Checkpoints::check`]; nothing is changed then.
    pub fn handle_prepared(&mut self, checkpoint: u64, prepared: PreparedTransaction) -> Result<(), CheckpointError> {
        self.check(checkpoint)?;
        self.prepared.insert(checkpoint, (self.current, prepared));
        self.last = Some(checkpoint);
        let taken = |at: &usize| self.prepared.values().any(|(used, _)| used == at);
        let after = (1..self.pool).map(|step| (self.current + step) % self.pool);
        // There is one: `check` saw to it.
        self.current = after.into_iter().find(|at| !taken(at)).unwrap_or(self.current);
        Ok(())
    }

    /// Checkpoints whose transactions are to be committed once `checkpoint` is complete, in order: it, and all before it.
    #[must_use]
    pub fn due(&self, checkpoint: u64) -> Vec<(u64, usize)> {
        self.prepared.range(..=checkpoint).map(|(checkpoint, (at, _))| (*checkpoint, *at)).collect()
    }

    /// Number of the transactional id of a prepared checkpoint.
    #[must_use]
    pub fn find(&self, checkpoint: u64) -> Option<usize> {
        self.prepared.get(&checkpoint).map(|(at, _)| *at)
    }

    /// The transaction of a checkpoint has ended.
    pub fn handle_ended(&mut self, checkpoint: u64) {
        self.prepared.remove(&checkpoint);
    }

    /// What a checkpoint must remember.
    #[must_use]
    pub fn state(&self) -> CheckpointState {
        let prepared = self.prepared.iter().map(|(checkpoint, (_, paper))| (*checkpoint, paper.clone())).collect();
        CheckpointState { pool: self.pool, prepared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::ProducerIdentity;

    fn paper(id: i64) -> PreparedTransaction {
        PreparedTransaction {
            cluster_id: "c".into(),
            transactional_id: format!("t-{id}"),
            identity: ProducerIdentity { id, epoch: 0 },
            v2: true,
            started: true,
            expires_ms: -1,
        }
    }

    #[test]
    fn ids_go_round_and_none_is_used_twice() {
        let mut books = Checkpoints::new(3);
        books.handle_prepared(5, paper(0)).unwrap();
        assert_eq!(books.current(), 1);
        books.handle_prepared(7, paper(1)).unwrap();
        assert_eq!(books.current(), 2);
        assert_eq!(books.check(8), Err(CheckpointError::PoolExhausted(2)));
        assert_eq!(books.handle_prepared(8, paper(2)), Err(CheckpointError::PoolExhausted(2)));
        books.handle_ended(5);
        assert_eq!(books.check(7), Err(CheckpointError::NotLater(7, 7)));
        books.handle_prepared(8, paper(2)).unwrap();
        assert_eq!(books.current(), 0, "1 is taken");
        assert_eq!(books.due(7), [(7, 1)]);
        assert_eq!(books.due(100), [(7, 1), (8, 2)]);
        assert_eq!((books.find(8), books.find(5)), (Some(2), None));
    }

    #[test]
    fn the_state_is_read_back_and_damage_is_noticed() {
        let mut books = Checkpoints::new(4);
        assert_eq!(books.state().to_string().parse(), Ok(books.state()));
        books.handle_prepared(1, paper(10)).unwrap();
        books.handle_prepared(2, paper(11)).unwrap();
        let text = books.state().to_string();
        assert_eq!(text.parse(), Ok(books.state()));
        for end in 0..text.len() {
            assert!(text[..end].parse::<CheckpointState>().is_err(), "{}", &text[..end]);
        }
        let line = text.lines().nth(1).unwrap();
        for bad in [
            text.replace("/1 4 2", "/1 4 3"),
            text.replace("/1 4 2", "/1 1 2"),
            text.replace("/1 4 2", "/1 99999999999 2"),
            format!("{MAGIC} 4 2\n{line}\n{line}"),
            text.replace("\n2 ", "\n-2 "),
        ] {
            assert!(bad.parse::<CheckpointState>().is_err(), "{bad}");
        }
    }
}
