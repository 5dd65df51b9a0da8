//! What a record of the ledger looks like: intents, their tombstones, and the generation of a group. Documented in
//! `protocol-specs/ledger/`.

use crate::metadata::TopicIdPartition;
use crate::producer::partition_for_key;
use crate::share_acks::AckType;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_share_wire::varint::{decode_uvarlong, encode_uvarlong};
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeMap;

/// Format of the values written here, and the newest that is read.
pub const FORMAT_VERSION: u8 = 1;
/// How a group's ledger partition is found, see [`Layout::partition_for`].
pub const HASH_VERSION: u8 = 1;

const MAGIC: [u8; 2] = *b"KL";
const INTENT: u8 = 1;
const GENERATION: u8 = 2;
const LEFT: u8 = 3;
const INTENT_KEY: usize = 1 + 16 + 8;
const TWO_PHASE: u8 = 1;
const NATIVE: u8 = 2;
/// What to do about a ledger that cannot be read on.
pub(super) const MOVE: &str = "stop all members, create a ledger under another name, and start them with that as \
                               share.ack.ledger.topic (see \"Moving to another ledger\" in the guide)";
/// Longest transactional id and group id, as Kafka's strings.
const MAX_TEXT: usize = 0x7fff;

/// What all members must agree on: number of partitions, and how a group's partition is found among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    partitions: u32,
}

impl Layout {
    /// A ledger of that many partitions; `None` for less than one.
    #[must_use]
    pub fn new(partitions: u32) -> Option<Self> {
        (partitions > 0 && i32::try_from(partitions).is_ok()).then_some(Layout { partitions })
    }

    /// Number of partitions.
    #[must_use]
    pub fn partitions(self) -> u32 {
        self.partitions
    }

    /// The partition that holds all intents of a group: murmur2 of its id, as a producer partitions by key.
    #[must_use]
    pub fn partition_for(self, group: &str) -> i32 {
        partition_for_key(group.as_bytes(), self.partitions)
    }
}

/// Names an intent: never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IntentKey {
    /// Random, one for each writer that was ever started.
    pub instance: Uuid,
    /// Counts the intents of that writer.
    pub counter: u64,
}

impl IntentKey {
    /// The record key.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut key = BytesMut::with_capacity(INTENT_KEY);
        key.put_u8(INTENT);
        key.put_slice(&self.instance.0);
        key.put_u64(self.counter);
        key.freeze()
    }
}

/// Offsets that are acknowledged with one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedRange {
    /// First offset.
    pub first: i64,
    /// Last offset, inclusive.
    pub last: i64,
    /// Only ACCEPT and REJECT can be claimed.
    pub ack: AckType,
}

/// Ranges by share-partition, ascending and without overlap.
pub type Claims = BTreeMap<TopicIdPartition, Vec<ClaimedRange>>;

/// What a transaction acknowledges for one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupClaims {
    /// `group.id`.
    pub group: Str,
    /// The group's generation when the intent was written.
    pub generation: u64,
    /// What is acknowledged.
    pub claims: Claims,
}

/// "The transaction that holds this record acknowledges these offsets."
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Of the transaction, to fence its producer with.
    pub transactional_id: Str,
    /// The transaction is ended by whoever prepared it and by nobody else (KIP-939): it must not be fenced.
    pub two_phase: bool,
    /// The acknowledgements are in the transaction itself too (KIP-1289): with its commit the brokers know of them.
    pub native: bool,
    /// By group; each once.
    pub groups: Vec<GroupClaims>,
}

/// A record of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerRecord {
    /// An intent.
    Intent(IntentKey, Intent),
    /// The intent is not needed any more.
    Tombstone(IntentKey),
    /// From here on only intents of this generation count for the group.
    Generation {
        /// `group.id`.
        group: Str,
        /// Greater than the one before.
        generation: u64,
    },
    /// From here on the group's members acknowledge natively: no transaction may be committed whose acknowledgements are in
    /// the ledger alone.
    Left {
        /// `group.id`.
        group: Str,
        /// The group's generation; it counts for no other.
        generation: u64,
    },
}

