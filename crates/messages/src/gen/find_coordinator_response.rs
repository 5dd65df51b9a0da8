//! FindCoordinatorResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Names the coordinating broker for each key.
///
/// Versions 0-6.
#[derive(Debug, Clone, PartialEq)]
pub struct FindCoordinatorResponse {
    /// `ThrottleTimeMs` (versions 1-6)
    pub throttle_time_ms: i32,
    /// `ErrorCode` (versions 0-3)
    pub error_code: ErrorCode,
    /// `ErrorMessage` (versions 1-3)
    pub error_message: Option<Str>,
    /// `NodeId` (versions 0-3)
    pub node_id: i32,
    /// `Host` (versions 0-3)
    pub host: Str,
    /// `Port` (versions 0-3)
    pub port: i32,
    /// `Coordinators` (versions 4-6)
    pub coordinators: Vec<Coordinator>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FindCoordinatorResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            error_message: Some(Str::default()),
            node_id: 0,
            host: Str::default(),
            port: 0,
            coordinators: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl FindCoordinatorResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 1 {
            this.throttle_time_ms = r.i32()?;
        }
        if version <= 3 {
            this.error_code = r.i16().map(ErrorCode)?;
        }
        if (1..=3).contains(&version) {
            this.error_message = r.nullable_string(version >= 3)?;
        }
        if version <= 3 {
            this.node_id = r.i32()?;
        }
        if version <= 3 {
            this.host = r.string(version >= 3)?;
        }
        if version <= 3 {
            this.port = r.i32()?;
        }
        if version >= 4 {
            this.coordinators = r.array(true, 14, |r| Coordinator::read(r, version))?;
        }
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 1 {
            w.i32(self.throttle_time_ms);
        }
        if version <= 3 {
            w.i16(self.error_code.0);
        } else {
            if self.error_code != ErrorCode::NONE {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "FindCoordinatorResponse.ErrorCode", version }.at(w.len())
                );
            }
        }
        if (1..=3).contains(&version) {
            match &self.error_message {
                Some(value) => {
                    w.string(value, version >= 3)?;
                }
                None => {
                    w.null_string(version >= 3);
                }
            }
        }
        if version <= 3 {
            w.i32(self.node_id);
        } else {
            if self.node_id != 0 {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "FindCoordinatorResponse.NodeId", version }.at(w.len())
                );
            }
        }
        if version <= 3 {
            w.string(&self.host, version >= 3)?;
        } else {
            if !self.host.is_empty() {
                return Err(ErrorKind::FieldNotInVersion { field: "FindCoordinatorResponse.Host", version }.at(w.len()));
            }
        }
        if version <= 3 {
            w.i32(self.port);
        } else {
            if self.port != 0 {
                return Err(ErrorKind::FieldNotInVersion { field: "FindCoordinatorResponse.Port", version }.at(w.len()));
            }
        }
        if version >= 4 {
            w.array_len(self.coordinators.len(), true)?;
            for item in &self.coordinators {
                item.write(w, version)?;
            }
        } else {
            if !self.coordinators.is_empty() {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "FindCoordinatorResponse.Coordinators", version }.at(w.len())
                );
            }
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`FindCoordinatorResponse`].
///
/// Versions 4-6.
#[derive(Debug, Clone, PartialEq)]
pub struct Coordinator {
    /// `Key` (versions 4-6)
    pub key: Str,
    /// `NodeId` (versions 4-6)
    pub node_id: i32,
    /// `Host` (versions 4-6)
    pub host: Str,
    /// `Port` (versions 4-6)
    pub port: i32,
    /// `ErrorCode` (versions 4-6)
    pub error_code: ErrorCode,
    /// `ErrorMessage` (versions 4-6)
    pub error_message: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for Coordinator {
    fn default() -> Self {
        Self {
            key: Str::default(),
            node_id: 0,
            host: Str::default(),
            port: 0,
            error_code: ErrorCode::NONE,
            error_message: Some(Str::default()),
            tagged: TaggedFields::new(),
        }
    }
}

impl Coordinator {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.key = r.string(true)?;
        this.node_id = r.i32()?;
        this.host = r.string(true)?;
        this.port = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.key, true)?;
        w.i32(self.node_id);
        w.string(&self.host, true)?;
        w.i32(self.port);
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for FindCoordinatorResponse {
    const NAME: &'static str = "FindCoordinatorResponse";
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

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
