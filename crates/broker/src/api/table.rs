//! Which APIs are served, in which versions, and by which function.

use super::{Outcome, RequestContext, Served};
use super::{add_partitions_to_txn, end_txn, fetch, init_producer_id, list_offsets, produce, write_txn_markers};
use super::{add_share_acks_to_txn, share_acknowledge, share_fetch, share_group_heartbeat, txn_share_acknowledge};
use super::{
    alter_share_group_offsets, delete_groups, delete_share_group_offsets, describe_share_group_offsets, list_groups,
    share_group_describe,
};
use super::{api_versions, create_topics, delete_topics, describe_cluster, find_coordinator, metadata};
use super::{
    create_partitions, delete_records, describe_configs, describe_producers, describe_topic_partitions,
    describe_transactions, incremental_alter_configs, list_config_resources, list_transactions,
};
use super::{sasl_authenticate, sasl_handshake};
use crate::cluster::{CloseReason, Cluster};
use crate::config::BrokerFeatures;
use kafka_share_messages::{ApiKey, Request};
use kafka_share_wire::Reader;
use std::ops::RangeInclusive;

/// Keys that [`handle`] serves, in order.
const SERVED: &[i16] = &[
    0, 1, 2, 3, 10, 16, 17, 18, 19, 20, 21, 22, 24, 26, 27, 32, 36, 37, 42, 44, 60, 61, 65, 66, 74, 75, 76, 77, 78, 79,
    90, 91, 92, 95, 96,
];

/// The versions that the broker serves and advertises of `key`.
pub(crate) fn versions(features: &BrokerFeatures, key: ApiKey) -> Option<RangeInclusive<i16>> {
    SERVED.binary_search(&key.0).ok()?;
    let info = key.info()?;
    match key {
        ApiKey::TXN_SHARE_ACKNOWLEDGE | ApiKey::ADD_SHARE_ACKS_TO_TXN if !features.transactional_acks => None,
        ApiKey::INIT_PRODUCER_ID if !(features.two_phase_commit || features.unstable_api_versions) => {
            Some(info.min_version..=info.max_version - 1)
        }
        _ => Some(info.min_version..=info.max_version),
    }
}

/// All APIs that the broker advertises.
pub(crate) fn advertised(features: &BrokerFeatures) -> impl Iterator<Item = (ApiKey, RangeInclusive<i16>)> {
    SERVED.iter().filter_map(|key| Some((ApiKey(*key), versions(features, ApiKey(*key))?)))
}

/// Decodes the body and asks the handler of its key.
pub(crate) fn handle(cluster: &mut Cluster, ctx: &RequestContext, body: Reader) -> Result<Served, CloseReason> {
    match ctx.key.0 {
        0 => run(cluster, ctx, body, produce::handle),
        1 => run(cluster, ctx, body, fetch::handle),
        2 => run(cluster, ctx, body, list_offsets::handle),
        3 => run(cluster, ctx, body, metadata::handle),
        10 => run(cluster, ctx, body, find_coordinator::handle),
        16 => run(cluster, ctx, body, list_groups::handle),
        17 => run(cluster, ctx, body, sasl_handshake::handle),
        18 => run(cluster, ctx, body, api_versions::handle),
        19 => run(cluster, ctx, body, create_topics::handle),
        20 => run(cluster, ctx, body, delete_topics::handle),
        21 => run(cluster, ctx, body, delete_records::handle),
        22 => run(cluster, ctx, body, init_producer_id::handle),
        24 => run(cluster, ctx, body, add_partitions_to_txn::handle),
        26 => run(cluster, ctx, body, end_txn::handle),
        27 => run(cluster, ctx, body, write_txn_markers::handle),
        32 => run(cluster, ctx, body, describe_configs::handle),
        36 => run(cluster, ctx, body, sasl_authenticate::handle),
        37 => run(cluster, ctx, body, create_partitions::handle),
        42 => run(cluster, ctx, body, delete_groups::handle),
        44 => run(cluster, ctx, body, incremental_alter_configs::handle),
        60 => run(cluster, ctx, body, describe_cluster::handle),
        61 => run(cluster, ctx, body, describe_producers::handle),
        65 => run(cluster, ctx, body, describe_transactions::handle),
        66 => run(cluster, ctx, body, list_transactions::handle),
        74 => run(cluster, ctx, body, list_config_resources::handle),
        75 => run(cluster, ctx, body, describe_topic_partitions::handle),
        76 => run(cluster, ctx, body, share_group_heartbeat::handle),
        77 => run(cluster, ctx, body, share_group_describe::handle),
        78 => run(cluster, ctx, body, share_fetch::handle),
        79 => run(cluster, ctx, body, share_acknowledge::handle),
        90 => run(cluster, ctx, body, describe_share_group_offsets::handle),
        91 => run(cluster, ctx, body, alter_share_group_offsets::handle),
        92 => run(cluster, ctx, body, delete_share_group_offsets::handle),
        95 => run(cluster, ctx, body, txn_share_acknowledge::handle),
        96 => run(cluster, ctx, body, add_share_acks_to_txn::handle),
        _ => Err(CloseReason::Unsupported { key: ctx.key, version: ctx.version }),
    }
}

fn run<R: Request>(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    body: Reader,
    handler: fn(&mut Cluster, &RequestContext, R) -> Outcome<R::Response>,
) -> Result<Served, CloseReason> {
    Ok(match handler(cluster, ctx, ctx.decode(body)?) {
        Outcome::Reply(response) => Served::Answer(ctx.answer(&response)),
        Outcome::Farewell(response) => Served::Farewell(ctx.answer(&response)),
        Outcome::Close(reason) => return Err(reason),
        Outcome::NoReply => Served::Nothing,
        Outcome::Park { deadline, keys, parked } => Served::Park { deadline, keys, parked },
    })
}
