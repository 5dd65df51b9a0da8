//! CreatePartitionsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Raises the number of partitions of topics.
///
/// Versions 0-3.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePartitionsRequest {
    /// `Topics`
    pub topics: Vec<CreatePartitionsTopic>,
    /// `TimeoutMs`
    pub timeout_ms: i32,
    /// `ValidateOnly`
    pub validate_only: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatePartitionsRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), timeout_ms: 0, validate_only: false, tagged: TaggedFields::new() }
    }
}

impl CreatePartitionsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topics = r.array(version >= 2, 7, |r| CreatePartitionsTopic::read(r, version))?;
        this.timeout_ms = r.i32()?;
        this.validate_only = r.bool()?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.topics.len(), version >= 2)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        w.i32(self.timeout_ms);
        w.bool(self.validate_only);
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`CreatePartitionsRequest`].
///
/// Versions 0-3.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePartitionsTopic {
    /// `Name`
    pub name: Str,
    /// `Count`
    pub count: i32,
    /// `Assignments`
    pub assignments: Option<Vec<CreatePartitionsAssignment>>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatePartitionsTopic {
    fn default() -> Self {
        Self { name: Str::default(), count: 0, assignments: Some(Vec::new()), tagged: TaggedFields::new() }
    }
}

impl CreatePartitionsTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 2)?;
        this.count = r.i32()?;
        this.assignments = r.nullable_array(version >= 2, 2, |r| CreatePartitionsAssignment::read(r, version))?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 2)?;
        w.i32(self.count);
        match &self.assignments {
            Some(value) => {
                w.array_len(value.len(), version >= 2)?;
                for item in value {
                    item.write(w, version)?;
                }
            }
            None => {
                w.null_array(version >= 2);
            }
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`CreatePartitionsRequest`].
///
/// Versions 0-3.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePartitionsAssignment {
    /// `BrokerIds`
    pub broker_ids: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatePartitionsAssignment {
    fn default() -> Self {
        Self { broker_ids: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl CreatePartitionsAssignment {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.broker_ids = r.array(version >= 2, 4, |r| r.i32())?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.broker_ids.len(), version >= 2)?;
        for item in &self.broker_ids {
            w.i32(*item);
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for CreatePartitionsRequest {
    const NAME: &'static str = "CreatePartitionsRequest";
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
}

impl Request for CreatePartitionsRequest {
    type Response = super::create_partitions_response::CreatePartitionsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(37);
}
