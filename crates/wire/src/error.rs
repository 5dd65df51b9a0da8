//! What can be wrong with bytes that claim to be a Kafka message, or with a message that cannot be written.

/// Result of a decode or an encode.
pub type Result<T> = std::result::Result<T, Error>;

/// A message that cannot be decoded or encoded: the rule that was broken, and the byte at which it was noticed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (at byte {at})")]
pub struct Error {
    /// The broken rule.
    pub kind: ErrorKind,
    /// Offset in the frame body (decode) or in what had been written (encode).
    pub at: usize,
}

/// The rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The frame ended inside a value.
    #[error("message ends early: {wanted} bytes wanted, {left} left")]
    UnexpectedEnd {
        /// Bytes that the value needs.
        wanted: usize,
        /// Bytes that were left.
        left: usize,
    },
    /// A length field is negative (other than -1 for null) or beyond what its type may hold.
    #[error("length {0} is out of range")]
    InvalidLength(i64),
    /// An array claims more elements than the remaining bytes can hold.
    #[error("array claims {count} elements of at least {min_size} bytes, {left} bytes left")]
    CountTooLarge {
        /// Claimed number of elements.
        count: usize,
        /// Fewest bytes one element takes.
        min_size: usize,
        /// Bytes that were left.
        left: usize,
    },
    /// A varint runs past its longest form.
    #[error("varint is longer than its type allows")]
    VarintTooLong,
    /// A string is not UTF-8.
    #[error("string is not valid UTF-8")]
    InvalidUtf8,
    /// Null where the version does not allow it.
    #[error("null is not allowed here in this version")]
    UnexpectedNull,
    /// The marker before a nullable struct is neither -1 nor 1.
    #[error("marker {0} before a nullable struct is neither -1 nor 1")]
    InvalidStructMarker(i8),
    /// Tags must ascend within a struct (KIP-482).
    #[error("tagged field {tag} follows tag {previous}")]
    TagOrder {
        /// The offending tag.
        tag: u32,
        /// The tag before it.
        previous: u32,
    },
    /// A tagged field's size does not match its content.
    #[error("tagged field {tag} has {left} bytes after its content")]
    TagTrailing {
        /// The offending tag.
        tag: u32,
        /// Bytes that its content did not use.
        left: usize,
    },
    /// Bytes after the end of the message.
    #[error("{0} bytes after the end of the message")]
    TrailingBytes(usize),
    /// The message has no such version.
    #[error("{message} has no version {version} here (known: {min} to {max})")]
    UnsupportedVersion {
        /// Name of the message.
        message: &'static str,
        /// The version asked for.
        version: i16,
        /// Lowest known version.
        min: i16,
        /// Highest known version.
        max: i16,
    },
    /// No message has this API key.
    #[error("API key {0} is not known here")]
    UnknownApiKey(i16),
    /// A field holds a value that the chosen version cannot carry.
    #[error("{field} is set, but version {version} cannot carry it")]
    FieldNotInVersion {
        /// `Message.Field`.
        field: &'static str,
        /// The chosen version.
        version: i16,
    },
    /// A string, byte field or array is too long for its length prefix.
    #[error("value of {0} bytes is too long for its field")]
    TooLong(usize),
}

impl ErrorKind {
    /// Attaches the position.
    #[must_use]
    pub fn at(self, at: usize) -> Error {
        Error { kind: self, at }
    }
}
