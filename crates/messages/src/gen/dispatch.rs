//! Decoding by API key (generated from protocol-specs; do not edit).

use crate::reencode;
use bytes::Bytes;
use kafka_share_wire::{ErrorKind, Result};

/// Decodes a request body, checks that nothing is left, and encodes it again.
///
/// # Errors
/// Unknown keys or versions, and bodies that are not valid.
pub fn reencode_request(key: i16, version: i16, body: Bytes) -> Result<Vec<u8>> {
    match key {
        0 => reencode::<super::ProduceRequest>(version, body),
        1 => reencode::<super::FetchRequest>(version, body),
        2 => reencode::<super::ListOffsetsRequest>(version, body),
        3 => reencode::<super::MetadataRequest>(version, body),
        10 => reencode::<super::FindCoordinatorRequest>(version, body),
        16 => reencode::<super::ListGroupsRequest>(version, body),
        17 => reencode::<super::SaslHandshakeRequest>(version, body),
        18 => reencode::<super::ApiVersionsRequest>(version, body),
        19 => reencode::<super::CreateTopicsRequest>(version, body),
        20 => reencode::<super::DeleteTopicsRequest>(version, body),
        21 => reencode::<super::DeleteRecordsRequest>(version, body),
        22 => reencode::<super::InitProducerIdRequest>(version, body),
        24 => reencode::<super::AddPartitionsToTxnRequest>(version, body),
        26 => reencode::<super::EndTxnRequest>(version, body),
        27 => reencode::<super::WriteTxnMarkersRequest>(version, body),
        32 => reencode::<super::DescribeConfigsRequest>(version, body),
        36 => reencode::<super::SaslAuthenticateRequest>(version, body),
        37 => reencode::<super::CreatePartitionsRequest>(version, body),
        42 => reencode::<super::DeleteGroupsRequest>(version, body),
        44 => reencode::<super::IncrementalAlterConfigsRequest>(version, body),
        60 => reencode::<super::DescribeClusterRequest>(version, body),
        61 => reencode::<super::DescribeProducersRequest>(version, body),
        65 => reencode::<super::DescribeTransactionsRequest>(version, body),
        66 => reencode::<super::ListTransactionsRequest>(version, body),
        71 => reencode::<super::GetTelemetrySubscriptionsRequest>(version, body),
        72 => reencode::<super::PushTelemetryRequest>(version, body),
        74 => reencode::<super::ListConfigResourcesRequest>(version, body),
        75 => reencode::<super::DescribeTopicPartitionsRequest>(version, body),
        76 => reencode::<super::ShareGroupHeartbeatRequest>(version, body),
        77 => reencode::<super::ShareGroupDescribeRequest>(version, body),
        78 => reencode::<super::ShareFetchRequest>(version, body),
        79 => reencode::<super::ShareAcknowledgeRequest>(version, body),
        90 => reencode::<super::DescribeShareGroupOffsetsRequest>(version, body),
        91 => reencode::<super::AlterShareGroupOffsetsRequest>(version, body),
        92 => reencode::<super::DeleteShareGroupOffsetsRequest>(version, body),
        95 => reencode::<super::TxnShareAcknowledgeRequest>(version, body),
        96 => reencode::<super::AddShareAcksToTxnRequest>(version, body),
        _ => Err(ErrorKind::UnknownApiKey(key).at(0)),
    }
}

/// Decodes a response body, checks that nothing is left, and encodes it again.
///
/// # Errors
/// Unknown keys or versions, and bodies that are not valid.
pub fn reencode_response(key: i16, version: i16, body: Bytes) -> Result<Vec<u8>> {
    match key {
        0 => reencode::<super::ProduceResponse>(version, body),
        1 => reencode::<super::FetchResponse>(version, body),
        2 => reencode::<super::ListOffsetsResponse>(version, body),
        3 => reencode::<super::MetadataResponse>(version, body),
        10 => reencode::<super::FindCoordinatorResponse>(version, body),
        16 => reencode::<super::ListGroupsResponse>(version, body),
        17 => reencode::<super::SaslHandshakeResponse>(version, body),
        18 => reencode::<super::ApiVersionsResponse>(version, body),
        19 => reencode::<super::CreateTopicsResponse>(version, body),
        20 => reencode::<super::DeleteTopicsResponse>(version, body),
        21 => reencode::<super::DeleteRecordsResponse>(version, body),
        22 => reencode::<super::InitProducerIdResponse>(version, body),
        24 => reencode::<super::AddPartitionsToTxnResponse>(version, body),
        26 => reencode::<super::EndTxnResponse>(version, body),
        27 => reencode::<super::WriteTxnMarkersResponse>(version, body),
        32 => reencode::<super::DescribeConfigsResponse>(version, body),
        36 => reencode::<super::SaslAuthenticateResponse>(version, body),
        37 => reencode::<super::CreatePartitionsResponse>(version, body),
        42 => reencode::<super::DeleteGroupsResponse>(version, body),
        44 => reencode::<super::IncrementalAlterConfigsResponse>(version, body),
        60 => reencode::<super::DescribeClusterResponse>(version, body),
        61 => reencode::<super::DescribeProducersResponse>(version, body),
        65 => reencode::<super::DescribeTransactionsResponse>(version, body),
        66 => reencode::<super::ListTransactionsResponse>(version, body),
        71 => reencode::<super::GetTelemetrySubscriptionsResponse>(version, body),
        72 => reencode::<super::PushTelemetryResponse>(version, body),
        74 => reencode::<super::ListConfigResourcesResponse>(version, body),
        75 => reencode::<super::DescribeTopicPartitionsResponse>(version, body),
        76 => reencode::<super::ShareGroupHeartbeatResponse>(version, body),
        77 => reencode::<super::ShareGroupDescribeResponse>(version, body),
        78 => reencode::<super::ShareFetchResponse>(version, body),
        79 => reencode::<super::ShareAcknowledgeResponse>(version, body),
        90 => reencode::<super::DescribeShareGroupOffsetsResponse>(version, body),
        91 => reencode::<super::AlterShareGroupOffsetsResponse>(version, body),
        92 => reencode::<super::DeleteShareGroupOffsetsResponse>(version, body),
        95 => reencode::<super::TxnShareAcknowledgeResponse>(version, body),
        96 => reencode::<super::AddShareAcksToTxnResponse>(version, body),
        _ => Err(ErrorKind::UnknownApiKey(key).at(0)),
    }
}
