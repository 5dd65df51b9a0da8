//! Acknowledgements in transactions by the ledger: collected while they are staged, written as one intent per ledger
//! partition before the commit, and checked against all that lies below it.

use super::ack_backend::{AckBackend, Boxed, Refusals, Staging, check_group};
use super::record::ProducerRecord;
use super::shared::Shared;
use crate::acknowledgements::{ShareAcknowledgements, ShareGroupMetadata, TopicIdPartition, TransactionEnd};
use crate::ledger::{LedgerPart, LedgerSettings, LedgerTopic, Tail};
use crate::{Error, ErrorKind, Result, Severity, Uuid};
use kafka_share_core::ledger::{
    Check, ClaimedRange, Claims, Conflict, GroupClaims, Intent, IntentKey, LedgerRecord, Verdict, common_claims,
};
use kafka_share_core::transaction::ProducerIdentity;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Str;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::OnceCell;

/// Tombstones that one transaction writes, at most.
const MAX_TOMBSTONES: usize = 1000;

/// The transaction that is about to be committed or prepared.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub(super) transactional_id: Str,
    pub(super) identity: ProducerIdentity,
    /// It is ended by whoever prepared it, however long that takes.
    pub(super) two_phase: bool,
}

/// Why a transaction must not be committed.
#[derive(Debug)]
pub(super) struct SealError {
    pub(super) error: Error,
    /// Others were in the way, and by group, what they have committed.
    pub(super) contended: Option<Vec<(Str, Vec<Conflict>)>>,
}

impl From<Error> for SealError {
    fn from(error: Error) -> Self {
        SealError { error, contended: None }
    }
}

/// A consumer's reader, with the lowest number of the requests that brought what is staged.
type Reader = (Arc<Tail>, u64);

/// Keys of tombstones that a transaction writes, by the reader that they are of.
type Tombstones = Vec<(Arc<Tail>, Vec<IntentKey>)>;

/// What a transaction acknowledges for a group.
#[derive(Debug, Default)]
struct Group {
    claims: BTreeMap<TopicIdPartition, BTreeMap<i64, ClaimedRange>>,
    readers: Vec<Reader>,
}

/// An intent that was written, or is being.
#[derive(Debug, Clone)]
struct Written {
    key: IntentKey,
    readers: Vec<Reader>,
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeMap<Str, Group>,
    written: Vec<Written>,
    tombstones: Tombstones,
    /// Committed intents of which several readers have parts, and which are not confirmed in all of them.
    shared: Vec<Written>,
    sealed: bool,
    counter: u64,
    /// Topics that were compared with the ledger.
    outputs: BTreeSet<Str>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct LedgerBackend {
    shared: Arc<Shared>,
    settings: LedgerSettings,
    topic: OnceCell<Arc<LedgerTopic>>,
    instance: Uuid,
    /// Brokers are told in the transaction too.
    native: bool,
    state: Mutex<State>,
}

impl LedgerBackend {
    /// `native`: brokers are told in the transaction too.
    pub(super) fn new(shared: Arc<Shared>, settings: LedgerSettings, native: bool) -> Self {
        let (topic, instance, state) = (OnceCell::new(), Uuid::random(), Mutex::default());
        LedgerBackend { shared, settings, topic, instance, native, state }
    }

