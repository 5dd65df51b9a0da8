//! Control batches: transaction markers, and kinds that clients only have to skip.

use bytes::BytesMut;

use super::{BatchBuilder, BatchOptions, DecodedBatch, Record, RecordError};

/// Version of the marker value and of the record key that we write.
const VERSION: i16 = 0;

/// What a control record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControlRecordType {
    /// A transaction was aborted.
    Abort,
    /// A transaction was committed.
    Commit,
    /// KRaft: a new leader.
    LeaderChange,
    /// KRaft: start of a snapshot.
    SnapshotHeader,
    /// KRaft: end of a snapshot.
    SnapshotFooter,
    /// KRaft: version of the protocol.
    KRaftVersion,
    /// KRaft: set of voters.
    KRaftVoters,
    /// A type of a later release; to be skipped.
    Unknown(i16),
}

impl ControlRecordType {
    /// The type of an id.
    pub const fn from_id(id: i16) -> Self {
        match id {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KRaftVersion,
            6 => Self::KRaftVoters,
            other => Self::Unknown(other),
        }
    }

    /// The id on the wire.
    pub const fn id(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::LeaderChange => 2,
            Self::SnapshotHeader => 3,
            Self::SnapshotFooter => 4,
            Self::KRaftVersion => 5,
            Self::KRaftVoters => 6,
            Self::Unknown(other) => other,
        }
    }
}

/// A control record: its type and, for transaction markers, the coordinator's epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlRecord {
    /// Offset in the partition.
    pub offset: i64,
    /// What it says.
    pub kind: ControlRecordType,
    /// Epoch of the transaction coordinator; commit and abort only.
    pub coordinator_epoch: Option<i32>,
}

impl ControlRecord {
    /// Reads a record of a control batch. Later versions of key and value only add fields.
    ///
    /// # Errors
    /// [`RecordError::MalformedControl`].
    pub fn parse(record: &Record<'_>) -> Result<Self, RecordError> {
        let malformed = RecordError::MalformedControl;
        let key = record.key.ok_or(malformed("key is null"))?;
        let [v0, v1, t0, t1, ..] = key else {
            return Err(malformed("key is shorter than 4 bytes"));
        };
        if i16::from_be_bytes([*v0, *v1]) < 0 {
            return Err(malformed("key version is negative"));
        }
        let kind = ControlRecordType::from_id(i16::from_be_bytes([*t0, *t1]));
        let is_marker = matches!(kind, ControlRecordType::Abort | ControlRecordType::Commit);
        Ok(Self {
            offset: record.offset,
            kind,
            coordinator_epoch: match is_marker {
                true => Some(marker_epoch(record.value)?),
                false => None,
            },
        })
    }
}

fn marker_epoch(value: Option<&[u8]>) -> Result<i32, RecordError> {
    let malformed = RecordError::MalformedControl;
    let value = value.ok_or(malformed("marker value is null"))?;
    let [v0, v1, e0, e1, e2, e3, ..] = value else {
        return Err(malformed("marker value is shorter than 6 bytes"));
    };
    if i16::from_be_bytes([*v0, *v1]) < 0 {
        return Err(malformed("marker version is negative"));
    }
    Ok(i32::from_be_bytes([*e0, *e1, *e2, *e3]))
}

impl DecodedBatch {
    /// The control records of a control batch: as a rule one, but all that are there.
    ///
    /// # Errors
    /// [`RecordError::NotControl`], or the errors of the records.
    pub fn control_records(
        &self,
    ) -> Result<impl Iterator<Item = Result<ControlRecord, RecordError>> + '_, RecordError> {
        if !self.is_control() {
            return Err(RecordError::NotControl);
        }
        Ok(self.iter().map(|record| ControlRecord::parse(&record?)))
    }
}

/// A transaction marker to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTxnMarker {
    /// Commit, or abort.
    pub commit: bool,
    /// Epoch of the transaction coordinator.
    pub coordinator_epoch: i32,
    /// Producer whose transaction ends.
    pub producer_id: i64,
    /// Epoch of that producer.
    pub producer_epoch: i16,
}

impl EndTxnMarker {
    /// Writes the control batch that holds this marker alone, behind the bytes of `buffer`.
    ///
    /// `timestamp` is in milliseconds since 1970.
    ///
    /// # Errors
    /// None in practice: the batch is small.
    pub fn write(
        &self,
        base_offset: i64,
        partition_leader_epoch: i32,
        timestamp: i64,
        buffer: BytesMut,
    ) -> Result<BytesMut, RecordError> {
        let options = BatchOptions {
            base_offset,
            partition_leader_epoch,
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            transactional: true,
            control: true,
            ..BatchOptions::default()
        };
        let kind = match self.commit {
            true => ControlRecordType::Commit,
            false => ControlRecordType::Abort,
        };
        let mut key = [0_u8; 4];
        key[..2].copy_from_slice(&VERSION.to_be_bytes());
        key[2..].copy_from_slice(&kind.id().to_be_bytes());
        let mut value = [0_u8; 6];
        value[..2].copy_from_slice(&VERSION.to_be_bytes());
        value[2..].copy_from_slice(&self.coordinator_epoch.to_be_bytes());
        let mut builder = BatchBuilder::with_buffer(options, buffer);
        builder.append(timestamp, Some(&key), Some(&value), [])?;
        builder.finish()
    }
}
