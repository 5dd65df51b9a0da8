//! ListGroupsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Names the groups with their protocol type, state and kind.
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct ListGroupsResponse {
    /// `ThrottleTimeMs` (versions 1-5)
    pub throttle_time_ms: i32,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `Groups`
    pub groups: Vec<ListedGroup>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListGroupsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, error_code: ErrorCode::NONE, groups: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ListGroupsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 1 {
            this.throttle_time_ms = r.i32()?;
        }
        this.error_code = r.i16().map(ErrorCode)?;
        this.groups = r.array(version >= 3, 3, |r| ListedGroup::read(r, version))?;
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 1 {
            w.i32(self.throttle_time_ms);
        }
        w.i16(self.error_code.0);
        w.array_len(self.groups.len(), version >= 3)?;
        for item in &self.groups {
            item.write(w, version)?;
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`ListGroupsResponse`].
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedGroup {
    /// `GroupId`
    pub group_id: Str,
    /// `ProtocolType`
    pub protocol_type: Str,
    /// `GroupState` (versions 4-5)
    pub group_state: Str,
    /// `GroupType` (versions 5)
    pub group_type: Str,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListedGroup {
    fn default() -> Self {
        Self {
            group_id: Str::default(),
            protocol_type: Str::default(),
            group_state: Str::default(),
            group_type: Str::default(),
            tagged: TaggedFields::new(),
        }
    }
}

impl ListedGroup {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_id = r.string(version >= 3)?;
        this.protocol_type = r.string(version >= 3)?;
        if version >= 4 {
            this.group_state = r.string(true)?;
        }
        if version >= 5 {
            this.group_type = r.string(true)?;
        }
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.group_id, version >= 3)?;
        w.string(&self.protocol_type, version >= 3)?;
        if version >= 4 {
            w.string(&self.group_state, true)?;
        }
        if version >= 5 {
            w.string(&self.group_type, true)?;
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for ListGroupsResponse {
    const NAME: &'static str = "ListGroupsResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 5;
    const FLEXIBLE_FROM: i16 = 3;

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