    /// Whether there is a ledger; none is made.
    pub(super) async fn is_there(&self, deadline: Instant) -> Result<bool> {
        if self.topic.get().is_none() {
            let name = &self.settings.topic;
            let find = Box::pin(LedgerTopic::find(&self.shared.cluster, name, deadline));
            let found = in_time(deadline, || format!("ledger topic {name:?} was not looked for in time"), find).await?;
            let Some(found) = found else { return Ok(false) };
            self.topic.get_or_init(|| async { Arc::new(found) }).await;
        }
        Ok(true)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn topic(&self, deadline: Instant) -> Result<&Arc<LedgerTopic>> {
        let (name, create) = (&self.settings.topic, self.settings.auto_create);
        let open = self.topic.get_or_try_init(|| async {
            let opened = Box::pin(LedgerTopic::open(&self.shared.cluster, name, create, deadline)).await?;
            Ok(Arc::new(opened))
        });
        in_time(deadline, || format!("ledger topic {name:?} was not found and checked in time"), open).await
    }

    fn stage_now(&self, staging: &Staging, acks: &ShareAcknowledgements) -> Result<()> {
        let Some(topic) = self.topic.get() else {
            return Err(Error::new(ErrorKind::InvalidState, "the ledger was not looked up"));
        };
        let mut readers: Vec<Reader> = Vec::new();
        for LedgerPart { member, lowest_ask } in &staging.parts {
            let tail = member.attach(topic, &self.settings)?;
            tail.error().map_or(Ok(()), Err)?;
            if !self.native {
                member.goes_by_ledger_alone();
                if tail.with(|r| r.has_left()) {
                    return Err(tail.left());
                }
            }
            readers.push((tail, *lowest_ask));
        }
        let mut state = self.state();
        if state.sealed {
            // A second intent of one transaction could have another's between them.
            let text = "what the transaction acknowledges was written to the ledger by a commit or prepare that did not end: \
                        nothing more can be put into it";
            return Err(Error::new(ErrorKind::InvalidState, text));
        }
        let group = state.groups.entry(Str::from(staging.member.group_id())).or_default();
        for (tail, ask) in readers {
            match group.readers.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &tail)) {
                Some((_, lowest)) => *lowest = ask.min(*lowest),
                None => group.readers.push((tail, ask)),
            }
        }
        for (tp, batch) in acks.iter() {
            let claims = group.claims.entry(tp).or_default();
            let one_for_all = batch.types().len() == 1;
            for (first, ack) in (batch.first_offset()..).zip(batch.types()) {
                let last = if one_for_all { batch.last_offset() } else { first };
                claim(claims, tp, ClaimedRange { first, last, ack: *ack })?;
            }
        }
        Ok(())
    }

    async fn seal_now(&self, commit: &Commit, deadline: Instant) -> std::result::Result<(), SealError> {
        let by_partition = {
            let state = self.state();
            if state.sealed || state.groups.is_empty() {
                return Ok(());
            }
            let mut by_partition: BTreeMap<i32, Vec<Str>> = BTreeMap::new();
            for (name, group) in &state.groups {
                // All readers of a group read the same partition.
                let Some((tail, _)) = group.readers.first() else { continue };
                by_partition.entry(tail.with(|r| r.partition())).or_default().push(name.clone());
            }
            by_partition
        };
        self.check_outputs(deadline).await?;
        // In the order of the partitions, each checked before the next is written to: so no two transactions wait for
        // each other.
        for (partition, groups) in by_partition {
            self.seal_partition(commit, partition, &groups, deadline).await?;
        }
        self.state().sealed = true;
        Ok(())
    }

    /// Whoever loses records of the ledger must lose those of the output too.
    async fn check_outputs(&self, deadline: Instant) -> Result<()> {
        let topic = Arc::clone(self.topic(deadline).await?);
        let topics: Vec<Str> = self.shared.with(|s| s.machine.topics().cloned().collect());
        for name in topics {
            if name.as_str() == topic.name || self.state().outputs.contains(&name) {
                continue;
            }
            let text = || format!("output topic {name:?} was not compared with ledger topic {:?} in time", topic.name);
            in_time(deadline, text, Box::pin(topic.check_output(&self.shared.cluster, &name))).await?;
            self.state().outputs.insert(name);
        }
        Ok(())
    }

