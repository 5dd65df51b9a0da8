//! ShareGroupHeartbeatRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Joins a share group, keeps the membership alive, changes the subscription, or leaves.
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareGroupHeartbeatRequest {
    /// Name of the share group.
    pub group_id: Str,
    /// UUID the member chose for itself and keeps for its whole life.
    pub member_id: Str,
    /// 0 joins, -1 leaves, otherwise the epoch of the last answer.
    pub member_epoch: i32,
    /// Rack the member runs in; null if it has none or nothing changed.
    pub rack_id: Option<Str>,
    /// Topics wanted; null leaves the subscription as it is.
    pub subscribed_topic_names: Option<Vec<Str>>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ShareGroupHeartbeatRequest {
    fn default() -> Self {
        Self {
            group_id: Str::default(),
            member_id: Str::default(),
            member_epoch: 0,
            rack_id: None,
            subscribed_topic_names: None,
            tagged: TaggedFields::new(),
        }
    }
}

impl ShareGroupHeartbeatRequest {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_id = r.string(true)?;
        this.member_id = r.string(true)?;
        this.member_epoch = r.i32()?;
        this.rack_id = r.nullable_string(true)?;
        this.subscribed_topic_names = r.nullable_array(true, 1, |r| r.string(true))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.group_id, true)?;
        w.string(&self.member_id, true)?;
        w.i32(self.member_epoch);
        match &self.rack_id {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        match &self.subscribed_topic_names {
            Some(value) => {
                w.array_len(value.len(), true)?;
                for item in value {
                    w.string(item, true)?;
                }
            }
            None => {
                w.null_array(true);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ShareGroupHeartbeatRequest {
    const NAME: &'static str = "ShareGroupHeartbeatRequest";
    const MIN_VERSION: i16 = 1;
    const MAX_VERSION: i16 = 1;
    const FLEXIBLE_FROM: i16 = 1;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for ShareGroupHeartbeatRequest {
    type Response = super::share_group_heartbeat_response::ShareGroupHeartbeatResponse;
    const KEY: crate::ApiKey = crate::ApiKey(76);
}
