//! ApiVersions (v0-5): what is served, and the features (KIP-584).
//!
//! A version beyond ours is answered in v0 with UNSUPPORTED_VERSION and our range for this one API (KIP-511).
//! From v3 on the client's software name and version are checked, as in Kafka. Before v4, features that start at
//! level 0 are left out. v5 carries the cluster and node the client believes it talks to.

use super::table::advertised;
use super::{Answer, Outcome, RequestContext};
use crate::cluster::{CloseReason, Cluster};
use crate::config::BrokerFeatures;
use kafka_share_messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_share_messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse, ErrorCode, frame};
use kafka_share_wire::Str;

/// metadata.version of Kafka 4.4.0 (4.4-IV2), and of the release the drafts are meant for.
const METADATA_VERSION: i16 = 33;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ApiVersionsRequest,
) -> Outcome<ApiVersionsResponse> {
    if ctx.version >= 3 && !(is_name(&request.client_software_name) && is_name(&request.client_software_version)) {
        return Outcome::Reply(ApiVersionsResponse { error_code: ErrorCode::INVALID_REQUEST, ..Default::default() });
    }
    if ctx.version >= 5 {
        let wrong_cluster = request.cluster_id.as_ref().is_some_and(|id| id.as_str() != cluster.cluster_id);
        let wrong_node = request.node_id >= 0 && request.node_id != ctx.node;
        if wrong_cluster || wrong_node {
            let error_code = ErrorCode::REBOOTSTRAP_REQUIRED;
            return Outcome::Reply(ApiVersionsResponse { error_code, ..Default::default() });
        }
    }
    cluster.told_versions(ctx.conn);
    let features = &cluster.config.features;
    Outcome::Reply(ApiVersionsResponse {
        api_keys: advertised(features)
            .map(|(key, range)| ApiVersion {
                api_key: key.0,
                min_version: *range.start(),
                max_version: *range.end(),
                ..Default::default()
            })
            .collect(),
        supported_features: supported(features, ctx.version),
        finalized_features_epoch: 1,
        finalized_features: finalized(features),
        ..Default::default()
    })
}

/// The refusal of a version that is not ours: v0, with only this API in it.
pub(crate) fn refuse(ctx: &RequestContext) -> Result<Answer, CloseReason> {
    let own = ApiKey::API_VERSIONS.info();
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        api_keys: own
            .map(|info| ApiVersion {
                api_key: info.key.0,
                min_version: info.min_version,
                max_version: info.max_version,
                ..Default::default()
            })
            .into_iter()
            .collect(),
        ..Default::default()
    };
    let frame = frame::encode_response(ctx.key, &response, 0, ctx.correlation_id);
    frame.map(Answer::Frame).map_err(|error| CloseReason::Encode(error.to_string()))
}

/// Letters and digits, with dashes and dots inside: Kafka's rule for what ends up in its metrics.
fn is_name(text: &str) -> bool {
    let edge = |b: &u8| b.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
        && bytes.iter().all(|b| edge(b) || matches!(b, b'-' | b'.'))
}

fn supported(features: &BrokerFeatures, version: i16) -> Vec<SupportedFeatureKey> {
    let all = [
        ("group.version", 0, 1),
        ("metadata.version", 7, METADATA_VERSION),
        ("share.version", 0, features.share_version()),
        ("transaction.version", 0, 2),
    ];
    all.into_iter()
        .filter(|(_, min, _)| version >= 4 || *min > 0)
        .map(|(name, min_version, max_version)| SupportedFeatureKey {
            name: Str::from_static(name),
            min_version,
            max_version,
            ..Default::default()
        })
        .collect()
}

fn finalized(features: &BrokerFeatures) -> Vec<FinalizedFeatureKey> {
    let all = [
        ("group.version", 1),
        ("metadata.version", METADATA_VERSION),
        ("share.version", features.share_version()),
        ("transaction.version", features.transaction_version),
    ];
    // A level of 0 means that the feature is off: Kafka then leaves it out.
    all.into_iter()
        .filter(|(_, level)| *level > 0)
        .map(|(name, level)| FinalizedFeatureKey {
            name: Str::from_static(name),
            max_version_level: level,
            min_version_level: level,
            ..Default::default()
        })
        .collect()
}
