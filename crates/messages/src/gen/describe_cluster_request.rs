//! DescribeClusterRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, TaggedFields, Writer};

/// Asks for the cluster's id, its nodes and what the caller may do with it.
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeClusterRequest {
    /// `IncludeClusterAuthorizedOperations`
    pub include_cluster_authorized_operations: bool,
    /// `EndpointType` (versions 1-2)
    pub endpoint_type: i8,
    /// `IncludeFencedBrokers` (versions 2)
    pub include_fenced_brokers: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeClusterRequest {
    fn default() -> Self {
        Self {
            include_cluster_authorized_operations: false,
            endpoint_type: 1,
            include_fenced_brokers: false,
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeClusterRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.include_cluster_authorized_operations = r.bool()?;
        if version >= 1 {
            this.endpoint_type = r.i8()?;
        }
        if version >= 2 {
            this.include_fenced_brokers = r.bool()?;
        }
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.bool(self.include_cluster_authorized_operations);
        if version >= 1 {
            w.i8(self.endpoint_type);
        } else {
            if self.endpoint_type != 1 {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "DescribeClusterRequest.EndpointType", version }.at(w.len())
                );
            }
        }
        if version >= 2 {
            w.bool(self.include_fenced_brokers);
        } else {
            if self.include_fenced_brokers {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "DescribeClusterRequest.IncludeFencedBrokers",
                    version,
                }
                .at(w.len()));
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeClusterRequest {
    const NAME: &'static str = "DescribeClusterRequest";
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
}

impl Request for DescribeClusterRequest {
    type Response = super::describe_cluster_response::DescribeClusterResponse;
    const KEY: crate::ApiKey = crate::ApiKey(60);
}
