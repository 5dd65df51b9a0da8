//! The reader of one ledger partition: position, gaps, and what the consumer that it reads for has asked for.

use super::error::LedgerError;
use super::fences::Waits;
use super::format::{FormatError, IntentKey, Layout, LedgerRecord};
use super::own::OwnWrites;
use super::picture::{IntentState, Picture};
use super::standing::{self, Run, Standing};
use super::upkeep::Upkeep;
use super::verdicts::{Verdict, Verdicts};
use crate::metadata::TopicIdPartition;
use crate::transaction::ProducerIdentity;
use bytes::Bytes;
use kafka_share_wire::Str;
use kafka_share_wire::compression::DEFAULT_DECOMPRESSED_LIMIT;
use kafka_share_wire::records::{BatchIter, ControlRecordType, DecodedBatch, RecordBatch, RecordError};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Responses in a row that must show an open intent below the last stable offset before its marker counts as lost: one
/// alone proves nothing, as brokers read the two without a lock.
const SUSPICIONS: u32 = 3;

/// What a reader is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderConfig {
    /// `group.id`: intents for other groups are passed over.
    pub group: Str,
    /// Number of partitions of the ledger.
    pub layout: Layout,
    /// Most ranges of offsets that are remembered.
    pub max_ranges: usize,
}

/// What the caller is to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The partition's first offset and its end (read_uncommitted); then [`LedgerReader::handle_bounds`].
    Bounds,
    /// Records (read_uncommitted) from this offset; then [`LedgerReader::handle_records`].
    Records(i64),
    /// Nothing: the ledger cannot be used, see [`LedgerReader::error`].
    Nothing,
}

/// An intent without a marker, for tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIntent {
    /// Its offset in the ledger.
    pub offset: i64,
    /// Its key.
    pub key: IntentKey,
    /// Transactional id of the owner.
    pub transactional_id: Str,
    /// The owner's producer id and epoch.
    pub owner: ProducerIdentity,
    /// Ended by whoever prepared it, and by nobody else.
    pub two_phase: bool,
    /// Number of offsets that it claims.
    pub records: u64,
}

/// Reads one ledger partition for one member of one group.
#[derive(Debug)]
pub struct LedgerReader {
    config: ReaderConfig,
    partition: i32,
    pub(super) picture: Picture,
    pub(super) waits: Waits,
    pub(super) upkeep: Upkeep,
    /// The next offset to read.
    position: Option<i64>,
    /// The end of the log when reading began: below it gaps are what compaction left.
    target: i64,
    /// Where the log began then: 0, unless records were deleted from it.
    start: i64,
    /// Whether the record that raised the group's generation last was read: nothing counts that lay below it.
    raised: bool,
    caught_up: bool,
    /// Intents whose markers may have been missed while reading from the start: they were open at the end of an answer, and
    /// then something was gone. Markers go only after what they decide, so that an intent which is still there was judged by
    /// its own.
    suspects: BTreeSet<i64>,
    next_ask: u64,
    lowest_ask: u64,
    floor: u64,
    suspicions: u32,
    watched: Verdicts,
    pub(super) own: OwnWrites,
    error: Option<LedgerError>,
    /// Grows with everything that may change a standing, a check or a verdict.
    changes: u64,
}

impl LedgerReader {
    /// A reader that has read nothing. Nothing has been asked for; else call [`LedgerReader::note_asked`] and
    /// [`LedgerReader::set_lowest_ask`] first.
    #[must_use]
    pub fn new(config: ReaderConfig) -> Self {
        let partition = config.layout.partition_for(&config.group);
        LedgerReader {
            config,
            partition,
            picture: Picture::default(),
            waits: Waits::default(),
            upkeep: Upkeep::default(),
            position: None,
            target: 0,
            start: 0,
            raised: false,
            caught_up: false,
            suspects: BTreeSet::new(),
            next_ask: 1,
            lowest_ask: 1,
            floor: 0,
            suspicions: 0,
            watched: Verdicts::default(),
            own: OwnWrites::default(),
            error: None,
            changes: 0,
        }
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &Str {
        &self.config.group
    }

    /// The group's ledger partition.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// What must agree among all members.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.config.layout
    }

