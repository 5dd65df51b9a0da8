//! Kafka request and response types generated from `protocol-specs/`, with API keys and error codes.
//!
//! Types are plain structs; strings and byte fields share the memory of the frame they were decoded from.
//! [`Message::decode`] and [`Message::encode`] take the version. [`frame`] adds headers and the size prefix.

mod api;
mod error_code;
pub mod frame;
#[expect(
    clippy::collapsible_if,
    clippy::derivable_impls,
    clippy::field_reassign_with_default,
    clippy::nonminimal_bool,
    clippy::too_many_lines,
    reason = "generated code is regular, not idiomatic"
)]
mod r#gen;

pub use api::{ApiInfo, ApiKey};
pub use error_code::ErrorCode;
pub use r#gen::*;

use bytes::Bytes;
use kafka_share_wire::{ErrorKind, Reader, Result, Writer};

/// A request, a response or a header.
pub trait Message: Sized {
    /// Name, as in the specs.
    const NAME: &'static str;
    /// Lowest version.
    const MIN_VERSION: i16;
    /// Highest version.
    const MAX_VERSION: i16;
    /// First flexible version (KIP-482); `i16::MAX` where there is none.
    const FLEXIBLE_FROM: i16;

    /// Decodes from the front of `r`. The caller checks with [`Reader::finish`] that nothing follows.
    ///
    /// # Errors
    /// Unknown versions and bytes that break the format; never panics, whatever the bytes.
    fn decode(r: &mut Reader, version: i16) -> Result<Self>;

    /// Encodes.
    ///
    /// # Errors
    /// Unknown versions, values that the version cannot carry, strings over 32,767 bytes.
    fn encode(&self, w: &mut Writer, version: i16) -> Result<()>;

    /// How long the broker asks the client to stay quiet, in milliseconds; 0 for messages without that field.
    fn throttle_time_ms(&self) -> i32 {
        0
    }

    /// Decodes a whole body.
    ///
    /// # Errors
    /// As [`Message::decode`], and bytes that are left over.
    fn decode_all(body: Bytes, version: i16) -> Result<Self> {
        let mut r = Reader::new(body);
        let message = Self::decode(&mut r, version)?;
        r.finish()?;
        Ok(message)
    }

    /// Encodes into one piece of memory.
    ///
    /// # Errors
    /// As [`Message::encode`].
    fn to_bytes(&self, version: i16) -> Result<Bytes> {
        let mut w = Writer::new();
        self.encode(&mut w, version)?;
        Ok(w.into_bytes())
    }

    /// Checks that the message has this version.
    ///
    /// # Errors
    /// Where it has not.
    fn check_version(version: i16) -> Result<()> {
        if (Self::MIN_VERSION..=Self::MAX_VERSION).contains(&version) {
            return Ok(());
        }
        let (min, max) = (Self::MIN_VERSION, Self::MAX_VERSION);
        Err(ErrorKind::UnsupportedVersion { message: Self::NAME, version, min, max }.at(0))
    }
}

/// A request, with the response it is answered by.
pub trait Request: Message {
    /// What answers it.
    type Response: Message;
    /// Its API key.
    const KEY: ApiKey;
}

pub(crate) fn reencode<M: Message>(version: i16, body: Bytes) -> Result<Vec<u8>> {
    Ok(M::decode_all(body, version)?.to_bytes(version)?.to_vec())
}