/// Why a record of the ledger cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A later release wrote it.
    #[error("it has format {0}, and this release reads up to {FORMAT_VERSION}: upgrade this application first")]
    Newer(u8),
    /// Its writer looks for groups elsewhere than this client.
    #[error(
        "its writer saw {found} partitions (hash {hash}), and here are {here} (hash {HASH_VERSION}): the number of \
         partitions of a ledger must never change; {MOVE}"
    )]
    OtherLayout {
        /// Partitions that the writer saw.
        found: u64,
        /// The writer's hash version.
        hash: u8,
        /// Partitions here.
        here: u32,
    },
    /// Somebody else's record.
    #[error("it is not of a ledger ({0}): the topic must be used for nothing else; {MOVE}")]
    Foreign(&'static str),
    /// Bytes that no writer makes.
    #[error("it is damaged ({0}); {MOVE}")]
    Damaged(&'static str),
}

/// Decoding stops at the first thing that no writer makes.
type Result<T> = std::result::Result<T, FormatError>;

impl LedgerRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// Records that are of no use, see [`FormatError`].
    pub fn decode(key: Option<&[u8]>, value: Option<&[u8]>, layout: Layout) -> Result<Self> {
        let Some((kind, rest)) = key.and_then(<[u8]>::split_first) else {
            return Err(FormatError::Foreign("no key"));
        };
        match (*kind, value) {
            (INTENT, None) => Ok(LedgerRecord::Tombstone(decode_key(rest)?)),
            (INTENT, Some(value)) => {
                let mut input = open(value, layout)?;
                let key = decode_key(rest)?;
                let intent = decode_intent(&mut input)?;
                input.finish()?;
                Ok(LedgerRecord::Intent(key, intent))
            }
            (kind @ (GENERATION | LEFT), Some(value)) => {
                let mut input = open(value, layout)?;
                let group = text(rest)?;
                let generation = input.number()?;
                input.finish()?;
                Ok(match kind {
                    GENERATION => LedgerRecord::Generation { group, generation },
                    _ => LedgerRecord::Left { group, generation },
                })
            }
            (GENERATION | LEFT, None) => Err(FormatError::Damaged("what holds for a group was deleted")),
            // A later release may have more kinds, which carry their format; anything else is somebody else's.
            (_, Some(value)) => match open(value, layout) {
                Ok(_) => Err(FormatError::Damaged("unknown kind of key")),
                Err(error) => Err(error),
            },
            (_, None) => Err(FormatError::Foreign("unknown kind of key")),
        }
    }

    /// Key and value as they are written; a value of `None` is a tombstone.
    #[must_use]
    pub fn encode(&self, layout: Layout) -> (Bytes, Option<Bytes>) {
        match self {
            LedgerRecord::Tombstone(key) => (key.encode(), None),
            LedgerRecord::Intent(key, intent) => (key.encode(), Some(encode_intent(intent, layout))),
            LedgerRecord::Generation { group, generation } => of_group(GENERATION, group, *generation, layout),
            LedgerRecord::Left { group, generation } => of_group(LEFT, group, *generation, layout),
        }
    }
}

fn of_group(kind: u8, group: &Str, generation: u64, layout: Layout) -> (Bytes, Option<Bytes>) {
    let mut key = BytesMut::with_capacity(1 + group.len());
    key.put_u8(kind);
    key.put_slice(group.as_bytes());
    let mut value = start(layout);
    encode_uvarlong(generation, &mut value);
    (key.freeze(), Some(value.freeze()))
}

fn start(layout: Layout) -> BytesMut {
    let mut value = BytesMut::with_capacity(64);
    value.put_slice(&MAGIC);
    value.put_u8(FORMAT_VERSION);
    value.put_u8(HASH_VERSION);
    encode_uvarlong(u64::from(layout.partitions), &mut value);
    value
}

/// Checks what all values start with.
fn open(value: &[u8], layout: Layout) -> Result<Input<'_>> {
    let Some(rest) = value.strip_prefix(&MAGIC) else { return Err(FormatError::Foreign("other first bytes")) };
    let mut input = Input(rest);
    match input.byte()? {
        FORMAT_VERSION => {}
        0 => return Err(FormatError::Damaged("format 0")),
        newer => return Err(FormatError::Newer(newer)),
    }
    let (hash, found) = (input.byte()?, input.number()?);
    if hash != HASH_VERSION || found != u64::from(layout.partitions) {
        return Err(FormatError::OtherLayout { found, hash, here: layout.partitions });
    }
    Ok(input)
}

fn decode_key(bytes: &[u8]) -> Result<IntentKey> {
    let (Some((instance, counter)), true) = (bytes.split_first_chunk::<16>(), bytes.len() == INTENT_KEY - 1) else {
        return Err(FormatError::Damaged("length of the key"));
    };
    let counter = counter.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Ok(IntentKey { instance: Uuid(*instance), counter })
}

fn text(bytes: &[u8]) -> Result<Str> {
    if bytes.is_empty() || bytes.len() > MAX_TEXT {
        return Err(FormatError::Damaged("length of an id"));
    }
    std::str::from_utf8(bytes).map(Str::from).map_err(|_| FormatError::Damaged("an id is not UTF-8"))
}

