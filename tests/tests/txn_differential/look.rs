//! What a player looks at: descriptions, lists, offsets, fetched batches.

use kafka_share_messages::describe_producers_request::TopicRequest;
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use kafka_share_messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_share_messages::{
    DescribeProducersRequest, DescribeTransactionsRequest, ErrorCode, FetchRequest, FetchResponse, ListOffsetsRequest,
    ListTransactionsRequest,
};
use kafka_share_wire::records::RecordBatch;
use kafka_share_wire::{Str, Uuid};

use crate::player::Player;

/// A ListTransactions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listed<'a> {
    pub(crate) states: &'a [&'a str],
    pub(crate) producers: &'a [i64],
    pub(crate) longer_than_ms: Option<i64>,
    /// Added to the script's own name.
    pub(crate) pattern: Option<&'a str>,
}

/// A Fetch; partitions are indexes of the topic and offsets.
#[derive(Debug, Clone)]
pub(crate) struct Fetched<'a> {
    pub(crate) session: i32,
    pub(crate) epoch: i32,
    pub(crate) parts: &'a [(i32, i64)],
    pub(crate) forget: &'a [i32],
    pub(crate) committed: bool,
    pub(crate) topic: Option<Uuid>,
    pub(crate) version: i16,
}

impl Default for Fetched<'_> {
    fn default() -> Self {
        Fetched { session: 0, epoch: -1, parts: &[], forget: &[], committed: true, topic: None, version: 17 }
    }
}

impl Player {
    pub(crate) fn describe(&mut self, names: &[&str]) {
        let transactional_ids = names.iter().map(|name| Str::from(self.id(name))).collect();
        let answer = self.call(&DescribeTransactionsRequest { transactional_ids, ..Default::default() }, 0);
        for (name, state) in names.iter().zip(&answer.transaction_states) {
            let sorted = |partitions: &[i32]| {
                let mut partitions = partitions.to_vec();
                partitions.sort_unstable();
                partitions
            };
            let topics: Vec<_> =
                state.topics.iter().map(|t| (t.topic.as_str() == self.topic, sorted(&t.partitions))).collect();
            self.say(format!(
                "describe {name} -> {:?} {} {} ms began {} {} {} {topics:?}",
                state.error_code,
                state.transaction_state,
                state.transaction_timeout_ms,
                state.transaction_start_time_ms > 0,
                self.name_of(state.producer_id),
                state.producer_epoch
            ));
        }
    }

    /// Lists transactions; those of other scripts are left out.
    pub(crate) fn list(&mut self, how: &Listed<'_>) {
        let pattern = how.pattern.map(|pattern| Str::from(pattern.replace("ID", &self.unique)));
        let request = ListTransactionsRequest {
            state_filters: how.states.iter().map(|state| Str::from(*state)).collect(),
            producer_id_filters: how.producers.to_vec(),
            duration_filter: how.longer_than_ms.unwrap_or(-1),
            transactional_id_pattern: pattern,
            ..Default::default()
        };
        let answer = self.call(&request, 2);
        let own = answer.transaction_states.iter().filter(|s| s.transactional_id.ends_with(self.unique.as_str()));
        let mut own: Vec<String> = own
            .map(|s| {
                let name = s.transactional_id.trim_end_matches(&self.unique);
                format!("{name} {} {}", self.name_of(s.producer_id), s.transaction_state)
            })
            .collect();
        own.sort_unstable();
        let unknown: Vec<&str> = answer.unknown_state_filters.iter().map(Str::as_str).collect();
        let producers: Vec<String> = how.producers.iter().map(|id| self.name_of(*id)).collect();
        self.lines.push(format!(
            "list {:?} {producers:?} {:?} {:?} -> {:?} unknown {unknown:?} {own:?}",
            how.states, how.longer_than_ms, how.pattern, answer.error_code
        ));
    }

    pub(crate) fn producers(&mut self, partitions: &[i32]) {
        let topic = |name: &str, partitions: &[i32]| TopicRequest {
            name: Str::from(name),
            partition_indexes: partitions.to_vec(),
            ..Default::default()
        };
        let topics = vec![topic(&self.topic, partitions), topic("no-such-topic", &[0])];
        let answer = self.call(&DescribeProducersRequest { topics, ..Default::default() }, 0);
        for topic in &answer.topics {
            for part in &topic.partitions {
                let mut active: Vec<String> = part
                    .active_producers
                    .iter()
                    .map(|p| {
                        let id = self.name_of(p.producer_id);
                        let start = p.current_txn_start_offset;
                        let seen = p.last_timestamp > 0;
                        format!(
                            "{id} {} seq {} {seen} coord {} start {start}",
                            p.producer_epoch, p.last_sequence, p.coordinator_epoch
                        )
                    })
                    .collect();
                active.sort_unstable();
                self.lines.push(format!("producers {} -> {:?} {active:?}", part.partition_index, part.error_code));
            }
        }
    }

