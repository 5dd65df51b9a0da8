//! Answers of administrators' APIs that carry an error for each thing that was asked for, for injected faults.

use super::{Answer, RequestContext};
use crate::cluster::CloseReason;
use kafka_share_messages::*;
use kafka_share_wire::Reader;

/// The answer of an API that has no error code of its own but one per entry; `None` for other APIs.
pub(super) fn error_answer(ctx: &RequestContext, body: Reader, code: ErrorCode) -> Option<Result<Answer, CloseReason>> {
    macro_rules! entries {
        ($($key:literal => $answer:ident),* $(,)?) => {
            match ctx.key.0 {
                $($key => Some(ctx.decode(body).map(|request| ctx.answer(&$answer(request, code)))),)*
                _ => None,
            }
        };
    }
    entries! {
        20 => delete_topics, 21 => delete_records, 27 => write_txn_markers, 32 => describe_configs,
        37 => create_partitions, 42 => delete_groups, 44 => alter_configs, 61 => describe_producers,
        65 => describe_transactions, 75 => describe_partitions, 77 => describe_groups, 90 => describe_offsets,
    }
}

fn delete_topics(request: DeleteTopicsRequest, error_code: ErrorCode) -> DeleteTopicsResponse {
    use delete_topics_response::DeletableTopicResult as Entry;
    let named = request.topic_names.into_iter().map(|name| (Some(name), kafka_share_wire::Uuid::ZERO));
    let asked = request.topics.into_iter().map(|topic| (topic.name, topic.topic_id)).chain(named);
    let responses = asked.map(|(name, topic_id)| Entry { name, topic_id, error_code, ..Default::default() }).collect();
    DeleteTopicsResponse { responses, ..Default::default() }
}

fn delete_records(request: DeleteRecordsRequest, error_code: ErrorCode) -> DeleteRecordsResponse {
    use delete_records_response::{DeleteRecordsPartitionResult as Entry, DeleteRecordsTopicResult as Topic};
    let entry = |p: &delete_records_request::DeleteRecordsPartition| Entry {
        partition_index: p.partition_index,
        low_watermark: -1,
        error_code,
        ..Default::default()
    };
    let topic = |topic: delete_records_request::DeleteRecordsTopic| Topic {
        partitions: topic.partitions.iter().map(entry).collect(),
        name: topic.name,
        ..Default::default()
    };
    DeleteRecordsResponse { topics: request.topics.into_iter().map(topic).collect(), ..Default::default() }
}

fn write_txn_markers(request: WriteTxnMarkersRequest, error_code: ErrorCode) -> WriteTxnMarkersResponse {
    use write_txn_markers_response::{
        WritableTxnMarkerPartitionResult as Entry, WritableTxnMarkerResult as Marker,
        WritableTxnMarkerTopicResult as Topic,
    };
    let entry = |index: &i32| Entry { partition_index: *index, error_code, ..Default::default() };
    let topic = |topic: write_txn_markers_request::WritableTxnMarkerTopic| Topic {
        partitions: topic.partition_indexes.iter().map(entry).collect(),
        name: topic.name,
        ..Default::default()
    };
    let marker = |marker: write_txn_markers_request::WritableTxnMarker| Marker {
        producer_id: marker.producer_id,
        topics: marker.topics.into_iter().map(topic).collect(),
        ..Default::default()
    };
    WriteTxnMarkersResponse { markers: request.markers.into_iter().map(marker).collect(), ..Default::default() }
}

fn describe_configs(request: DescribeConfigsRequest, error_code: ErrorCode) -> DescribeConfigsResponse {
    use describe_configs_response::DescribeConfigsResult as Entry;
    let entry = |resource: describe_configs_request::DescribeConfigsResource| Entry {
        error_code,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        ..Default::default()
    };
    DescribeConfigsResponse { results: request.resources.into_iter().map(entry).collect(), ..Default::default() }
}

fn create_partitions(request: CreatePartitionsRequest, error_code: ErrorCode) -> CreatePartitionsResponse {
    use create_partitions_response::CreatePartitionsTopicResult as Entry;
    let entry = |topic: create_partitions_request::CreatePartitionsTopic| Entry {
        name: topic.name,
        error_code,
        ..Default::default()
    };
    CreatePartitionsResponse { results: request.topics.into_iter().map(entry).collect(), ..Default::default() }
}

fn delete_groups(request: DeleteGroupsRequest, error_code: ErrorCode) -> DeleteGroupsResponse {
    use delete_groups_response::DeletableGroupResult as Entry;
    let entry = |group_id| Entry { group_id, error_code, ..Default::default() };
    DeleteGroupsResponse { results: request.groups_names.into_iter().map(entry).collect(), ..Default::default() }
}

