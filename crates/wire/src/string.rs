//! `Str`: an immutable UTF-8 string that shares the memory of the frame it was decoded from.

use bytes::Bytes;
use bytestring::ByteString;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// A cheaply cloned string; cloning counts a reference, slicing a frame into it copies nothing.
#[derive(Clone, Default)]
pub struct Str(ByteString);

impl Str {
    /// A string that lives as long as the program; allocates nothing.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Str(ByteString::from_static(text))
    }

    /// Checks UTF-8 and shares `bytes`.
    ///
    /// # Errors
    /// Where `bytes` is not UTF-8.
    pub fn from_utf8(bytes: Bytes) -> Result<Self, std::str::Utf8Error> {
        ByteString::try_from(bytes).map(Str)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes of the text.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        self.0.as_bytes()
    }

    /// A copy that does not keep the frame it came from in memory.
    #[must_use]
    pub fn detached(&self) -> Self {
        Str::from(self.as_str())
    }
}

impl Deref for Str {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Str(ByteString::from(text))
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Str(ByteString::from(text))
    }
}

impl From<&String> for Str {
    fn from(text: &String) -> Self {
        Str::from(text.as_str())
    }
}

impl From<Str> for String {
    fn from(text: Str) -> Self {
        text.as_str().to_owned()
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Str {}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

// Equal to the hash of the `str`, as `Borrow<str>` demands.
impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn looks_up_by_str() {
        let mut map = HashMap::new();
        map.insert(Str::from("orders"), 1);
        assert_eq!(map.get("orders"), Some(&1));
        assert_eq!(Str::from_static("a"), "a");
    }

    #[test]
    fn refuses_bad_utf8() {
        assert!(Str::from_utf8(Bytes::from_static(b"\xff")).is_err());
    }
}