    /// High watermark, last stable offset and earliest offset of a partition.
    pub(crate) fn offsets(&mut self, partition: i32) {
        let found: Vec<String> = [(-1, 0), (-1, 1), (-2, 1)]
            .into_iter()
            .map(|(timestamp, isolation)| {
                let (code, offset) = self.offset(partition, timestamp, isolation);
                format!("{code:?} {offset}")
            })
            .collect();
        self.say(format!("offsets {partition} -> {found:?}"));
    }

    /// ListOffsets of one partition.
    pub(crate) fn offset(&mut self, partition: i32, timestamp: i64, isolation_level: i8) -> (ErrorCode, i64) {
        let part = ListOffsetsPartition {
            partition_index: partition,
            current_leader_epoch: -1,
            timestamp,
            ..Default::default()
        };
        let topic = ListOffsetsTopic { name: Str::from(&self.topic), partitions: vec![part], ..Default::default() };
        let request = ListOffsetsRequest { replica_id: -1, isolation_level, topics: vec![topic], ..Default::default() };
        let answer = self.call(&request, 7);
        let part = &answer.topics[0].partitions[0];
        (part.error_code, part.offset)
    }

    /// Fetches and gives the answer's session.
    pub(crate) fn fetch(&mut self, how: &Fetched<'_>) -> i32 {
        let part = |(partition, fetch_offset): &(i32, i64)| FetchPartition {
            partition: *partition,
            current_leader_epoch: -1,
            fetch_offset: *fetch_offset,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        };
        let topic_id = how.topic.unwrap_or(self.topic_id);
        let named = Str::from(&self.topic);
        let topic = FetchTopic {
            topic: named.clone(),
            topic_id,
            partitions: how.parts.iter().map(part).collect(),
            ..Default::default()
        };
        let forgotten =
            ForgottenTopic { topic: named, topic_id, partitions: how.forget.to_vec(), ..Default::default() };
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: 1 << 20,
            isolation_level: i8::from(how.committed),
            session_id: how.session,
            session_epoch: how.epoch,
            topics: if how.parts.is_empty() { Vec::new() } else { vec![topic] },
            forgotten_topics_data: if how.forget.is_empty() { Vec::new() } else { vec![forgotten] },
            ..Default::default()
        };
        let answer = self.call(&request, how.version);
        let shown = self.fetched(&answer);
        let (own, opened) = (how.session != 0, answer.session_id != 0);
        let same = answer.session_id == how.session;
        self.say(format!(
            "fetch v{} session {own} epoch {} {:?} forget {:?} -> {:?} session {opened} same {same} {shown:?}",
            how.version, how.epoch, how.parts, how.forget, answer.error_code
        ));
        answer.session_id
    }

    fn fetched(&self, answer: &FetchResponse) -> Vec<String> {
        let mut shown = Vec::new();
        for part in answer.responses.iter().flat_map(|topic| &topic.partitions) {
            let (batches, end) = self.batches(part.records.as_ref());
            let aborted: Option<Vec<String>> = part.aborted_transactions.as_ref().map(|all| {
                // A real broker lists more than the batches need, as far as its sparse index is from the next entry.
                let needed = all.iter().filter(|txn| txn.first_offset < end);
                needed.map(|txn| format!("{} from {}", self.name_of(txn.producer_id), txn.first_offset)).collect()
            });
            shown.push(format!(
                "{} {:?} hw {} lso {} start {} aborted {aborted:?} batches {:?}",
                part.partition_index,
                part.error_code,
                part.high_watermark,
                part.last_stable_offset,
                part.log_start_offset,
                batches
            ));
        }
        shown
    }

    /// Each batch: offsets, producer, flags; and the offset after the last.
    fn batches(&self, records: Option<&bytes::Bytes>) -> (Option<Vec<String>>, i64) {
        let Some(mut rest) = records.cloned() else { return (None, 0) };
        let (mut all, mut end) = (Vec::new(), 0);
        while !rest.is_empty() {
            let batch = RecordBatch::parse(&rest).expect("a whole batch");
            let last = batch.base_offset + i64::from(batch.last_offset_delta);
            let flags = (batch.is_transactional(), batch.is_control());
            let producer = if batch.has_producer_id() { self.name_of(batch.producer_id) } else { "none".to_owned() };
            let epoch = batch.producer_epoch;
            all.push(format!("{}-{last} {producer} {epoch} seq {} {flags:?}", batch.base_offset, batch.base_sequence));
            rest = rest.slice(batch.as_bytes().len()..);
            end = last + 1;
        }
        (Some(all), end)
    }
}
