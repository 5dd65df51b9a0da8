//! Kafka wire primitives: readers and writers, tagged fields, frames, record batches, compression.
//!
//! Everything here works on bytes that are already in memory. Nothing opens a socket, reads a clock or trusts a
//! count that a peer sent: lengths are compared with the bytes that are left before anything is allocated.

pub mod compression;
pub mod error;
pub mod frame;
pub mod reader;
pub mod records;
pub mod string;
pub mod tagged;
pub mod uuid;
pub mod varint;
pub mod writer;

pub use error::{Error, ErrorKind, Result};
pub use frame::{Frame, FrameDecoder, FrameError};
pub use reader::Reader;
pub use string::Str;
pub use tagged::TaggedFields;
pub use uuid::Uuid;
pub use writer::Writer;