fn alter_configs(request: IncrementalAlterConfigsRequest, error_code: ErrorCode) -> IncrementalAlterConfigsResponse {
    use incremental_alter_configs_response::AlterConfigsResourceResponse as Entry;
    let entry = |resource: incremental_alter_configs_request::AlterConfigsResource| Entry {
        error_code,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        ..Default::default()
    };
    let responses = request.resources.into_iter().map(entry).collect();
    IncrementalAlterConfigsResponse { responses, ..Default::default() }
}

fn describe_producers(request: DescribeProducersRequest, error_code: ErrorCode) -> DescribeProducersResponse {
    use describe_producers_response::{PartitionResponse as Entry, TopicResponse as Topic};
    let entry = |index: &i32| Entry { partition_index: *index, error_code, ..Default::default() };
    let topic = |topic: describe_producers_request::TopicRequest| Topic {
        partitions: topic.partition_indexes.iter().map(entry).collect(),
        name: topic.name,
        ..Default::default()
    };
    DescribeProducersResponse { topics: request.topics.into_iter().map(topic).collect(), ..Default::default() }
}

fn describe_transactions(request: DescribeTransactionsRequest, error_code: ErrorCode) -> DescribeTransactionsResponse {
    use describe_transactions_response::TransactionState as Entry;
    let entry = |transactional_id| Entry { transactional_id, error_code, ..Default::default() };
    let transaction_states = request.transactional_ids.into_iter().map(entry).collect();
    DescribeTransactionsResponse { transaction_states, ..Default::default() }
}

fn describe_partitions(
    request: DescribeTopicPartitionsRequest,
    error_code: ErrorCode,
) -> DescribeTopicPartitionsResponse {
    use describe_topic_partitions_response::DescribeTopicPartitionsResponseTopic as Entry;
    let entry = |topic: describe_topic_partitions_request::TopicRequest| Entry {
        name: Some(topic.name),
        error_code,
        ..Default::default()
    };
    DescribeTopicPartitionsResponse { topics: request.topics.into_iter().map(entry).collect(), ..Default::default() }
}

fn describe_groups(request: ShareGroupDescribeRequest, error_code: ErrorCode) -> ShareGroupDescribeResponse {
    use share_group_describe_response::DescribedGroup as Entry;
    let entry = |group_id| Entry { group_id, error_code, ..Default::default() };
    ShareGroupDescribeResponse { groups: request.group_ids.into_iter().map(entry).collect(), ..Default::default() }
}