fn encode_intent(intent: &Intent, layout: Layout) -> Bytes {
    let mut out = start(layout);
    let flag = |on: bool, flag: u8| if on { flag } else { 0 };
    out.put_u8(flag(intent.two_phase, TWO_PHASE) | flag(intent.native, NATIVE));
    put_text(&intent.transactional_id, &mut out);
    put_count(intent.groups.len(), &mut out);
    for part in &intent.groups {
        put_text(&part.group, &mut out);
        encode_uvarlong(part.generation, &mut out);
        let mut topics: BTreeMap<Uuid, Vec<(i32, &Vec<ClaimedRange>)>> = BTreeMap::new();
        for (tp, ranges) in &part.claims {
            topics.entry(tp.topic_id).or_default().push((tp.partition, ranges));
        }
        put_count(topics.len(), &mut out);
        for (id, partitions) in topics {
            out.put_slice(&id.0);
            put_count(partitions.len(), &mut out);
            for (index, ranges) in partitions {
                encode_uvarlong(u64::from(index.unsigned_abs()), &mut out);
                put_ranges(ranges, &mut out);
            }
        }
    }
    out.freeze()
}

/// Each range as the distance to the one before, then its length less one with the type in the lowest bit.
fn put_ranges(ranges: &[ClaimedRange], out: &mut BytesMut) {
    put_count(ranges.len(), out);
    let mut next = 0;
    for range in ranges {
        encode_uvarlong(range.first.abs_diff(next), out);
        let reject = u64::from(range.ack == AckType::Reject);
        encode_uvarlong(range.last.abs_diff(range.first) << 1 | reject, out);
        next = range.last.saturating_add(1);
    }
}

fn put_text(text: &Str, out: &mut BytesMut) {
    put_count(text.len(), out);
    out.put_slice(text.as_bytes());
}

fn put_count(count: usize, out: &mut BytesMut) {
    encode_uvarlong(count as u64, out);
}

fn decode_intent(input: &mut Input<'_>) -> Result<Intent> {
    let flags = input.byte()?;
    if flags & !(TWO_PHASE | NATIVE) != 0 {
        return Err(FormatError::Damaged("unknown flags"));
    }
    let transactional_id = input.text()?;
    let mut groups: Vec<GroupClaims> = Vec::new();
    for _ in 0..input.count()? {
        let (group, generation) = (input.text()?, input.number()?);
        let mut claims = Claims::new();
        let mut topics = BTreeMap::new();
        for _ in 0..input.count()? {
            let topic_id = input.id()?;
            if topics.insert(topic_id, ()).is_some() {
                return Err(FormatError::Damaged("a topic stands twice"));
            }
            for _ in 0..input.count()? {
                let index = i32::try_from(input.number()?).map_err(|_| FormatError::Damaged("partition number"))?;
                let tp = TopicIdPartition { topic_id, partition: index };
                if claims.insert(tp, input.ranges()?).is_some() {
                    return Err(FormatError::Damaged("a partition stands twice"));
                }
            }
        }
        if groups.iter().any(|g| g.group == group) {
            return Err(FormatError::Damaged("a group stands twice"));
        }
        groups.push(GroupClaims { group, generation, claims });
    }
    let (two_phase, native) = (flags & TWO_PHASE != 0, flags & NATIVE != 0);
    Ok(Intent { transactional_id, two_phase, native, groups })
}

/// Bytes that are left.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    const SHORT: FormatError = FormatError::Damaged("it ends too early");

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Self::SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.0.split_first().ok_or(Self::SHORT)?;
        self.0 = rest;
        Ok(*byte)
    }

    fn number(&mut self) -> Result<u64> {
        let (value, rest) = decode_uvarlong(self.0).map_err(|_| FormatError::Damaged("a number"))?;
        self.0 = rest;
        Ok(value)
    }

    /// A count of things, each of which takes a byte at least: no more are announced than can be there.
    fn count(&mut self) -> Result<usize> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count == 0 || count > self.0.len() {
            return Err(FormatError::Damaged("a count"));
        }
        Ok(count)
    }

    fn text(&mut self) -> Result<Str> {
        let length = self.count()?;
        text(self.take(length)?)
    }

    fn id(&mut self) -> Result<Uuid> {
        let (id, rest) = self.0.split_first_chunk::<16>().ok_or(Self::SHORT)?;
        self.0 = rest;
        Ok(Uuid(*id))
    }

    fn ranges(&mut self) -> Result<Vec<ClaimedRange>> {
        let count = self.count()?;
        // Two bytes each at least.
        let mut ranges = Vec::with_capacity(count.min(self.0.len() / 2));
        let mut next: i64 = 0;
        for _ in 0..count {
            let far = FormatError::Damaged("an offset");
            let (distance, length) = (self.number()?, self.number()?);
            let ack = if length & 1 == 1 { AckType::Reject } else { AckType::Accept };
            let add = |to: i64, by: u64| i64::try_from(by).ok().and_then(|by| to.checked_add(by));
            let first = add(next, distance).ok_or_else(|| far.clone())?;
            let last = add(first, length >> 1).filter(|last| *last < i64::MAX).ok_or(far)?;
            ranges.push(ClaimedRange { first, last, ack });
            next = last + 1;
        }
        Ok(ranges)
    }

    fn finish(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(FormatError::Damaged("bytes are left over")) }
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