    async fn seal_partition(
        &self,
        commit: &Commit,
        partition: i32,
        groups: &[Str],
        deadline: Instant,
    ) -> std::result::Result<(), SealError> {
        let readers = {
            let state = self.state();
            let readers = groups.iter().filter_map(|name| state.groups.get(name)).flat_map(|g| g.readers.clone());
            readers.collect::<Vec<Reader>>()
        };
        for (tail, _) in &readers {
            caught_up(tail, deadline).await?;
        }
        let written = self.draft(commit, groups, &readers);
        let (key, intent) = (written.0.key, LedgerRecord::Intent(written.0.key, written.1));
        for (tail, _) in &readers {
            tail.with(|r| r.watch(key, commit.identity.id));
        }
        let tombstones: Vec<LedgerRecord> =
            self.take_tombstones(&readers).into_iter().map(LedgerRecord::Tombstone).collect();
        let mut before = Vec::with_capacity(tombstones.len());
        for tombstone in &tombstones {
            before.push(self.write(partition, tombstone, deadline).await?);
        }
        let delivery = self.write(partition, &intent, deadline).await?;
        self.shared.with(|s| s.machine.seal_all());
        self.shared.work.notify_one();
        let offset = match tokio::time::timeout_at(deadline.into(), delivery).await {
            Ok(Ok(record)) => record.offset,
            Ok(Err(error)) => return Err(self.not_written(error).into()),
            Err(_) => return Err(self.not_written_in_time(partition).into()),
        };
        if offset < 0 {
            let text = "the broker did not tell where the intent lies in the ledger";
            return Err(Error::new(ErrorKind::Protocol, text).with_severity(Severity::Abortable).into());
        }
        self.shared.metrics.ledger_intent();
        let places: Option<Vec<i64>> = before.iter().map(written_at).chain([Some(offset)]).collect();
        for (tail, _) in &readers {
            tail.with(|r| {
                r.handle_written(&key, offset);
                if let Some(places) = &places {
                    let records = tombstones.iter().chain([&intent]).cloned();
                    // The check, which comes next, tells the error.
                    let _ = r.handle_own_records(
                        Instant::now(),
                        commit.identity,
                        places.iter().copied().zip(records).collect(),
                    );
                }
            });
        }
        self.check(&readers, &key, offset, deadline).await
    }

    /// The intent for some groups. It is remembered before it is written: what becomes of it must be followed in any case.
    fn draft(&self, commit: &Commit, groups: &[Str], readers: &[Reader]) -> (Written, Intent) {
        let mut state = self.state();
        state.counter += 1;
        let written =
            Written { key: IntentKey { instance: self.instance, counter: state.counter }, readers: readers.to_vec() };
        state.written.push(written.clone());
        let mut parts = Vec::new();
        for name in groups {
            let Some(group) = state.groups.get(name) else { continue };
            let generation = group.readers.iter().map(|(tail, _)| tail.with(|r| r.generation())).max().unwrap_or(0);
            let claims: Claims = group.claims.iter().map(|(tp, ranges)| (*tp, merged(ranges))).collect();
            parts.push(GroupClaims { group: name.clone(), generation, claims });
        }
        let (transactional_id, two_phase) = (commit.transactional_id.clone(), commit.two_phase);
        (written, Intent { transactional_id, two_phase, native: self.native, groups: parts })
    }

    fn take_tombstones(&self, readers: &[Reader]) -> BTreeSet<IntentKey> {
        self.state().shared.retain(|written| !settle_shared(written));
        let mut all = BTreeSet::new();
        for (tail, _) in readers {
            let keys = tail.with(|r| r.take_tombstones(MAX_TOMBSTONES.saturating_sub(all.len())));
            if !keys.is_empty() {
                all.extend(keys.iter().copied());
                self.state().tombstones.push((Arc::clone(tail), keys));
            }
        }
        self.shared.metrics.ledger_tombstones(all.len());
        all
    }

