//! DescribeClusterResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Describes the cluster: id, controller and nodes.
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeClusterResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ErrorMessage`
    pub error_message: Option<Str>,
    /// `EndpointType` (versions 1-2)
    pub endpoint_type: i8,
    /// `ClusterId`
    pub cluster_id: Str,
    /// `ControllerId`
    pub controller_id: i32,
    /// `Brokers`
    pub brokers: Vec<DescribeClusterBroker>,
    /// `ClusterAuthorizedOperations`
    pub cluster_authorized_operations: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeClusterResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            error_message: None,
            endpoint_type: 1,
            cluster_id: Str::default(),
            controller_id: -1,
            brokers: Vec::new(),
            cluster_authorized_operations: i32::MIN,
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeClusterResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        if version >= 1 {
            this.endpoint_type = r.i8()?;
        }
        this.cluster_id = r.string(true)?;
        this.controller_id = r.i32()?;
        this.brokers = r.array(true, 11, |r| DescribeClusterBroker::read(r, version))?;
        this.cluster_authorized_operations = r.i32()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        if version >= 1 {
            w.i8(self.endpoint_type);
        } else {
            if self.endpoint_type != 1 {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "DescribeClusterResponse.EndpointType", version }.at(w.len())
                );
            }
        }
        w.string(&self.cluster_id, true)?;
        w.i32(self.controller_id);
        w.array_len(self.brokers.len(), true)?;
        for item in &self.brokers {
            item.write(w, version)?;
        }
        w.i32(self.cluster_authorized_operations);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`DescribeClusterResponse`].
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeClusterBroker {
    /// `BrokerId`
    pub broker_id: i32,
    /// `Host`
    pub host: Str,
    /// `Port`
    pub port: i32,
    /// `Rack`
    pub rack: Option<Str>,
    /// `IsFenced` (versions 2)
    pub is_fenced: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeClusterBroker {
    fn default() -> Self {
        Self { broker_id: 0, host: Str::default(), port: 0, rack: None, is_fenced: false, tagged: TaggedFields::new() }
    }
}

impl DescribeClusterBroker {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.broker_id = r.i32()?;
        this.host = r.string(true)?;
        this.port = r.i32()?;
        this.rack = r.nullable_string(true)?;
        if version >= 2 {
            this.is_fenced = r.bool()?;
        }
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.broker_id);
        w.string(&self.host, true)?;
        w.i32(self.port);
        match &self.rack {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        if version >= 2 {
            w.bool(self.is_fenced);
        } else {
            if self.is_fenced {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "DescribeClusterBroker.IsFenced", version }.at(w.len())
                );
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeClusterResponse {
    const NAME: &'static str = "DescribeClusterResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 2;
    const FLEXIBLE_FROM: i16 = 0;

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
