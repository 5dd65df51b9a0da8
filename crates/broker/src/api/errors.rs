//! Answers that carry an error wherever they have room for one, for injected faults.

use super::{Answer, RequestContext};
use crate::cluster::CloseReason;
use kafka_share_messages::*;
use kafka_share_wire::Reader;

/// Answers with `code` without serving the request; closes where the API's answer has no error code.
pub(crate) fn error_answer(ctx: &RequestContext, body: Reader, code: ErrorCode) -> Result<Answer, CloseReason> {
    macro_rules! plain {
        ($($key:literal => $response:ident),* $(,)?) => {
            match ctx.key.0 {
                $($key => Some(ctx.answer(&$response { error_code: code, ..Default::default() })),)*
                _ => None,
            }
        };
    }
    let plain = plain! {
        16 => ListGroupsResponse, 17 => SaslHandshakeResponse, 18 => ApiVersionsResponse, 36 => SaslAuthenticateResponse, 22 => InitProducerIdResponse, 26 => EndTxnResponse,
        60 => DescribeClusterResponse, 66 => ListTransactionsResponse, 74 => ListConfigResourcesResponse,
        76 => ShareGroupHeartbeatResponse, 78 => ShareFetchResponse, 79 => ShareAcknowledgeResponse,
        91 => AlterShareGroupOffsetsResponse, 92 => DeleteShareGroupOffsetsResponse, 95 => TxnShareAcknowledgeResponse, 96 => AddShareAcksToTxnResponse,
    };
    match (plain, ctx.key.0) {
        (Some(answer), _) => Ok(answer),
        (None, 0) => Ok(ctx.answer(&produce(ctx.decode(body)?, code))),
        (None, 1) => Ok(ctx.answer(&fetch(ctx, ctx.decode(body)?, code))),
        (None, 2) => Ok(ctx.answer(&list_offsets(ctx.decode(body)?, code))),
        (None, 3) => Ok(ctx.answer(&metadata(ctx.decode(body)?, code))),
        (None, 10) => Ok(ctx.answer(&find_coordinator(ctx, ctx.decode(body)?, code))),
        (None, 19) => Ok(ctx.answer(&create_topics(ctx.decode(body)?, code))),
        (None, 24) => Ok(ctx.answer(&add_partitions(ctx.decode(body)?, code))),
        (None, _) => super::errors_admin::error_answer(ctx, body, code).unwrap_or(Err(CloseReason::Fault)),
    }
}

fn produce(request: ProduceRequest, error_code: ErrorCode) -> ProduceResponse {
    use produce_response::{PartitionProduceResponse, TopicProduceResponse};
    let topic = |topic: produce_request::TopicProduceData| TopicProduceResponse {
        name: topic.name,
        topic_id: topic.topic_id,
        partition_responses: topic
            .partition_data
            .iter()
            .map(|p| PartitionProduceResponse { index: p.index, error_code, base_offset: -1, ..Default::default() })
            .collect(),
        ..Default::default()
    };
    ProduceResponse { responses: request.topic_data.into_iter().map(topic).collect(), ..Default::default() }
}

fn fetch(ctx: &RequestContext, request: FetchRequest, error_code: ErrorCode) -> FetchResponse {
    use fetch_response::{FetchableTopicResponse, PartitionData};
    let of_session = matches!(
        error_code,
        ErrorCode::FETCH_SESSION_ID_NOT_FOUND
            | ErrorCode::INVALID_FETCH_SESSION_EPOCH
            | ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR
    );
    if ctx.version >= 7 && of_session {
        return FetchResponse { error_code, ..Default::default() };
    }
    let partition = |p: &fetch_request::FetchPartition| PartitionData {
        partition_index: p.partition,
        error_code,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        records: Some(bytes::Bytes::new()),
        ..Default::default()
    };
    let topic = |topic: fetch_request::FetchTopic| FetchableTopicResponse {
        topic: topic.topic,
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(partition).collect(),
        ..Default::default()
    };
    FetchResponse { responses: request.topics.into_iter().map(topic).collect(), ..Default::default() }
}

fn list_offsets(request: ListOffsetsRequest, error_code: ErrorCode) -> ListOffsetsResponse {
    use list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
    let partition = |p: &list_offsets_request::ListOffsetsPartition| ListOffsetsPartitionResponse {
        partition_index: p.partition_index,
        error_code,
        timestamp: -1,
        offset: -1,
        ..Default::default()
    };
    let topic = |topic: list_offsets_request::ListOffsetsTopic| ListOffsetsTopicResponse {
        name: topic.name,
        partitions: topic.partitions.iter().map(partition).collect(),
        ..Default::default()
    };
    ListOffsetsResponse { topics: request.topics.into_iter().map(topic).collect(), ..Default::default() }
}

fn metadata(request: MetadataRequest, error_code: ErrorCode) -> MetadataResponse {
    use metadata_response::MetadataResponseTopic;
    let topic = |topic: metadata_request::MetadataRequestTopic| MetadataResponseTopic {
        error_code,
        name: Some(topic.name.unwrap_or_default()),
        topic_id: topic.topic_id,
        ..Default::default()
    };
    let topics = request.topics.unwrap_or_default().into_iter().map(topic).collect();
    MetadataResponse { topics, controller_id: -1, error_code, ..Default::default() }
}

fn find_coordinator(ctx: &RequestContext, request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse {
    use find_coordinator_response::Coordinator;
    if ctx.version < 4 {
        return FindCoordinatorResponse { error_code: code, node_id: -1, port: -1, ..Default::default() };
    }
    let one = |key| Coordinator { key, node_id: -1, port: -1, error_code: code, ..Default::default() };
    let coordinators = request.coordinator_keys.into_iter().map(one).collect();
    FindCoordinatorResponse { coordinators, ..Default::default() }
}

fn create_topics(request: CreateTopicsRequest, error_code: ErrorCode) -> CreateTopicsResponse {
    use create_topics_response::CreatableTopicResult;
    let one = |t: create_topics_request::CreatableTopic| CreatableTopicResult {
        name: t.name,
        error_code,
        num_partitions: -1,
        replication_factor: -1,
        ..Default::default()
    };
    CreateTopicsResponse { topics: request.topics.into_iter().map(one).collect(), ..Default::default() }
}

fn add_partitions(request: AddPartitionsToTxnRequest, code: ErrorCode) -> AddPartitionsToTxnResponse {
    use add_partitions_to_txn_response::{
        AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
    };
    let partition = |index: i32| AddPartitionsToTxnPartitionResult {
        partition_index: index,
        partition_error_code: code,
        ..Default::default()
    };
    let topic = |topic: add_partitions_to_txn_request::AddPartitionsToTxnTopic| AddPartitionsToTxnTopicResult {
        name: topic.name,
        results_by_partition: topic.partitions.into_iter().map(partition).collect(),
        ..Default::default()
    };
    let txn = |txn: add_partitions_to_txn_request::AddPartitionsToTxnTransaction| AddPartitionsToTxnResult {
        transactional_id: txn.transactional_id,
        topic_results: txn.topics.into_iter().map(topic).collect(),
        ..Default::default()
    };
    AddPartitionsToTxnResponse {
        results_by_transaction: request.transactions.into_iter().map(txn).collect(),
        results_by_topic_v3_and_below: request.v3_and_below_topics.into_iter().map(topic).collect(),
        ..Default::default()
    }
}
