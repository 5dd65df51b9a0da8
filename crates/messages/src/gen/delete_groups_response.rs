//! DeleteGroupsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Reports the outcome for each group to delete.
///
/// Versions 0-3.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteGroupsResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `Results`
    pub results: Vec<DeletableGroupResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteGroupsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, results: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DeleteGroupsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.results = r.array(version >= 2, 4, |r| DeletableGroupResult::read(r, version))?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.results.len(), version >= 2)?;
        for item in &self.results {
            item.write(w, version)?;
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DeleteGroupsResponse`].
///
/// Versions 0-3.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletableGroupResult {
    /// `GroupId`
    pub group_id: Str,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ErrorMessage` (versions 3)
    pub error_message: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeletableGroupResult {
    fn default() -> Self {
        Self { group_id: Str::default(), error_code: ErrorCode::NONE, error_message: None, tagged: TaggedFields::new() }
    }
}

impl DeletableGroupResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_id = r.string(version >= 2)?;
        this.error_code = r.i16().map(ErrorCode)?;
        if version >= 3 {
            this.error_message = r.nullable_string(true)?;
        }
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.group_id, version >= 2)?;
        w.i16(self.error_code.0);
        if version >= 3 {
            match &self.error_message {
                Some(value) => {
                    w.string(value, true)?;
                }
                None => {
                    w.null_string(true);
                }
            }
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for DeleteGroupsResponse {
    const NAME: &'static str = "DeleteGroupsResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 3;
    const FLEXIBLE_FROM: i16 = 2;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
