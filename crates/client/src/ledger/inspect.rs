//! The ledger from outside, for operators: what lies in it, what is open, and settling what the dead left.

use super::LedgerTopic;
use super::carrier::{call_fence, took_effect};
use super::gone::gone;
use crate::admin::{Admin, Isolation, OffsetSpec};
use crate::{Error, ErrorKind, PartitionReader, Producer, ProducerRecord, Result, Uuid};
use kafka_share_core::ledger::{
    ClaimedRange, IntentKey, IntentState, LedgerError, LedgerRecord, Survey, SurveyedIntent,
};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::transaction::ProducerIdentity;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Str;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What [`Admin::describe_ledger`] finds.
#[derive(Debug, Clone)]
pub struct LedgerDescription {
    /// Name of the topic.
    pub topic: String,
    /// Its partitions.
    pub partitions: Vec<LedgerPartition>,
}

/// A partition of a ledger.
#[derive(Debug, Clone)]
pub struct LedgerPartition {
    /// Number, from 0.
    pub partition: i32,
    /// First offset kept.
    pub start_offset: i64,
    /// Offset behind the last record.
    pub end_offset: i64,
    /// Intents, tombstones and generations between them; the rest was compacted, or is markers.
    pub records: u64,
    /// Intents that are neither aborted nor tombstoned, by offset.
    pub intents: Vec<LedgerIntent>,
    /// Generations above 0, by group.
    pub generations: BTreeMap<String, u64>,
    /// Groups that have left the ledger: their members acknowledge natively.
    pub left: BTreeSet<String>,
    /// Why members would refuse to work with it: records of somebody else, of a newer format, or damaged.
    pub faults: Vec<String>,
}

/// An intent: a transaction that acknowledges records.
#[derive(Debug, Clone)]
pub struct LedgerIntent {
    /// Offset in the ledger.
    pub offset: i64,
    /// Whether its transaction has not ended yet. Others wait for its records.
    pub open: bool,
    /// Transactional id of its producer.
    pub transactional_id: String,
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Whether only those who prepared it may end it (KIP-939).
    pub two_phase: bool,
    /// Whether its acknowledgements are in the transaction at the brokers too, which know of them with its commit.
    pub native: bool,
    /// When it was written, in milliseconds since 1970.
    pub timestamp: i64,
    /// By group: the number of records that it acknowledges.
    pub groups: BTreeMap<String, u64>,
    /// How many of them the broker was not told of yet, as far as the groups' start offsets show; `None` where a group has
    /// none.
    pub unconfirmed: Option<u64>,
    /// Whether the generations of its groups were raised since, so that it does not count any more.
    pub outdated: bool,
    /// As `unconfirmed`, apart for each group and topic.
    unconfirmed_by_topic: BTreeMap<(Str, Uuid), Option<u64>>,
    key: IntentKey,
}

impl LedgerIntent {
    /// How many records of a group the broker was not told of yet, but for those of some topics; `None` where the group has no
    /// start offsets.
    #[must_use]
    pub fn unconfirmed_of(&self, group: &str, except: &[Uuid]) -> Option<u64> {
        let counts = self.unconfirmed_by_topic.iter().filter(|((g, topic), _)| *g == *group && !except.contains(topic));
        counts.map(|(_, count)| *count).sum()
    }
}

/// What [`Admin::settle_ledger`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LedgerSettlement {
    /// Open intents whose producers were fenced, which has the coordinator abort their transactions.
    pub fenced: usize,
    /// Open intents whose producers could not be fenced.
    pub not_fenced: usize,
    /// Why a coordinator refused that, the last time; `None` where only those were left that who prepared them may end.
    pub refusal: Option<ErrorCode>,
    /// Intents that nobody needs any more, and which were tombstoned.
    pub tombstoned: usize,
    /// Intents that are left.
    pub left: usize,
}

/// Start offsets by group and share-partition; `None` for groups that have none.
pub(super) type Starts = HashMap<Str, Option<HashMap<TopicIdPartition, i64>>>;

impl Admin {
    /// Looks whether a ledger is there and has the settings that it needs, with the rights that members have.
    ///
    /// # Cancel safety
    /// Nothing is written.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) where it is missing, with code UNKNOWN_TOPIC_OR_PARTITION, or has other settings;
    /// [`Authorization`](ErrorKind::Authorization) where it may not be looked at. The message says what to do.
    pub async fn check_ledger(&self, topic: &str) -> Result<()> {
        self.open_ledger(topic).await.map(drop)
    }

