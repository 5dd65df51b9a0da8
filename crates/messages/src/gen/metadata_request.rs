//! MetadataRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Asks for the brokers of the cluster and for the leaders of topics, by name or by id.
///
/// Versions 0-13.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataRequest {
    /// `Topics` (null only in versions 1-13)
    pub topics: Option<Vec<MetadataRequestTopic>>,
    /// `AllowAutoTopicCreation` (versions 4-13)
    pub allow_auto_topic_creation: bool,
    /// `IncludeClusterAuthorizedOperations` (versions 8-10)
    pub include_cluster_authorized_operations: bool,
    /// `IncludeTopicAuthorizedOperations` (versions 8-13)
    pub include_topic_authorized_operations: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for MetadataRequest {
    fn default() -> Self {
        Self {
            topics: Some(Vec::new()),
            allow_auto_topic_creation: true,
            include_cluster_authorized_operations: false,
            include_topic_authorized_operations: false,
            tagged: TaggedFields::new(),
        }
    }
}

impl MetadataRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topics = if version >= 1 {
            r.nullable_array(version >= 9, 2, |r| MetadataRequestTopic::read(r, version))?
        } else {
            Some(r.array(version >= 9, 2, |r| MetadataRequestTopic::read(r, version))?)
        };
        if version >= 4 {
            this.allow_auto_topic_creation = r.bool()?;
        }
        if (8..=10).contains(&version) {
            this.include_cluster_authorized_operations = r.bool()?;
        }
        if version >= 8 {
            this.include_topic_authorized_operations = r.bool()?;
        }
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        match &self.topics {
            Some(value) => {
                w.array_len(value.len(), version >= 9)?;
                for item in value {
                    item.write(w, version)?;
                }
            }
            None => {
                if version >= 1 {
                    w.null_array(version >= 9)
                } else {
                    return Err(ErrorKind::UnexpectedNull.at(w.len()));
                };
            }
        }
        if version >= 4 {
            w.bool(self.allow_auto_topic_creation);
        } else {
            if !self.allow_auto_topic_creation {
                return Err(ErrorKind::FieldNotInVersion { field: "MetadataRequest.AllowAutoTopicCreation", version }
                    .at(w.len()));
            }
        }
        if (8..=10).contains(&version) {
            w.bool(self.include_cluster_authorized_operations);
        } else {
            if self.include_cluster_authorized_operations {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "MetadataRequest.IncludeClusterAuthorizedOperations",
                    version,
                }
                .at(w.len()));
            }
        }
        if version >= 8 {
            w.bool(self.include_topic_authorized_operations);
        } else {
            if self.include_topic_authorized_operations {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "MetadataRequest.IncludeTopicAuthorizedOperations",
                    version,
                }
                .at(w.len()));
            }
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`MetadataRequest`].
///
/// Versions 0-13.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataRequestTopic {
    /// `TopicId` (versions 10-13)
    pub topic_id: Uuid,
    /// `Name` (null only in versions 10-13)
    pub name: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for MetadataRequestTopic {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, name: Some(Str::default()), tagged: TaggedFields::new() }
    }
}

impl MetadataRequestTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 10 {
            this.topic_id = r.uuid()?;
        }
        this.name = if version >= 10 { r.nullable_string(version >= 9)? } else { Some(r.string(version >= 9)?) };
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 10 {
            w.uuid(self.topic_id);
        }
        match &self.name {
            Some(value) => {
                w.string(value, version >= 9)?;
            }
            None => {
                if version >= 10 {
                    w.null_string(version >= 9)
                } else {
                    return Err(ErrorKind::UnexpectedNull.at(w.len()));
                };
            }
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for MetadataRequest {
    const NAME: &'static str = "MetadataRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 13;
    const FLEXIBLE_FROM: i16 = 9;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for MetadataRequest {
    type Response = super::metadata_response::MetadataResponse;
    const KEY: crate::ApiKey = crate::ApiKey(3);
}
