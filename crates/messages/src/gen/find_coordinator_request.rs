//! FindCoordinatorRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Asks which broker coordinates a group, a transactional id or a share-partition's state.
///
/// Versions 0-6.
#[derive(Debug, Clone, PartialEq)]
pub struct FindCoordinatorRequest {
    /// `Key` (versions 0-3)
    pub key: Str,
    /// `KeyType` (versions 1-6)
    pub key_type: i8,
    /// `CoordinatorKeys` (versions 4-6)
    pub coordinator_keys: Vec<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FindCoordinatorRequest {
    fn default() -> Self {
        Self { key: Str::default(), key_type: 0, coordinator_keys: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl FindCoordinatorRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version <= 3 {
            this.key = r.string(version >= 3)?;
        }
        if version >= 1 {
            this.key_type = r.i8()?;
        }
        if version >= 4 {
            this.coordinator_keys = r.array(true, 1, |r| r.string(true))?;
        }
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version <= 3 {
            w.string(&self.key, version >= 3)?;
        } else {
            if !self.key.is_empty() {
                return Err(ErrorKind::FieldNotInVersion { field: "FindCoordinatorRequest.Key", version }.at(w.len()));
            }
        }
        if version >= 1 {
            w.i8(self.key_type);
        } else {
            if self.key_type != 0 {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "FindCoordinatorRequest.KeyType", version }.at(w.len())
                );
            }
        }
        if version >= 4 {
            w.array_len(self.coordinator_keys.len(), true)?;
            for item in &self.coordinator_keys {
                w.string(item, true)?;
            }
        } else {
            if !self.coordinator_keys.is_empty() {
                return Err(ErrorKind::FieldNotInVersion { field: "FindCoordinatorRequest.CoordinatorKeys", version }
                    .at(w.len()));
            }
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for FindCoordinatorRequest {
    const NAME: &'static str = "FindCoordinatorRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 6;
    const FLEXIBLE_FROM: i16 = 3;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for FindCoordinatorRequest {
    type Response = super::find_coordinator_response::FindCoordinatorResponse;
    const KEY: crate::ApiKey = crate::ApiKey(10);
}