    /// Reads a ledger from its first record to its end.
    ///
    /// # Cancel safety
    /// Nothing is written.
    ///
    /// # Errors
    /// As for members: a ledger that is missing, not compacted or not allowed to be read. Records that members would refuse
    /// are no error here, but [`faults`](LedgerPartition::faults).
    pub async fn describe_ledger(&self, topic: &str) -> Result<LedgerDescription> {
        let ledger = self.open_ledger(topic).await?;
        let surveys = self.survey(&ledger, None).await?;
        let starts = self.start_offsets(&surveys, None).await?;
        let first = self.list_offsets(topic, OffsetSpec::Earliest, Isolation::ReadUncommitted).await?;
        let partitions = surveys.iter().zip(first).map(|((survey, partition, end), start)| LedgerPartition {
            partition: *partition,
            start_offset: start,
            end_offset: *end,
            records: survey.records(),
            intents: survey.intents().iter().map(|(offset, found)| intent(*offset, found, survey, &starts)).collect(),
            generations: survey.generations().iter().map(|(group, n)| (group.to_string(), *n)).collect(),
            left: survey.left().map(ToString::to_string).collect(),
            faults: deleted(survey, *partition, start).iter().chain(survey.faults()).map(ToString::to_string).collect(),
        });
        Ok(LedgerDescription { topic: topic.to_owned(), partitions: partitions.collect() })
    }

    /// Settles what dead applications left: fences the producers of intents that are open for longer than `age` (but those
    /// that only who prepared them may end), and tombstones committed intents whose records are all below their group's
    /// start offset, or whose generation is over. What live members do meanwhile is not disturbed by the latter; a member
    /// that is fenced loses its open transaction, whose records come again.
    ///
    /// # Cancel safety
    /// Some producers may have been fenced, some tombstones written. Doing it again does no harm.
    ///
    /// # Errors
    /// As [`Admin::describe_ledger`]; a ledger with faults, which must be looked at by a person first.
    pub async fn settle_ledger(&self, topic: &str, age: Duration) -> Result<LedgerSettlement> {
        let description = self.describe_ledger(topic).await?;
        if let Some(fault) = description.partitions.iter().find_map(|p| p.faults.first()) {
            return Err(Error::new(ErrorKind::InvalidState, format!("nothing was settled: {fault}")));
        }
        let mut done = LedgerSettlement::default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let limit = i64::try_from(now.saturating_sub(age).as_millis()).unwrap_or(i64::MAX);
        let producer = Producer::builder("").cluster(Arc::clone(self.cluster())).linger(Duration::ZERO).build()?;
        let mut written = Vec::new();
        for partition in &description.partitions {
            for intent in &partition.intents {
                if intent.open {
                    done.left += 1;
                    if intent.timestamp > limit {
                        continue;
                    }
                    let refusal = if intent.two_phase { None } else { Some(self.fence(intent).await?) };
                    let fenced = refusal.is_some_and(took_effect);
                    done.fenced += usize::from(fenced);
                    done.not_fenced += usize::from(!fenced);
                    done.refusal = refusal.filter(|_| !fenced).or(done.refusal);
                } else if intent.outdated || intent.unconfirmed == Some(0) {
                    let key = intent.key.encode();
                    let record = ProducerRecord::new(topic).partition(partition.partition).key(&key[..]);
                    written.push(producer.send(record).await?);
                } else {
                    done.left += 1;
                }
            }
        }
        producer.flush().await?;
        for tombstone in written {
            tombstone.await?;
            done.tombstoned += 1;
        }
        Ok(done)
    }

    /// Raises a group's generation, so that what the ledger has of it counts no more: before an offset reset, or when a group
    /// was deleted, as records that come again would be acknowledged without output otherwise. No member may be at work, nor
    /// any transaction that acknowledges records of the group be open. What was done and the broker was not told of
    /// ([`LedgerIntent::unconfirmed_of`]) comes twice afterwards, unless its records come again on purpose. Answers the new
    /// generation.
    ///
    /// # Cancel safety
    /// It may have been raised. Raising it once more does no harm.
    ///
    /// # Errors
    /// As [`Admin::describe_ledger`]; a group that has members; [`InvalidState`](ErrorKind::InvalidState) where a transaction is
    /// open, or was begun meanwhile: then the generation is raised, and the message says so.
    pub async fn raise_ledger_generation(&self, topic: &str, group: &str) -> Result<u64> {
        self.check_without_members(group).await?;
        let ledger = self.open_ledger(topic).await?;
        let partition = ledger.layout.partition_for(group);
        let surveys = self.survey(&ledger, Some(partition)).await?;
        if let Some(who) = open_transaction(&surveys, group) {
            let text = format!(
                "transaction {who:?} of share group {group:?} is open in ledger {topic:?}: wait for its end, or end it with `kshare \
                 ledger compact --older-than 1s`, before the generation is raised"
            );
            return Err(Error::new(ErrorKind::InvalidState, text));
        }
        let generation = surveys.iter().map(|(survey, ..)| survey.generation(group)).max().unwrap_or(0) + 1;
        let record = LedgerRecord::Generation { group: Str::from(group), generation };
        self.write_of_group(&ledger, partition, &record).await?;
        // A member that was stopped may have written between the look and the record, and not see the record any more.
        if let Some(who) = open_transaction(&self.survey(&ledger, Some(partition)).await?, group) {
            let text = format!(
                "generation {generation} of share group {group:?} begins in ledger {topic:?}, but transaction {who:?} was begun \
                 before that and may be committed yet: end it with `kshare ledger compact --older-than 1s` before members start"
            );
            return Err(Error::new(ErrorKind::InvalidState, text));
        }
        Ok(generation)
    }

