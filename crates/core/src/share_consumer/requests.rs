//! Requests of a share session, built from what was taken for them.

use super::ShareConsumer;
use super::actions::is_renewal;
use crate::share_acks::{AckBatch, Taken};
use crate::share_session::SessionPlan;
use kafka_share_messages::share_acknowledge_request as ack_request;
use kafka_share_messages::share_fetch_request as fetch_request;
use kafka_share_messages::{ShareAcknowledgeRequest, ShareFetchRequest};
use std::collections::BTreeMap;
use std::time::Duration;

impl ShareConsumer {
    pub(super) fn acknowledge_request(&self, epoch: i32, taken: &[Taken]) -> ShareAcknowledgeRequest {
        let batch = |b: &AckBatch| ack_request::AcknowledgementBatch {
            first_offset: b.first,
            last_offset: b.last,
            acknowledge_types: b.types.clone(),
            ..Default::default()
        };
        let mut topics: BTreeMap<_, BTreeMap<i32, Vec<_>>> = BTreeMap::new();
        for t in taken {
            let batches = topics.entry(t.tp.topic_id).or_default().entry(t.tp.partition).or_default();
            batches.extend(t.batches.iter().map(batch));
        }
        let renew = taken.iter().any(is_renewal);
        let partition = |(partition_index, mut batches): (i32, Vec<ack_request::AcknowledgementBatch>)| {
            batches.sort_by_key(|b| b.first_offset);
            ack_request::AcknowledgePartition {
                partition_index,
                acknowledgement_batches: batches,
                ..Default::default()
            }
        };
        ShareAcknowledgeRequest {
            group_id: Some(self.config.group_id.clone()),
            member_id: Some(self.config.member_id.clone()),
            share_session_epoch: epoch,
            is_renew_ack: renew,
            topics: topics
                .into_iter()
                .map(|(topic_id, parts)| ack_request::AcknowledgeTopic {
                    topic_id,
                    partitions: parts.into_iter().map(partition).collect(),
                    ..Default::default()
                })
                .collect(),
            ..ShareAcknowledgeRequest::default()
        }
    }

    pub(super) fn fetch_request(&self, plan: &SessionPlan, taken: &[Taken], wait: Duration) -> ShareFetchRequest {
        let mut topics: BTreeMap<_, BTreeMap<i32, Vec<fetch_request::AcknowledgementBatch>>> = BTreeMap::new();
        for tp in &plan.listed {
            topics.entry(tp.topic_id).or_default().entry(tp.partition).or_default();
        }
        for t in taken {
            let batches = topics.entry(t.tp.topic_id).or_default().entry(t.tp.partition).or_default();
            batches.extend(t.batches.iter().map(|b| fetch_request::AcknowledgementBatch {
                first_offset: b.first,
                last_offset: b.last,
                acknowledge_types: b.types.clone(),
                ..Default::default()
            }));
        }
        let mut forgotten: BTreeMap<_, Vec<i32>> = BTreeMap::new();
        for tp in &plan.forgotten {
            forgotten.entry(tp.topic_id).or_default().push(tp.partition);
        }
        let partition = |(partition_index, mut batches): (i32, Vec<fetch_request::AcknowledgementBatch>)| {
            batches.sort_by_key(|b| b.first_offset);
            fetch_request::FetchPartition { partition_index, acknowledgement_batches: batches, ..Default::default() }
        };
        let number = |records: usize| i32::try_from(records).unwrap_or(i32::MAX);
        ShareFetchRequest {
            group_id: Some(self.config.group_id.clone()),
            member_id: Some(self.config.member_id.clone()),
            share_session_epoch: plan.epoch,
            max_wait_ms: i32::try_from(wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: self.config.min_bytes,
            max_bytes: self.config.max_bytes,
            max_records: number(self.fetch_size()),
            // Acknowledgements come by polls, whatever is fetched ahead.
            batch_size: number(self.config.max_poll_records),
            share_acquire_mode: i8::from(self.config.record_limit),
            topics: topics
                .into_iter()
                .map(|(topic_id, parts)| fetch_request::FetchTopic {
                    topic_id,
                    partitions: parts.into_iter().map(partition).collect(),
                    ..Default::default()
                })
                .collect(),
            forgotten_topics_data: forgotten
                .into_iter()
                .map(|(topic_id, partitions)| fetch_request::ForgottenTopic {
                    topic_id,
                    partitions,
                    ..Default::default()
                })
                .collect(),
            ..ShareFetchRequest::default()
        }
    }
}