    fn not_written(&self, error: Error) -> Error {
        match self.topic.get() {
            Some(topic) if error.code() == Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED) => {
                topic.unauthorised("WRITE").with_severity(error.severity())
            }
            _ => error.context("writing to the ledger"),
        }
    }

    /// Brokers that have too few replicas in sync or no room on their disks are asked again and again.
    fn not_written_in_time(&self, partition: i32) -> Error {
        let name = &self.settings.topic;
        let text = format!("the intent was not written to ledger {name}-{partition} in time");
        match self.shared.with(|s| s.machine.refusal(name, partition)) {
            Some(code) => {
                let text = format!("{text}; its leader answers {code} ({})", code.about());
                timed_out(&text, None).with_code(Some(code))
            }
            None => timed_out(&text, None),
        }
    }

    async fn write(&self, partition: i32, record: &LedgerRecord, deadline: Instant) -> Result<super::Delivery> {
        let Some(topic) = self.topic.get() else {
            return Err(Error::new(ErrorKind::InvalidState, "the ledger was not looked up"));
        };
        let (key, value) = record.encode(topic.layout);
        let record = ProducerRecord::new(topic.name.as_str()).partition(partition).key(key);
        let record = match value {
            Some(value) => record.value(value),
            None => record,
        };
        let text = || format!("ledger {}-{partition} was not written to in time", topic.name);
        in_time(deadline, text, self.shared.send(record)).await
    }

    /// Waits until nothing is before the intent any more.
    async fn check(
        &self,
        readers: &[Reader],
        key: &IntentKey,
        offset: i64,
        deadline: Instant,
    ) -> std::result::Result<(), SealError> {
        for (tail, lowest_ask) in readers {
            let mut news = tail.subscribe();
            let mut waited = false;
            loop {
                news.borrow_and_update();
                tail.error().map_or(Ok(()), Err)?;
                let check = tail.with(|r| r.check(Instant::now(), deadline, key, offset, *lowest_ask));
                match check.map_err(|e| tail.refused(&e))? {
                    Check::Clear => break,
                    Check::Reading => {}
                    Check::Waiting if waited => {}
                    Check::Waiting => {
                        waited = true;
                        self.shared.metrics.ledger_wait();
                    }
                    stopped => {
                        self.shared.metrics.ledger_conflict();
                        return Err(stop(tail, stopped));
                    }
                }
                tail.read_on();
                if tokio::time::timeout_at(deadline.into(), news.changed()).await.is_err() {
                    let text = "the ledger was not read up to the transaction's intent, or those before it did not end, in time";
                    return Err(timed_out(text, tail.trouble()).into());
                }
            }
        }
        Ok(())
    }

    async fn verdict_now(&self, deadline: Instant) -> Result<Option<bool>> {
        let first = self.state().written.first().cloned();
        match first {
            Some(written) => verdict_of(&written, deadline).await,
            None => Ok(None),
        }
    }

    /// Forgets the transaction; answers what is to be told of its end.
    fn take_written(&self) -> (Vec<Written>, Tombstones) {
        let mut state = self.state();
        state.groups.clear();
        state.sealed = false;
        (std::mem::take(&mut state.written), std::mem::take(&mut state.tombstones))
    }
}

/// Where a record lies that was sent before one that is there.
fn written_at(delivery: &super::Delivery) -> Option<i64> {
    delivery.try_result()?.ok().map(|record| record.offset)
}

async fn verdict_of(Written { key, readers }: &Written, deadline: Instant) -> Result<Option<bool>> {
    let Some((tail, _)) = readers.first() else { return Ok(None) };
    let mut news = tail.subscribe();
    loop {
        news.borrow_and_update();
        match tail.with(|r| r.verdict(key)) {
            Some(Verdict::Committed) => return Ok(Some(true)),
            Some(Verdict::Aborted) => return Ok(Some(false)),
            Some(_) => return Ok(None),
            None => {}
        }
        tail.error().map_or(Ok(()), Err)?;
        tail.read_on();
        if tokio::time::timeout_at(deadline.into(), news.changed()).await.is_err() {
            return Err(timed_out("the end of the transaction was not read from the ledger in time", tail.trouble()));
        }
    }
}

/// Whether nothing of a committed intent is to be waited for any more: each offset was confirmed to one of its group's readers,
/// or somebody has tombstoned it.
fn settle_shared(Written { key, readers }: &Written) -> bool {
    let mut left: BTreeMap<Str, Claims> = BTreeMap::new();
    for (tail, _) in readers {
        let (group, claims) = tail.with(|r| (r.group().clone(), r.unconfirmed(key).cloned()));
        let Some(claims) = claims else { return true };
        let claims = left.get(&group).map_or(claims.clone(), |known| common_claims(known, &claims));
        left.insert(group, claims);
    }
    let done = left.values().all(Claims::is_empty);
    if done {
        readers.iter().for_each(|(tail, _)| tail.with(|r| r.handle_done(key)));
    }
    done
}

/// Tells the readers how the transaction of some intents ended.
fn conclude(written: Vec<Written>, tombstones: Tombstones, committed: bool) {
    for Written { key, readers } in written {
        let shared = readers.len() > 1;
        for (tail, _) in readers {
            tail.with(|r| {
                if committed {
                    r.handle_committed(&key, shared);
                }
                r.unwatch(&key);
            });
            if !committed {
                // Its records come again at once, and are set aside as long as the marker was not read.
                tail.read_on();
            }
        }
    }
    if !committed {
        for (tail, keys) in tombstones {
            tail.with(|r| r.return_tombstones(keys));
        }
    }
}