    /// Writes what holds for a group, outside of a transaction.
    pub(super) async fn write_of_group(
        &self,
        ledger: &LedgerTopic,
        partition: i32,
        record: &LedgerRecord,
    ) -> Result<()> {
        let (key, value) = record.encode(ledger.layout);
        let producer = Producer::builder("").cluster(Arc::clone(self.cluster())).linger(Duration::ZERO).build()?;
        let record = ProducerRecord::new(&ledger.name).partition(partition).key(&key[..]);
        let value = value.unwrap_or_default();
        producer.send(record.value(&value[..])).await?.await?;
        Ok(())
    }

    /// Members drop what they know when the generation is raised, and with it what they have committed and the broker was not
    /// told of.
    async fn check_without_members(&self, group: &str) -> Result<()> {
        let described = self.describe_share_groups(&[group]).await;
        match described.into_iter().next().map(|(_, outcome)| outcome) {
            Some(Ok(found)) if !found.members.is_empty() => {
                let count = found.members.len();
                let text = format!("share group {group:?} has members ({count}): stop them first, in order");
                Err(Error::new(ErrorKind::InvalidState, text))
            }
            Some(Err(error)) if error.code() != Some(ErrorCode::GROUP_ID_NOT_FOUND) => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) async fn open_ledger(&self, topic: &str) -> Result<LedgerTopic> {
        let deadline = Instant::now() + self.cluster().config().default_api_timeout;
        LedgerTopic::open(self.cluster(), topic, false, deadline).await
    }

    /// One partition, or all, with their numbers and ends.
    pub(super) async fn survey(&self, ledger: &LedgerTopic, only: Option<i32>) -> Result<Vec<(Survey, i32, i64)>> {
        let (cluster, isolation) = (Arc::clone(self.cluster()), Isolation::ReadUncommitted);
        let from = match only {
            Some(partition) => {
                let first = self.list_offsets(&ledger.name, OffsetSpec::Earliest, isolation).await?;
                Some((0..).zip(first).filter(|(number, _)| *number == partition).collect::<Vec<_>>())
            }
            None => None,
        };
        let mut reader = PartitionReader::new(cluster, &ledger.name, isolation, from.as_deref()).await?.whole();
        let mut surveys: Vec<_> =
            reader.ends().map(|(partition, end)| (Survey::new(ledger.layout, partition), partition, end)).collect();
        while let Some(batch) = reader.next_batch().await? {
            if let Some((survey, ..)) = surveys.iter_mut().find(|(_, partition, _)| *partition == batch.partition()) {
                survey.handle_batch(batch.decoded());
            }
        }
        Ok(surveys)
    }

    pub(super) async fn start_offsets(&self, surveys: &[(Survey, i32, i64)], only: Option<&str>) -> Result<Starts> {
        let mut starts = Starts::new();
        for group in surveys.iter().flat_map(|(s, ..)| s.intents().values()).flat_map(|i| &i.intent.groups) {
            if starts.contains_key(&group.group) || only.is_some_and(|only| group.group != *only) {
                continue;
            }
            let found = match self.describe_share_group_offsets(&group.group).await {
                Ok(offsets) => Some(
                    offsets
                        .iter()
                        .filter_map(|o| {
                            let tp = TopicIdPartition { topic_id: o.topic_id, partition: o.partition };
                            // The start offset trails; without lag all is done that could have been acknowledged.
                            if o.lag == Some(0) { Some((tp, i64::MAX)) } else { Some((tp, o.start_offset?)) }
                        })
                        .collect(),
                ),
                Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => None,
                Err(error) => return Err(error),
            };
            starts.insert(group.group.clone(), found);
        }
        self.pass_deleted_topics(surveys, &mut starts).await?;
        Ok(starts)
    }

    /// Of topics that are deleted nothing comes again.
    async fn pass_deleted_topics(&self, surveys: &[(Survey, i32, i64)], starts: &mut Starts) -> Result<()> {
        let claims = surveys.iter().flat_map(|(s, ..)| s.intents().values()).flat_map(|i| &i.intent.groups);
        let known = claims.filter(|g| starts.contains_key(&g.group));
        let places: Vec<_> = known.flat_map(|g| g.claims.keys().map(|tp| (g.group.clone(), *tp))).collect();
        let told = |(group, tp): &&(Str, TopicIdPartition)| {
            starts.get(group).is_some_and(|s| s.as_ref().is_none_or(|s| s.contains_key(tp)))
        };
        let untold: Vec<_> = places.iter().filter(|place| !told(place)).cloned().collect();
        let deadline = Instant::now() + self.cluster().config().default_api_timeout;
        let gone = gone(self.cluster(), untold.iter().map(|(_, tp)| tp.topic_id).collect(), deadline).await?;
        for (group, tp) in untold.into_iter().filter(|(_, tp)| gone.contains(&tp.topic_id)) {
            if let Some(Some(starts)) = starts.get_mut(&group) {
                starts.insert(tp, i64::MAX);
            }
        }
        Ok(())
    }

    /// Has the coordinator abort a transaction, unless it is being committed; its answer.
    async fn fence(&self, intent: &LedgerIntent) -> Result<ErrorCode> {
        let id = Str::from(intent.transactional_id.as_str());
        let owner = ProducerIdentity { id: intent.producer_id, epoch: intent.producer_epoch };
        let deadline = Instant::now() + self.cluster().config().default_api_timeout;
        let mut attempt = 0;
        loop {
            let code = call_fence(self.cluster(), &id, owner, deadline).await?;
            attempt += 1;
            // Some change of the transactional id is under way, which need not be this transaction's end.
            let busy = code == ErrorCode::CONCURRENT_TRANSACTIONS;
            if !busy || !self.cluster().pause_before_retry(attempt, deadline).await {
                return Ok(code);
            }
        }
    }
}

/// The transactional id of an open intent that claims records of the group.
fn open_transaction(surveys: &[(Survey, i32, i64)], group: &str) -> Option<Str> {
    let intents = surveys.iter().flat_map(|(survey, ..)| survey.intents().values());
    let mut open =
        intents.filter(|i| i.state == IntentState::Open && i.intent.groups.iter().any(|g| g.group == *group));
    open.next().map(|found| found.intent.transactional_id.clone())
}

/// Records were deleted from a partition: its members refuse it, but those of groups whose generation was raised since.
fn deleted(survey: &Survey, partition: i32, start: i64) -> Option<LedgerError> {
    let claims = survey.intents().values().flat_map(|i| &i.intent.groups);
    let raised = !survey.generations().is_empty();
    let anew = raised && claims.map(|claim| &claim.group).all(|group| survey.generations().contains_key(group));
    (start > 0 && !anew).then_some(LedgerError::Deleted { partition, start })
}

pub(super) fn intent(offset: i64, found: &SurveyedIntent, survey: &Survey, starts: &Starts) -> LedgerIntent {
    let records = |g: &kafka_share_core::ledger::GroupClaims| {
        g.claims.values().flatten().map(|range| range.last.abs_diff(range.first) + 1).sum::<u64>()
    };
    let mut unconfirmed_by_topic: BTreeMap<(Str, Uuid), Option<u64>> = BTreeMap::new();
    for g in &found.intent.groups {
        let starts = starts.get(&g.group).and_then(Option::as_ref);
        for (tp, ranges) in &g.claims {
            let left = starts.map(|starts| {
                let left = |range: &ClaimedRange| {
                    let start = starts.get(tp).copied().unwrap_or(range.first);
                    if range.last < start { 0 } else { range.last.abs_diff(range.first.max(start)) + 1 }
                };
                ranges.iter().map(left).sum::<u64>()
            });
            let sum = unconfirmed_by_topic.entry((g.group.clone(), tp.topic_id)).or_insert(Some(0));
            *sum = sum.zip(left).map(|(sum, left)| sum + left);
        }
    }
    let open = found.state == IntentState::Open;
    if found.intent.native && !open {
        unconfirmed_by_topic.values_mut().for_each(|left| *left = Some(0));
    }
    LedgerIntent {
        offset,
        open,
        transactional_id: found.intent.transactional_id.to_string(),
        producer_id: found.owner.id,
        producer_epoch: found.owner.epoch,
        two_phase: found.intent.two_phase,
        native: found.intent.native,
        timestamp: found.timestamp,
        groups: found.intent.groups.iter().map(|g| (g.group.to_string(), records(g))).collect(),
        unconfirmed: unconfirmed_by_topic.values().copied().sum(),
        outdated: survey.is_outdated(found),
        unconfirmed_by_topic,
        key: found.key,
    }
}
