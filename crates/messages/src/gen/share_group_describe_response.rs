//! ShareGroupDescribeResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Describes share groups with their state, epochs, members and assignments.
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareGroupDescribeResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// One entry for each group asked about.
    pub groups: Vec<DescribedGroup>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ShareGroupDescribeResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, groups: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ShareGroupDescribeResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.groups = r.array(true, 20, |r| DescribedGroup::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.groups.len(), true)?;
        for item in &self.groups {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// One entry for each group asked about.
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribedGroup {
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// Name of the share group.
    pub group_id: Str,
    /// Name of the group's state, such as Empty, Stable or Dead.
    pub group_state: Str,
    /// Raised when members or subscriptions change.
    pub group_epoch: i32,
    /// Group epoch the present assignment was worked out for.
    pub assignment_epoch: i32,
    /// Assignor that works out the assignment.
    pub assignor_name: Str,
    /// Members of the group.
    pub members: Vec<Member>,
    /// Bit set of operations the caller may do on the group, smallest i32 when not asked for.
    pub authorized_operations: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribedGroup {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            error_message: None,
            group_id: Str::default(),
            group_state: Str::default(),
            group_epoch: 0,
            assignment_epoch: 0,
            assignor_name: Str::default(),
            members: Vec::new(),
            authorized_operations: i32::MIN,
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribedGroup {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.group_id = r.string(true)?;
        this.group_state = r.string(true)?;
        this.group_epoch = r.i32()?;
        this.assignment_epoch = r.i32()?;
        this.assignor_name = r.string(true)?;
        this.members = r.array(true, 12, |r| Member::read(r, version))?;
        this.authorized_operations = r.i32()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        w.string(&self.group_id, true)?;
        w.string(&self.group_state, true)?;
        w.i32(self.group_epoch);
        w.i32(self.assignment_epoch);
        w.string(&self.assignor_name, true)?;
        w.array_len(self.members.len(), true)?;
        for item in &self.members {
            item.write(w, version)?;
        }
        w.i32(self.authorized_operations);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Members of the group.
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// UUID the member chose for itself and keeps for its whole life.
    pub member_id: Str,
    /// Rack the member runs in.
    pub rack_id: Option<Str>,
    /// Epoch of the membership, raised by the coordinator at each change.
    pub member_epoch: i32,
    /// Client id of the member's heartbeats.
    pub client_id: Str,
    /// Address the member's heartbeats come from.
    pub client_host: Str,
    /// Names of the topics subscribed to.
    pub subscribed_topic_names: Vec<Str>,
    /// What the member is to fetch from.
    pub assignment: Assignment,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for Member {
    fn default() -> Self {
        Self {
            member_id: Str::default(),
            rack_id: None,
            member_epoch: 0,
            client_id: Str::default(),
            client_host: Str::default(),
            subscribed_topic_names: Vec::new(),
            assignment: Assignment::default(),
            tagged: TaggedFields::new(),
        }
    }
}

impl Member {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.member_id = r.string(true)?;
        this.rack_id = r.nullable_string(true)?;
        this.member_epoch = r.i32()?;
        this.client_id = r.string(true)?;
        this.client_host = r.string(true)?;
        this.subscribed_topic_names = r.array(true, 1, |r| r.string(true))?;
        this.assignment = Assignment::read(r, version)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.member_id, true)?;
        match &self.rack_id {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        w.i32(self.member_epoch);
        w.string(&self.client_id, true)?;
        w.string(&self.client_host, true)?;
        w.array_len(self.subscribed_topic_names.len(), true)?;
        for item in &self.subscribed_topic_names {
            w.string(item, true)?;
        }
        self.assignment.write(w, version)?;
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`ShareGroupDescribeResponse`].
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicPartitions {
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Name of the topic.
    pub topic_name: Str,
    /// Partitions of the topic.
    pub partitions: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TopicPartitions {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, topic_name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl TopicPartitions {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_id = r.uuid()?;
        this.topic_name = r.string(true)?;
        this.partitions = r.array(true, 4, |r| r.i32())?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.uuid(self.topic_id);
        w.string(&self.topic_name, true)?;
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            w.i32(*item);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`ShareGroupDescribeResponse`].
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Assigned partitions, by topic.
    pub topic_partitions: Vec<TopicPartitions>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for Assignment {
    fn default() -> Self {
        Self { topic_partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl Assignment {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_partitions = r.array(true, 19, |r| TopicPartitions::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.topic_partitions.len(), true)?;
        for item in &self.topic_partitions {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ShareGroupDescribeResponse {
    const NAME: &'static str = "ShareGroupDescribeResponse";
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

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
