//! Passwords, tokens and keys: kept, compared, handed on, and never shown.

use std::fmt;
use std::sync::Arc;

/// A value that is not shown. Cloning shares it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Arc<[u8]>);

impl Secret {
    pub(crate) fn new(value: impl AsRef<[u8]>) -> Self {
        Secret(value.as_ref().into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}
