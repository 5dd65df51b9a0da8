//! The journal's frames: one for all changes that belong together, so that a crash keeps all of them or none.
//!
//! A frame is a magic number, the payload's length and CRC-32C, and the CRC-32C of these three; then the payload, a list
//! of entries. What a crash leaves of the last frame is told from damage: it is cut short, or its end was never written.

use super::{Decoder, Encoder, Key, LogId};
use bytes::Bytes;

const MAGIC: [u8; 4] = *b"KSJ1";
const HEADER: usize = 16;
/// The least that file systems give to a file.
const BLOCK: u64 = 512;

/// Where a log's batches are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogFile {
    /// Raised with each new file.
    pub(super) generation: u32,
    /// Bytes of the file that count; what follows was never acknowledged.
    pub(super) len: u64,
}

/// A change, as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    Value(Key, Option<Bytes>),
    Log(LogId, Option<LogFile>),
}

/// A frame of these entries.
pub(super) fn encode<'a>(entries: impl ExactSizeIterator<Item = &'a Entry>) -> Vec<u8> {
    let mut out = Encoder::default();
    out.list(entries, |out, entry| match entry {
        Entry::Value(key, value) => {
            out.i8(0).bytes(&key.encode()).optional(value.as_ref(), |out, value| {
                out.bytes(value);
            });
        }
        Entry::Log((topic, partition), file) => {
            out.i8(1).uuid(*topic).i32(*partition).optional(file.as_ref(), |out, file| {
                out.i32(file.generation as i32).i64(file.len as i64);
            });
        }
    });
    let payload = out.finish();
    let mut frame = Vec::with_capacity(HEADER + payload.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    frame.extend_from_slice(&crc32c::crc32c(&payload).to_be_bytes());
    let check = crc32c::crc32c(&frame);
    frame.extend_from_slice(&check.to_be_bytes());
    frame.extend_from_slice(&payload);
    frame
}

/// What [`next`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Entries and the frame's length.
    Frame(Vec<Entry>, usize),
    /// The end.
    End,
    /// The rest of a frame whose writing was interrupted.
    Torn,
    /// Damage, with a reason.
    Corrupt(String),
}

/// Whether the last block of what ends a file, and is there from `position` on, was never filled. A process that dies leaves
/// a short file; only where the power goes can a file have its length without its content.
fn is_unfilled(payload: &[u8], position: u64) -> bool {
    let end = position + payload.len() as u64;
    let block = (end.saturating_sub(1) / BLOCK * BLOCK).min(end.saturating_sub(8)).max(position);
    payload[(block - position) as usize..].iter().all(|byte| *byte == 0)
}

/// The first frame of `bytes`, which are a file's from `position` on.
pub(super) fn next(bytes: &Bytes, position: u64) -> Next {
    if bytes.is_empty() {
        return Next::End;
    }
    // Blocks that a file system had given to the file but not filled when the power went.
    if bytes.len() < HEADER || bytes.iter().all(|byte| *byte == 0) {
        return Next::Torn;
    }
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if bytes[..4] != MAGIC || crc32c::crc32c(&bytes[..12]) != word(12) {
        return Next::Corrupt("this is not the head of a frame".into());
    }
    let end = HEADER + word(4) as usize;
    if bytes.len() < end {
        return Next::Torn;
    }
    let payload = bytes.slice(HEADER..end);
    if crc32c::crc32c(&payload) != word(8) {
        let torn = bytes.len() == end && is_unfilled(&bytes[HEADER..], position + HEADER as u64);
        return if torn { Next::Torn } else { Next::Corrupt("the frame's checksum does not match".into()) };
    }
    match entries(payload) {
        Ok(entries) => Next::Frame(entries, end),
        Err(why) => Next::Corrupt(why),
    }
}

fn entries(payload: Bytes) -> Result<Vec<Entry>, String> {
    let mut input = Decoder::new(payload);
    let entry = |input: &mut Decoder| {
        Ok(match input.i8()? {
            0 => {
                let key = Key::decode(&input.bytes()?);
                let value = input.optional(Decoder::bytes)?;
                key.map(|key| Entry::Value(key, value))
            }
            1 => {
                let id = (input.uuid()?, input.i32()?);
                let file = input
                    .optional(|input| Ok(LogFile { generation: input.i32()? as u32, len: input.i64()? as u64 }))?;
                Some(Entry::Log(id, file))
            }
            _ => None,
        })
    };
    let all: Vec<Option<Entry>> = input.list(entry).map_err(|error| error.to_string())?;
    input.finish().map_err(|error| error.to_string())?;
    all.into_iter().collect::<Option<_>>().ok_or_else(|| "an entry of a kind that is not known".into())
}
