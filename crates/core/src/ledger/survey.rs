//! All that lies in a ledger partition, of all groups, for tools: what is open, what is committed, what cannot be used.

use super::error::LedgerError;
use super::format::{FormatError, Intent, IntentKey, Layout, LedgerRecord};
use super::picture::IntentState;
use crate::transaction::ProducerIdentity;
use kafka_share_wire::Str;
use kafka_share_wire::records::{ControlRecordType, DecodedBatch};
use std::collections::{BTreeMap, HashMap};

/// Faults that are remembered.
const MAX_FAULTS: usize = 100;

/// An intent that was found, with neither a committed tombstone nor an abort behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyedIntent {
    /// Its key.
    pub key: IntentKey,
    /// What it says.
    pub intent: Intent,
    /// Producer id and epoch of its batch.
    pub owner: ProducerIdentity,
    /// Time of its record, in milliseconds since 1970.
    pub timestamp: i64,
    /// Whether its transaction has ended.
    pub state: IntentState,
}

#[derive(Debug, Default)]
struct Transaction {
    intents: Vec<i64>,
    tombstones: Vec<IntentKey>,
}

/// What batches from the first to the last have told. It remembers every intent: for tools, not for members.
#[derive(Debug)]
pub struct Survey {
    layout: Layout,
    partition: i32,
    intents: BTreeMap<i64, SurveyedIntent>,
    keys: HashMap<IntentKey, i64>,
    open: HashMap<i64, Transaction>,
    generations: BTreeMap<Str, u64>,
    left: BTreeMap<Str, u64>,
    faults: Vec<LedgerError>,
    records: u64,
}

impl Survey {
    /// Of a partition of which nothing was read yet.
    #[must_use]
    pub fn new(layout: Layout, partition: i32) -> Self {
        Survey {
            layout,
            partition,
            intents: BTreeMap::new(),
            keys: HashMap::new(),
            open: HashMap::new(),
            generations: BTreeMap::new(),
            left: BTreeMap::new(),
            faults: Vec::new(),
            records: 0,
        }
    }

    /// Intents by their offset.
    #[must_use]
    pub fn intents(&self) -> &BTreeMap<i64, SurveyedIntent> {
        &self.intents
    }

    /// Generations that were raised, by group; 0 for all others.
    #[must_use]
    pub fn generations(&self) -> &BTreeMap<Str, u64> {
        &self.generations
    }

    /// The generation that a group is in.
    #[must_use]
    pub fn generation(&self, group: &str) -> u64 {
        let claimed = self.intents.values().flat_map(|i| &i.intent.groups).filter(|g| g.group == *group);
        let known = [&self.generations, &self.left].into_iter().filter_map(|m| m.get(group)).copied();
        claimed.map(|g| g.generation).chain(known).max().unwrap_or(0)
    }

    /// Groups that have left the ledger.
    pub fn left(&self) -> impl Iterator<Item = &Str> {
        self.left.iter().filter(|(group, at)| **at == self.generation(group)).map(|(group, _)| group)
    }

    /// What members would refuse, the first hundred.
    #[must_use]
    pub fn faults(&self) -> &[LedgerError] {
        &self.faults
    }

    /// Records that were read, without markers.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The next batch, in order of offsets.
    pub fn handle_batch(&mut self, batch: &DecodedBatch) {
        if batch.is_control() {
            self.read_markers(batch);
        } else {
            self.read_data(batch);
        }
    }

    fn fault(&mut self, error: LedgerError) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(error);
        }
    }

    fn read_markers(&mut self, batch: &DecodedBatch) {
        let (partition, offset) = (self.partition, batch.base_offset);
        let records = match batch.control_records() {
            Ok(records) => records,
            Err(error) => return self.fault(LedgerError::Batch { partition, offset, error }),
        };
        for record in records {
            match record {
                Ok(record) if record.kind == ControlRecordType::Commit => self.end(batch.producer_id, true),
                Ok(record) if record.kind == ControlRecordType::Abort => self.end(batch.producer_id, false),
                Ok(_) => {}
                Err(error) => return self.fault(LedgerError::Batch { partition, offset, error }),
            }
        }
    }

    fn end(&mut self, producer_id: i64, commit: bool) {
        let Some(transaction) = self.open.remove(&producer_id) else { return };
        for offset in transaction.intents {
            if !commit {
                self.forget(offset);
            } else if let Some(found) = self.intents.get_mut(&offset) {
                found.state = IntentState::Committed;
            }
        }
        if commit {
            transaction.tombstones.iter().for_each(|key| self.retire(key));
        }
    }

    fn retire(&mut self, key: &IntentKey) {
        if let Some(offset) = self.keys.get(key).copied() {
            self.forget(offset);
        }
    }

    fn forget(&mut self, offset: i64) {
        if let Some(found) = self.intents.remove(&offset) {
            self.keys.remove(&found.key);
        }
    }

    fn read_data(&mut self, batch: &DecodedBatch) {
        let (partition, transactional) = (self.partition, batch.is_transactional());
        let owner = ProducerIdentity { id: batch.producer_id, epoch: batch.producer_epoch };
        for record in batch {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    return self.fault(LedgerError::Batch { partition, offset: batch.base_offset, error });
                }
            };
            self.records += 1;
            let offset = record.offset;
            let refuse = |error| LedgerError::Record { partition, offset, error };
            match (LedgerRecord::decode(record.key, record.value, self.layout), transactional) {
                (Err(error), _) => self.fault(refuse(error)),
                (Ok(LedgerRecord::Intent(key, intent)), true) => {
                    if intent.groups.iter().any(|g| self.layout.partition_for(&g.group) != partition) {
                        self.fault(refuse(FormatError::Damaged("a group that belongs to another partition")));
                    }
                    self.open.entry(owner.id).or_default().intents.push(offset);
                    self.keys.insert(key, offset);
                    let (timestamp, state) = (record.timestamp, IntentState::Open);
                    self.intents.insert(offset, SurveyedIntent { key, intent, owner, timestamp, state });
                }
                (Ok(LedgerRecord::Tombstone(key)), true) => {
                    self.open.entry(owner.id).or_default().tombstones.push(key);
                }
                (Ok(LedgerRecord::Tombstone(key)), false) => self.retire(&key),
                (Ok(LedgerRecord::Generation { group, generation }), false) => {
                    let known = self.generations.entry(group).or_default();
                    *known = generation.max(*known);
                }
                (Ok(LedgerRecord::Left { group, generation }), false) => {
                    let known = self.left.entry(group).or_default();
                    *known = generation.max(*known);
                }
                (Ok(LedgerRecord::Intent(..)), false) => {
                    self.fault(refuse(FormatError::Foreign("an intent outside a transaction")));
                }
                (Ok(LedgerRecord::Generation { .. } | LedgerRecord::Left { .. }), true) => {
                    self.fault(refuse(FormatError::Foreign("what holds for a group inside a transaction")));
                }
            }
        }
    }

    /// Whether none of what an intent claims counts any more, as the generations of its groups were raised.
    #[must_use]
    pub fn is_outdated(&self, found: &SurveyedIntent) -> bool {
        found.intent.groups.iter().all(|g| self.generations.get(&g.group).is_some_and(|now| g.generation < *now))
    }
}
