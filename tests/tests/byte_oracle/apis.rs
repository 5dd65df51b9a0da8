//! The types of each API key, for macros that must name them.

/// Calls a macro with the key, request type and response type of every API that Kafka has.
macro_rules! for_each_api {
    ($callback:ident) => {
        $callback! {
            0 ProduceRequest ProduceResponse,
            1 FetchRequest FetchResponse,
            2 ListOffsetsRequest ListOffsetsResponse,
            3 MetadataRequest MetadataResponse,
            10 FindCoordinatorRequest FindCoordinatorResponse,
            16 ListGroupsRequest ListGroupsResponse,
            17 SaslHandshakeRequest SaslHandshakeResponse,
            18 ApiVersionsRequest ApiVersionsResponse,
            19 CreateTopicsRequest CreateTopicsResponse,
            20 DeleteTopicsRequest DeleteTopicsResponse,
            21 DeleteRecordsRequest DeleteRecordsResponse,
            22 InitProducerIdRequest InitProducerIdResponse,
            24 AddPartitionsToTxnRequest AddPartitionsToTxnResponse,
            26 EndTxnRequest EndTxnResponse,
            27 WriteTxnMarkersRequest WriteTxnMarkersResponse,
            32 DescribeConfigsRequest DescribeConfigsResponse,
            36 SaslAuthenticateRequest SaslAuthenticateResponse,
            37 CreatePartitionsRequest CreatePartitionsResponse,
            42 DeleteGroupsRequest DeleteGroupsResponse,
            44 IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse,
            60 DescribeClusterRequest DescribeClusterResponse,
            61 DescribeProducersRequest DescribeProducersResponse,
            65 DescribeTransactionsRequest DescribeTransactionsResponse,
            66 ListTransactionsRequest ListTransactionsResponse,
            71 GetTelemetrySubscriptionsRequest GetTelemetrySubscriptionsResponse,
            72 PushTelemetryRequest PushTelemetryResponse,
            74 ListConfigResourcesRequest ListConfigResourcesResponse,
            75 DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse,
            76 ShareGroupHeartbeatRequest ShareGroupHeartbeatResponse,
            77 ShareGroupDescribeRequest ShareGroupDescribeResponse,
            78 ShareFetchRequest ShareFetchResponse,
            79 ShareAcknowledgeRequest ShareAcknowledgeResponse,
            90 DescribeShareGroupOffsetsRequest DescribeShareGroupOffsetsResponse,
            91 AlterShareGroupOffsetsRequest AlterShareGroupOffsetsResponse,
            92 DeleteShareGroupOffsetsRequest DeleteShareGroupOffsetsResponse,
        }
    };
}