impl AckBackend for LedgerBackend {
    fn check<'a>(&'a self, _v2: bool, deadline: Instant) -> Boxed<'a, Result<()>> {
        Box::pin(async move { self.topic(deadline).await.map(drop) })
    }

    fn adopt(&self, acks: &mut ShareAcknowledgements, member: &ShareGroupMetadata) -> Result<Vec<LedgerPart>> {
        let unsupported = |text: &str| Err(Error::new(ErrorKind::Unsupported, text));
        if acks.is_by_hand() {
            let Some(consumer) = member.member() else {
                return unsupported(
                    "acknowledgements of a ShareGroupMetadata that was put together by hand cannot go by the ledger, which \
                     needs to know the consumer: pass the consumer's share_group_metadata()",
                );
            };
            if !acks.origins().is_empty() {
                return unsupported(
                    "acknowledgements that were put together by hand cannot be merged with a consumer's own in one call, on the \
                     ledger: stage them in two calls",
                );
            }
            let part = consumer.stage(acks)?;
            acks.add_origin(part);
            acks.set_adopted();
        }
        let parts: Option<Vec<LedgerPart>> = acks.origins().iter().map(|origin| origin.ledger()).collect();
        match parts {
            Some(parts) => check_group(parts.iter().map(|part| &part.member), member).map(|()| parts),
            None => unsupported("the giver of these acknowledgements cannot have them go by the ledger"),
        }
    }

    fn stage<'a>(
        &'a self,
        staging: &'a Staging,
        acks: &'a ShareAcknowledgements,
        deadline: Instant,
    ) -> Boxed<'a, Result<Refusals>> {
        Box::pin(async move {
            self.topic(deadline).await?;
            self.stage_now(staging, acks).map(|()| Refusals::new())
        })
    }

    fn is_ledger(&self) -> bool {
        true
    }

    fn is_native(&self) -> bool {
        self.native
    }

    fn is_unsealed(&self) -> bool {
        let state = self.state();
        // By brokers alone it may have been.
        state.written.is_empty() && (!self.native || !state.groups.is_empty())
    }

    fn seal<'a>(&'a self, commit: &'a Commit, deadline: Instant) -> Boxed<'a, std::result::Result<(), SealError>> {
        Box::pin(self.seal_now(commit, deadline))
    }

    fn verdict<'a>(&'a self, deadline: Instant) -> Boxed<'a, Result<Option<bool>>> {
        Box::pin(self.verdict_now(deadline))
    }

    fn knows_verdict(&self) -> bool {
        !self.state().written.is_empty()
    }

    fn ended(&self, end: TransactionEnd) {
        let (written, tombstones) = self.take_written();
        let shared: Vec<Written> = written.iter().filter(|w| w.readers.len() > 1).cloned().collect();
        conclude(written, tombstones, end == TransactionEnd::Committed);
        if end == TransactionEnd::Committed {
            self.state().shared.extend(shared);
        }
    }

    fn follow(&self, deadline: Instant) -> Option<Boxed<'static, Option<bool>>> {
        let (written, tombstones) = self.take_written();
        let first = written.first().cloned()?;
        Some(Box::pin(async move {
            let found = verdict_of(&first, deadline).await.ok().flatten();
            conclude(written, tombstones, found == Some(true));
            found
        }))
    }
}

/// Waits until a reader has read to the end that the ledger had when it began: before that the group's generation is not
/// known.
async fn caught_up(tail: &Tail, deadline: Instant) -> Result<()> {
    let mut news = tail.subscribe();
    loop {
        news.borrow_and_update();
        tail.error().map_or(Ok(()), Err)?;
        if tail.with(|r| r.is_caught_up()) {
            return Ok(());
        }
        tail.read_on();
        if tokio::time::timeout_at(deadline.into(), news.changed()).await.is_err() {
            return Err(timed_out("the ledger was not read to its end in time", tail.trouble()));
        }
    }
}

/// Nothing of a commit may take longer than its deadline, whatever the limits of the requests are.
async fn in_time<T>(
    deadline: Instant,
    text: impl FnOnce() -> String,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    match tokio::time::timeout_at(deadline.into(), work).await {
        Ok(result) => result,
        Err(_) => Err(timed_out(&text(), None)),
    }
}