    /// The group's generation, for its next intent.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.picture.generation()
    }

    /// Whether the group has left the ledger, as far as was read: who acknowledges by the ledger alone must stop.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.picture.has_left()
    }

    /// Whether a transaction that acknowledges natively must write an intent too, for those who know the ledger alone.
    ///
    /// No more, once the group has left: what the ledger alone had committed lies below that record and was read, brokers know
    /// of all that is tombstoned of it, and nothing is committed by the ledger alone above.
    #[must_use]
    pub fn needs_intent(&self) -> bool {
        !self.caught_up || self.error.is_some() || !self.picture.has_left() || self.picture.has_ledger_only()
    }

    /// Why the ledger cannot be used.
    #[must_use]
    pub fn error(&self) -> Option<&LedgerError> {
        self.error.as_ref()
    }

    /// The next offset to read.
    #[must_use]
    pub fn position(&self) -> Option<i64> {
        self.position
    }

    /// Whether the log was read to the end that it had when reading began.
    #[must_use]
    pub fn is_caught_up(&self) -> bool {
        self.caught_up
    }

    /// Ranges of offsets that are remembered.
    #[must_use]
    pub fn ranges(&self) -> usize {
        self.picture.ranges()
    }

    /// A number that changes whenever a standing, a check or a verdict may have.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// What is known of the offsets from `first` to `last`: runs that cover them, in order.
    ///
    /// ```
    /// # use kafka_share_core::ledger::{LedgerReader, Layout, ReaderConfig, Run, Standing};
    /// # use kafka_share_core::metadata::TopicIdPartition;
    /// # let tp = TopicIdPartition { topic_id: kafka_share_wire::Uuid([1; 16]), partition: 0 };
    /// # let layout = Layout::new(8).unwrap();
    /// let mut reader = LedgerReader::new(ReaderConfig { group: "g".into(), layout, max_ranges: 1000 });
    /// assert_eq!(reader.standings(tp, 5, 9), [Run { first: 5, last: 9, standing: Standing::Open }]);
    /// reader.handle_bounds(0, 0);
    /// assert_eq!(reader.standings(tp, 5, 9), [Run { first: 5, last: 9, standing: Standing::Free }]);
    /// ```
    #[must_use]
    pub fn standings(&self, tp: TopicIdPartition, first: i64, last: i64) -> Vec<Run> {
        if !self.caught_up || self.error.is_some() {
            return vec![Run { first, last, standing: Standing::Open }];
        }
        standing::runs(&self.picture, tp, first, last)
    }

    /// The next request for records will have this number, or a greater one. Called before it is sent.
    pub fn note_asked(&mut self, next_ask: u64) {
        self.next_ask = self.next_ask.max(next_ask);
    }

    /// All requests for records before this number are answered, and all they brought is settled: acknowledged or given
    /// up, and on its way nowhere.
    pub fn set_lowest_ask(&mut self, lowest_ask: u64) {
        self.lowest_ask = self.lowest_ask.max(lowest_ask.min(self.next_ask));
        self.picture.handle_settled(self.lowest_ask);
    }

    /// R2: all that was asked for with a number below this must be dropped, the answers that are still to come included;
    /// nothing of it is acknowledged, and a transaction that holds acknowledgements of it aborts.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Has waited-for owners fenced after a quarter of the record lock.
    pub fn set_record_lock(&mut self, lock: Duration) {
        self.waits.set_limit(lock / 4);
    }

    /// What to fetch next.
    #[must_use]
    pub fn want(&self) -> Want {
        match (&self.error, self.position) {
            (Some(_), _) => Want::Nothing,
            (None, None) => Want::Bounds,
            (None, Some(offset)) => Want::Records(self.suspects.first().copied().unwrap_or(offset)),
        }
    }

    /// Takes the first offset of the log and its end, the end read with or after the start. A log that does not begin at 0
    /// has lost records that say what is done: it is refused ([`LedgerError::Deleted`]), unless the group's generation was
    /// raised since.
    pub fn handle_bounds(&mut self, start: i64, end: i64) {
        if self.position.is_some() {
            return;
        }
        if start > 0 {
            // Compaction does not move it: records were deleted, intents and tombstones perhaps.
            self.handle_gap();
        }
        self.position = Some(start);
        self.start = start;
        self.target = end.max(start);
        self.look_for_end();
    }

    /// The partition does not have the wanted offset (any more).
    pub fn handle_out_of_range(&mut self) {
        self.handle_gap();
        self.restart();
    }

    /// The records that were fetched at the wanted offset, and the last stable offset of the same answer (-1: unknown).
    ///
    /// # Errors
    /// A ledger that cannot be used; it stays so.
    pub fn handle_records(&mut self, now: Instant, records: Bytes, last_stable_offset: i64) -> Result<(), LedgerError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let result = match self.suspects.first().copied() {
            Some(suspect) => self.look_at(suspect, records),
            None => self.read_batches(now, records),
        };
        if let Err(error) = result {
            return Err(self.fail(error));
        }
        self.picture.handle_settled(self.lowest_ask);
        self.look_for_end();
        self.suspect(last_stable_offset);
        self.error.clone().map_or(Ok(()), Err)
    }

    /// The ledger cannot be used from here on.
    pub(super) fn fail(&mut self, error: LedgerError) -> LedgerError {
        self.error = Some(error.clone());
        self.changes += 1;
        error
    }

    /// The answer to a look at a suspect: it is still there, or reading begins anew.
    fn look_at(&mut self, suspect: i64, records: Bytes) -> Result<(), LedgerError> {
        let Some(batch) = BatchIter::new(records).next() else { return Ok(()) };
        let damaged = |e| self.damaged(suspect, e);
        let batch = batch.map_err(damaged)?.decode(DEFAULT_DECOMPRESSED_LIMIT).map_err(damaged)?;
        let mut there = false;
        for record in &batch {
            there |= record.map_err(damaged)?.offset == suspect;
        }
        if there {
            self.suspects.remove(&suspect);
        } else {
            self.restart();
        }
        Ok(())
    }

    fn read_batches(&mut self, now: Instant, records: Bytes) -> Result<(), LedgerError> {
        let began = self.position;
        for batch in BatchIter::new(records) {
            let Some(position) = self.position else { return Ok(()) };
            let batch = batch.map_err(|e| self.damaged(position, e))?;
            self.read_batch(now, (began.unwrap_or(position), position), &batch)?;
        }
        Ok(())
    }

    fn read_batch(
        &mut self,
        now: Instant,
        (began, position): (i64, i64),
        batch: &RecordBatch,
    ) -> Result<(), LedgerError> {
        let (base, next) = (batch.base_offset, batch.next_offset());
        let damaged = |this: &Self, e| this.damaged(base, e);
        batch.verify_crc().map_err(|e| damaged(self, e))?;
        let batch = batch.decode(DEFAULT_DECOMPRESSED_LIMIT).map_err(|e| damaged(self, e))?;
        if next <= position {
            return Ok(());
        }
        let mut count = 0;
        for record in &batch {
            count += i64::from(record.map_err(|e| damaged(self, e))?.offset >= position);
        }
        if base > position || count < next - base.max(position) {
            if self.handle_gap() {
                self.restart();
                return Ok(());
            }
            // One answer shows one state of the log: only what earlier ones brought may have lost its marker since.
            self.suspects.extend(self.picture.open().filter(|offset| *offset < began));
        }
        self.changes += u64::from(count > 0);
        self.own.handle_batch(now, batch.producer_id);
        if batch.is_control() {
            self.read_markers(&batch, position)?;
        } else {
            self.read_data(now, &batch, position)?;
        }
        self.position = Some(next);
        Ok(())
    }

    /// Markers are matched by producer id alone: after fencing they carry a higher epoch than the data. A control batch may
    /// be empty after compaction.
    fn read_markers(&mut self, batch: &DecodedBatch, position: i64) -> Result<(), LedgerError> {
        let damaged = |this: &Self, e| this.damaged(batch.base_offset, e);
        for record in batch.control_records().map_err(|e| damaged(self, e))? {
            let record = record.map_err(|e| damaged(self, e))?;
            match record.kind {
                _ if record.offset < position => {}
                ControlRecordType::Commit => self.take_marker(record.offset, batch.producer_id, true),
                ControlRecordType::Abort => self.take_marker(record.offset, batch.producer_id, false),
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn take_marker(&mut self, offset: i64, producer_id: i64, commit: bool) {
        self.own.handle_marker(producer_id);
        self.watched.handle_marker(offset, producer_id, commit);
        if self.picture.handle_marker(producer_id, commit, self.next_ask) {
            self.forget_needless();
        }
    }

    fn read_data(&mut self, now: Instant, batch: &DecodedBatch, position: i64) -> Result<(), LedgerError> {
        let owner = ProducerIdentity { id: batch.producer_id, epoch: batch.producer_epoch };
        for record in batch {
            let record = record.map_err(|e| self.damaged(batch.base_offset, e))?;
            if record.offset < position {
                continue;
            }
            let decoded = LedgerRecord::decode(record.key, record.value, self.config.layout);
            let decoded = decoded.map_err(|e| self.refused(record.offset, e))?;
            self.take_record(now, record.offset, (owner, batch.is_transactional()), decoded)?;
        }
        Ok(())
    }

    pub(super) fn take_record(
        &mut self,
        now: Instant,
        offset: i64,
        (owner, transactional): (ProducerIdentity, bool),
        record: LedgerRecord,
    ) -> Result<(), LedgerError> {
        let refuse = |this: &Self, error| Err(this.refused(offset, error));
        match (record, transactional) {
            (LedgerRecord::Intent(key, intent), true) => {
                if intent.groups.iter().any(|g| self.config.layout.partition_for(&g.group) != self.partition) {
                    return refuse(self, FormatError::Damaged("a group that belongs to another partition"));
                }
                if self.picture.handle_intent(now, offset, owner, (key, intent), &self.config.group) {
                    self.handle_raised();
                }
            }
            (LedgerRecord::Tombstone(key), true) => self.picture.handle_tombstone(owner.id, key),
            (LedgerRecord::Tombstone(key), false) => {
                if self.picture.retire(&key, self.next_ask) {
                    self.forget_needless();
                }
            }
            (LedgerRecord::Generation { group, generation }, false) => {
                if group == self.config.group {
                    self.raised = true;
                    if self.picture.handle_generation(generation) {
                        self.handle_raised();
                    }
                }
            }
            (LedgerRecord::Left { group, generation }, false) => {
                if group == self.config.group && self.picture.handle_left(generation) {
                    self.handle_raised();
                }
            }
            (LedgerRecord::Intent(..), false) => {
                return refuse(self, FormatError::Foreign("an intent outside a transaction"));
            }
            (LedgerRecord::Generation { .. } | LedgerRecord::Left { .. }, true) => {
                return refuse(self, FormatError::Foreign("what holds for a group inside a transaction"));
            }
        }
        if self.picture.ranges() > self.config.max_ranges && !self.make_room() {
            return Err(LedgerError::TooLarge { partition: self.partition, limit: self.config.max_ranges });
        }
        Ok(())
    }

    /// Forgets what is tombstoned and only kept for the sake of what was asked for before (R1), and has all of that dropped
    /// instead (R2). Answers whether that was enough.
    fn make_room(&mut self) -> bool {
        if self.picture.forget_retired() {
            self.floor = self.floor.max(self.next_ask);
            self.changes += 1;
        }
        self.picture.ranges() <= self.config.max_ranges
    }

    /// An administrator has raised the generation: what was asked for in the one before counts for nothing.
    fn handle_raised(&mut self) {
        self.forget_needless();
        if self.lowest_ask < self.next_ask {
            self.floor = self.floor.max(self.next_ask);
        }
    }

    /// Something was compacted away before it was read. Answers whether that asks for reading from the start again.
    fn handle_gap(&mut self) -> bool {
        // While reading from the start too: an intent below the end that was learned then may have been open, with its record
        // asked for since, and be committed, confirmed, tombstoned and gone now.
        if self.lowest_ask < self.next_ask {
            self.floor = self.floor.max(self.next_ask);
            self.changes += 1;
        }
        self.caught_up
    }

    /// Reads from the start of the log again.
    fn restart(&mut self) {
        self.picture = Picture::of_generation(self.picture.generation());
        self.position = None;
        self.raised = false;
        self.caught_up = false;
        self.suspicions = 0;
        self.suspects.clear();
        self.own.forget();
        self.changes += 1;
    }

    fn look_for_end(&mut self) {
        if self.caught_up || !self.suspects.is_empty() || self.position.is_none_or(|p| p < self.target) {
            return;
        }
        if self.start > 0 && !self.raised {
            self.fail(LedgerError::Deleted { partition: self.partition, start: self.start });
            return;
        }
        self.caught_up = true;
        self.changes += 1;
        self.forget_needless();
        let picture = &self.picture;
        self.watched.handle_end(self.target, |key| picture.get(key).is_some());
    }

    /// An open intent below the last stable offset has its marker in the log, and was read past it: the marker was
    /// compacted away.
    fn suspect(&mut self, last_stable_offset: i64) {
        let decided = self.picture.first_open().is_some_and(|first| first < last_stable_offset);
        let past = self.position.is_some_and(|p| p >= last_stable_offset);
        if !(self.caught_up && decided && past) {
            self.suspicions = 0;
            return;
        }
        self.suspicions += 1;
        if self.suspicions >= SUSPICIONS {
            self.restart();
        }
    }

    /// Where reading goes on, if the log was read to its end and nothing has to be looked at again.
    pub(super) fn tail(&self) -> Option<i64> {
        self.position.filter(|_| self.caught_up && self.suspects.is_empty() && self.error.is_none())
    }

    /// All up to this offset was read.
    pub(super) fn move_to(&mut self, position: i64) {
        self.position = Some(position);
        self.changes += 1;
        self.picture.handle_settled(self.lowest_ask);
    }

    /// Remembers how the transaction of an intent ends that this producer id is about to write.
    pub fn watch(&mut self, key: IntentKey, producer_id: i64) {
        self.own.begin(producer_id);
        self.watched.watch(key, producer_id);
    }

    /// The watched intent was written at this offset.
    pub fn handle_written(&mut self, key: &IntentKey, offset: i64) {
        self.watched.handle_written(key, offset);
    }

    /// How the transaction of a watched intent ended; `None` as long as its marker has not come.
    #[must_use]
    pub fn verdict(&self, key: &IntentKey) -> Option<Verdict> {
        self.watched.verdict(key)
    }

    /// Nobody asks for this verdict any more.
    pub fn unwatch(&mut self, key: &IntentKey) {
        self.watched.unwatch(key);
    }

    /// Intents without a marker, by offset.
    pub fn open_intents(&self) -> impl Iterator<Item = OpenIntent> + '_ {
        let open = self.picture.entries().filter(|(_, entry)| entry.state == IntentState::Open);
        open.map(|(offset, entry)| OpenIntent {
            offset,
            key: entry.key,
            transactional_id: entry.transactional_id.clone(),
            owner: entry.owner,
            two_phase: entry.two_phase,
            records: entry.claims.values().flatten().map(|r| r.last.abs_diff(r.first) + 1).sum(),
        })
    }

    pub(super) fn note_change(&mut self) {
        self.changes += 1;
    }

    fn damaged(&self, offset: i64, error: RecordError) -> LedgerError {
        LedgerError::Batch { partition: self.partition, offset, error }
    }

    fn refused(&self, offset: i64, error: FormatError) -> LedgerError {
        LedgerError::Record { partition: self.partition, offset, error }
    }
}