fn describe_offsets(
    request: DescribeShareGroupOffsetsRequest,
    error_code: ErrorCode,
) -> DescribeShareGroupOffsetsResponse {
    use describe_share_group_offsets_response::DescribeShareGroupOffsetsResponseGroup as Entry;
    let entry = |group: describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup| Entry {
        group_id: group.group_id,
        error_code,
        ..Default::default()
    };
    DescribeShareGroupOffsetsResponse { groups: request.groups.into_iter().map(entry).collect(), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use crate::api::versions;
    use crate::cluster::tests::Client;
    use crate::{Fault, FaultAction};
    use kafka_share_messages::*;
    use kafka_share_wire::Str;
    use std::collections::BTreeSet;

    /// Asks with an error injected; the code must be in the answer as often as told.
    fn ask<R>(asked: &mut BTreeSet<i16>, request: R, times: usize)
    where
        R: Request<Response: std::fmt::Debug>,
    {
        let mut client = Client::with(1, |config| config.features.two_phase_commit = true);
        // A code that no field of the answers holds by chance.
        client.cluster.inject(Fault::new(FaultAction::Error(ErrorCode(0x5a5b))));
        let answer = client.call(&request);
        let text = format!("{answer:?}");
        assert_eq!(text.matches("23131").count(), times, "{text}");
        asked.insert(R::KEY.0);
    }

    #[test]
    fn every_api_answers_with_an_injected_error() {
        let mut asked = BTreeSet::new();
        single_errors(&mut asked);
        errors_per_entry(&mut asked);
        nested_errors(&mut asked);
        let served = (0..100).filter(|key| versions(&crate::BrokerFeatures::default(), ApiKey(*key)).is_some());
        assert_eq!(served.collect::<BTreeSet<i16>>(), asked);
    }

    fn single_errors(asked: &mut BTreeSet<i16>) {
        ask(asked, ListGroupsRequest::default(), 1);
        ask(asked, ApiVersionsRequest::default(), 1);
        ask(asked, SaslHandshakeRequest::default(), 1);
        ask(asked, SaslAuthenticateRequest::default(), 1);
        ask(asked, DescribeClusterRequest::default(), 1);
        ask(asked, ListConfigResourcesRequest::default(), 1);
        ask(asked, EndTxnRequest::default(), 1);
        ask(asked, InitProducerIdRequest::default(), 1);
        ask(asked, ListTransactionsRequest::default(), 1);
        ask(asked, ShareGroupHeartbeatRequest::default(), 1);
        ask(asked, ShareFetchRequest::default(), 1);
        ask(asked, ShareAcknowledgeRequest::default(), 1);
        ask(asked, AlterShareGroupOffsetsRequest::default(), 1);
        ask(asked, DeleteShareGroupOffsetsRequest::default(), 1);
        ask(asked, TxnShareAcknowledgeRequest::default(), 1);
        ask(asked, AddShareAcksToTxnRequest::default(), 1);
    }

    fn errors_per_entry(asked: &mut BTreeSet<i16>) {
        let two = || vec![Str::from_static("t"), Str::from_static("t")];
        ask(asked, DeleteGroupsRequest { groups_names: two(), ..Default::default() }, 2);
        ask(asked, DescribeTransactionsRequest { transactional_ids: two(), ..Default::default() }, 2);
        ask(asked, ShareGroupDescribeRequest { group_ids: two(), ..Default::default() }, 2);
        ask(asked, FindCoordinatorRequest { coordinator_keys: two(), ..Default::default() }, 2);
        ask(asked, DeleteTopicsRequest { topics: vec![Default::default()], ..Default::default() }, 1);
        ask(asked, CreateTopicsRequest { topics: vec![Default::default()], ..Default::default() }, 1);
        ask(asked, DescribeConfigsRequest { resources: vec![Default::default()], ..Default::default() }, 1);
        ask(asked, CreatePartitionsRequest { topics: vec![Default::default()], ..Default::default() }, 1);
        ask(asked, IncrementalAlterConfigsRequest { resources: vec![Default::default()], ..Default::default() }, 1);
        ask(asked, DescribeTopicPartitionsRequest { topics: vec![Default::default()], ..Default::default() }, 1);
        ask(asked, DescribeShareGroupOffsetsRequest { groups: vec![Default::default()], ..Default::default() }, 1);
        // The answer has an error of its own besides.
        ask(asked, MetadataRequest { topics: Some(vec![Default::default()]), ..Default::default() }, 2);
    }

    fn nested_errors(asked: &mut BTreeSet<i16>) {
        let partitions = || vec![Default::default(), Default::default()];
        let topics =
            vec![delete_records_request::DeleteRecordsTopic { partitions: partitions(), ..Default::default() }];
        ask(asked, DeleteRecordsRequest { topics, ..Default::default() }, 2);
        let partition_indexes = vec![0, 1];
        let topics =
            vec![write_txn_markers_request::WritableTxnMarkerTopic { partition_indexes, ..Default::default() }];
        let markers = vec![write_txn_markers_request::WritableTxnMarker { topics, ..Default::default() }];
        ask(asked, WriteTxnMarkersRequest { markers, ..Default::default() }, 2);
        let partition_indexes = vec![0, 1];
        let topics = vec![describe_producers_request::TopicRequest { partition_indexes, ..Default::default() }];
        ask(asked, DescribeProducersRequest { topics, ..Default::default() }, 2);
        let partition_data = vec![Default::default(), Default::default()];
        let topic_data = vec![produce_request::TopicProduceData { partition_data, ..Default::default() }];
        ask(asked, ProduceRequest { topic_data, ..Default::default() }, 2);
        let partitions = vec![Default::default(), Default::default()];
        let topics = vec![fetch_request::FetchTopic { partitions, ..Default::default() }];
        ask(asked, FetchRequest { topics, ..Default::default() }, 2);
        let partitions = vec![Default::default(), Default::default()];
        let topics = vec![list_offsets_request::ListOffsetsTopic { partitions, ..Default::default() }];
        ask(asked, ListOffsetsRequest { topics, ..Default::default() }, 2);
        let partitions = vec![0, 1];
        let topics = vec![add_partitions_to_txn_request::AddPartitionsToTxnTopic { partitions, ..Default::default() }];
        let transactions =
            vec![add_partitions_to_txn_request::AddPartitionsToTxnTransaction { topics, ..Default::default() }];
        ask(asked, AddPartitionsToTxnRequest { transactions, ..Default::default() }, 2);
    }
}