fn timed_out(text: &str, trouble: Option<Error>) -> Error {
    let text = match trouble {
        Some(trouble) => format!("{text}: {trouble}"),
        None => text.to_owned(),
    };
    Error::new(ErrorKind::Timeout, text).with_severity(Severity::Abortable)
}

fn stop(tail: &Tail, check: Check) -> SealError {
    if check == Check::Left {
        return tail.left().into();
    }

    let group = tail.with(|r| r.group().clone());
    let contended = |done| Some(vec![(group.clone(), done)]);
    let (text, contended) = match check {
        Check::Conflicts(done) => {
            let records: u64 = done.iter().map(|c| c.last.abs_diff(c.first) + 1).sum();
            let text = format!(
                "{records} of the records of share group {:?} were done by another member meanwhile, as their locks had expired; \
                 they are left out when the transaction is done again",
                group.as_str()
            );
            (text, contended(done))
        }
        Check::Blocked => {
            let text = format!(
                "records of share group {:?} are held by another member's transaction that must not or cannot be ended from \
                 here (two-phase commit, or no right to WRITE on its transactional id)",
                group.as_str()
            );
            (text, contended(Vec::new()))
        }
        Check::Dropped => {
            let text = "this client was stopped for so long that the ledger has moved on, or the group's offsets were reset: what it \
                        held comes again";
            (text.to_owned(), None)
        }
        _ => {
            let text = "another member has ended the transaction, as it waited for its records, or the coordinator has, for its age";
            (text.to_owned(), None)
        }
    };
    SealError { error: Error::new(ErrorKind::TransactionAborted, text), contended }
}

/// Adds a range to what is claimed already.
fn claim(claims: &mut BTreeMap<i64, ClaimedRange>, tp: TopicIdPartition, range: ClaimedRange) -> Result<()> {
    let before = claims.range(..=range.last).next_back().filter(|(_, b)| b.last >= range.first);
    if let Some((_, before)) = before {
        let text = format!(
            "{}-{}: offsets {} to {} were put into this transaction before",
            tp.topic_id, tp.partition, before.first, before.last
        );
        return Err(Error::new(ErrorKind::InvalidInput, text));
    }
    claims.insert(range.first, range);
    Ok(())
}

/// Neighbours of one type as one range.
fn merged(ranges: &BTreeMap<i64, ClaimedRange>) -> Vec<ClaimedRange> {
    let mut all: Vec<ClaimedRange> = Vec::new();
    for range in ranges.values() {
        match all.last_mut().filter(|last| last.ack == range.ack && last.last + 1 == range.first) {
            Some(last) => last.last = range.last,
            None => all.push(*range),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AckType, Admin, ClientConfig, TransactionalProducer};
    use kafka_share_broker::EmbeddedBroker;

    #[tokio::test]
    async fn nothing_is_staged_behind_an_intent_until_its_transaction_has_ended() {
        let broker = EmbeddedBroker::builder().transactional_acks(false).start().await.unwrap();
        let servers = broker.bootstrap_servers();
        let admin = Admin::new(ClientConfig::new(&servers)).unwrap();
        admin.create_ledger(&crate::ledger::NewLedger::new()).await.unwrap();
        let producer = TransactionalProducer::builder(&servers, "t").build().unwrap();
        let backend = LedgerBackend::new(Arc::clone(producer.shared()), LedgerSettings::default(), false);
        let staging = Staging {
            transactional_id: "t".into(),
            identity: ProducerIdentity::NONE,
            v2: true,
            member: ShareGroupMetadata::new("g", "m", 1),
            parts: Vec::new(),
        };
        let mut acks = ShareAcknowledgements::new();
        let tp = TopicIdPartition { topic_id: Uuid::from_halves(1, 2), partition: 0 };
        acks.add(tp, 0, 4, AckType::Accept).unwrap();
        let deadline = Instant::now() + std::time::Duration::from_secs(30);
        AckBackend::check(&backend, true, deadline).await.unwrap();
        // A prepare wrote its intent, and was dropped before it had ended.
        backend.state().sealed = true;
        let error = backend.stage(&staging, &acks, deadline).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
        assert!(error.to_string().contains("prepare that did not end"), "{error}");
        backend.ended(TransactionEnd::Aborted);
        assert!(backend.stage(&staging, &acks, deadline).await.unwrap().is_empty());
    }
}
