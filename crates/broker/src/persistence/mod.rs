//! What outlives a restart: the changes that the machine reports, and the directory that keeps them.
//!
//! The machine knows no files. After each call its owner takes the [`Changes`] and writes them, all or none, before it
//! sends the answers that depend on them. [`Saved`] is what a directory held when it was opened.

mod codec;
mod directory;
mod error;
mod frame;
mod store;

pub(crate) use codec::{Decoder, Encoder};
pub use error::DataDirError;
pub(crate) use store::Store;

use bytes::Bytes;
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, HashMap};

/// A partition of a topic, by id.
pub(crate) type LogId = (Uuid, i32);

/// What a saved value belongs to. The order is that in which values are restored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Cluster id and number of starts.
    Cluster,
    /// The next producer id.
    ProducerId,
    Topic(Uuid),
    /// State of a log that its batches do not tell.
    Log(LogId),
    GroupConfig(Str),
    Txn(Str),
    Group(Str),
    Share(Str, Uuid, i32),
}

impl Key {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Encoder::default();
        match self {
            Key::Cluster => out.i8(1),
            Key::ProducerId => out.i8(2),
            Key::Topic(id) => out.i8(3).uuid(*id),
            Key::Log((id, partition)) => out.i8(4).uuid(*id).i32(*partition),
            Key::GroupConfig(group) => out.i8(5).text(group),
            Key::Txn(id) => out.i8(6).text(id),
            Key::Group(group) => out.i8(7).text(group),
            Key::Share(group, topic, partition) => out.i8(8).text(group).uuid(*topic).i32(*partition),
        };
        out.finish()
    }

    /// `None` where a later version wrote the key, or it is no key.
    pub(crate) fn decode(bytes: &Bytes) -> Option<Key> {
        let mut input = Decoder::new(bytes.clone());
        let key = match input.i8().ok()? {
            1 => Key::Cluster,
            2 => Key::ProducerId,
            3 => Key::Topic(input.uuid().ok()?),
            4 => Key::Log((input.uuid().ok()?, input.i32().ok()?)),
            5 => Key::GroupConfig(input.text().ok()?),
            6 => Key::Txn(input.text().ok()?),
            7 => Key::Group(input.text().ok()?),
            8 => Key::Share(input.text().ok()?, input.uuid().ok()?, input.i32().ok()?),
            _ => return None,
        };
        input.finish().ok().map(|()| key)
    }
}

/// What happened to a log's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogChange {
    /// Batches were appended.
    Append(Bytes),
    /// These are all batches now: others were compacted away or deleted.
    Rewrite(Bytes),
    /// The partition is gone.
    Remove,
}

/// Changes that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// New values; `None` removes one.
    pub(crate) values: BTreeMap<Key, Option<Bytes>>,
    pub(crate) logs: BTreeMap<LogId, LogChange>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.logs.is_empty()
    }
}

/// What was saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    pub(crate) values: BTreeMap<Key, Bytes>,
    pub(crate) logs: HashMap<LogId, Bytes>,
}

/// A saved value or log that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RestoreError {
    #[error("the saved state of {0} cannot be read: {1}")]
    Value(String, String),
    #[error("partition {partition} of topic {topic}, byte {position}: {why}")]
    Log { topic: String, id: LogId, partition: i32, position: u64, why: String },
}
