//! ShareFetch (v1-2): opens, carries on and closes a share session, acknowledges, acquires records.
//!
//! Order: the session's epoch, partitions added, acknowledgements, partitions forgotten, records. The answer waits for
//! records up to MaxWaitMs. v2 adds the `record_limit` mode (KIP-1206) and renewals (KIP-1222), which fetch nothing.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal};
use crate::security::Operation;
use crate::share::acks::{self, AllowedTypes};
use crate::share::fetch::{AckResult, ShareFetch};
use crate::share::sessions::{CLOSE, OPEN, SessionKey};
use crate::share_partition::AckRange;
use kafka_share_messages::share_fetch_request::{AcknowledgementBatch, ForgottenTopic};
use kafka_share_messages::{ErrorCode, ShareFetchRequest, ShareFetchResponse};
use kafka_share_wire::{Str, Uuid};

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ShareFetchRequest,
) -> Outcome<ShareFetchResponse> {
    match begin(cluster, ctx, &request) {
        Ok(fetch) => serve(cluster, ctx, &request, fetch),
        Err(refusal) => Outcome::Reply(ShareFetchResponse {
            error_code: refusal.code,
            error_message: Some(Str::from(refusal.message)).filter(|text| !text.is_empty()),
            ..Default::default()
        }),
    }
}

fn invalid<T>(why: &str) -> Result<T, Refusal> {
    Err(Refusal::new(ErrorCode::INVALID_REQUEST, why))
}

fn has_acks(request: &ShareFetchRequest) -> bool {
    request.topics.iter().flat_map(|topic| &topic.partitions).any(|p| !p.acknowledgement_batches.is_empty())
}

fn check(request: &ShareFetchRequest) -> Result<(Str, Str), Refusal> {
    let (Some(group), Some(member)) = (&request.group_id, &request.member_id) else {
        return invalid("The group id and the member id must be set.");
    };
    if group.is_empty() || member.is_empty() {
        return invalid("The group id and the member id must not be empty.");
    }
    if request.share_session_epoch == OPEN && has_acks(request) {
        return invalid("The initial fetch request must not contain acknowledgements.");
    }
    if !(0..=1).contains(&request.share_acquire_mode) {
        // Kafka 4.2 to 4.4 trip over the value rather than refuse it, and answer so.
        let why = format!("Unknown share acquire mode {}.", request.share_acquire_mode);
        return Err(Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, why));
    }
    let quiet =
        request.max_bytes == 0 && request.min_bytes == 0 && request.max_records == 0 && request.max_wait_ms == 0;
    if request.is_renew_ack && !quiet {
        return invalid("A request that renews must have 0 as MaxBytes, MinBytes, MaxRecords and MaxWaitMs.");
    }
    Ok((group.clone(), member.clone()))
}

/// Session, acknowledgements, forgotten partitions; what is left is the fetch itself.
fn begin(cluster: &mut Cluster, ctx: &RequestContext, request: &ShareFetchRequest) -> Result<ShareFetch, Refusal> {
    if let Some(group) = request.group_id.as_ref().filter(|group| !group.is_empty()) {
        cluster.may_group(ctx, Operation::Read, group)?;
    }
    let (group, member) = check(request)?;
    let key = SessionKey { node: ctx.node, group, member };
    let named = || {
        let partitions = |t: &kafka_share_messages::share_fetch_request::FetchTopic| {
            let id = t.topic_id;
            t.partitions.iter().map(move |p| (id, p.partition_index)).collect::<Vec<_>>()
        };
        request.topics.iter().flat_map(partitions)
    };
    let epoch = request.share_session_epoch;
    let session = if epoch == OPEN {
        let limit = cluster.config.groups.max_share_sessions;
        cluster.share.sessions.open(key.clone(), ctx.conn, limit)?
    } else {
        cluster.share.sessions.enter(&key, epoch)?
    };
    if epoch != CLOSE {
        let most = cluster.config.max_partitions;
        if session.partitions.len() + named().count() > most {
            let why = format!("A share session may hold {most} partitions.");
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
        }
        named().for_each(|tp| session.add(tp));
    }
    let acks = acknowledge(cluster, ctx, &key, request);
    let mut partitions = Vec::new();
    if epoch == CLOSE {
        cluster.close_share_session(ctx.now, &key);
    } else if let Some(session) = cluster.share.sessions.get_mut(&key) {
        let forgotten = |topic: &ForgottenTopic| {
            let id = topic.topic_id;
            topic.partitions.iter().map(move |p| (id, *p)).collect::<Vec<_>>()
        };
        session.forget(request.forgotten_topics_data.iter().flat_map(forgotten));
        partitions.clone_from(&session.partitions);
    }
    if !partitions.is_empty() {
        // So that no partition starves behind the others.
        let shift = usize::try_from(epoch).unwrap_or(0) % partitions.len();
        partitions.rotate_left(shift);
    }
    Ok(ShareFetch {
        session: key,
        partitions,
        acks,
        max_records: i64::from(request.max_records),
        batch_size: i64::from(request.batch_size),
        strict: request.share_acquire_mode == 1,
        min_bytes: usize::try_from(request.min_bytes).unwrap_or(0),
        max_bytes: usize::try_from(request.max_bytes).unwrap_or(0),
        full: epoch == OPEN,
        errors: 0,
    })
}

fn acknowledge(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    key: &SessionKey,
    request: &ShareFetchRequest,
) -> Vec<AckResult> {
    let allowed = if request.is_renew_ack { AllowedTypes::Renew } else { AllowedTypes::Plain };
    let mut results = Vec::new();
    for topic in &request.topics {
        for partition in topic.partitions.iter().filter(|p| !p.acknowledgement_batches.is_empty()) {
            let tp: (Uuid, i32) = (topic.topic_id, partition.partition_index);
            let range = |b: &AcknowledgementBatch| -> (i64, i64) { (b.first_offset, b.last_offset) };
            let ranges = partition.acknowledgement_batches.iter().map(|batch| {
                let (first, last) = range(batch);
                AckRange { first, last, types: &batch.acknowledge_types }
            });
            let checked = acks::check_form(ranges, allowed);
            let (code, message) = match acks::apply(cluster, ctx, &key.group, &key.member, tp, checked) {
                Ok(()) => (ErrorCode::NONE, None),
                Err(refusal) => (refusal.code, Some(Str::from(refusal.message)).filter(|text| !text.is_empty())),
            };
            results.push(AckResult { tp, code, message });
        }
    }
    results
}

fn serve(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: &ShareFetchRequest,
    mut fetch: ShareFetch,
) -> Outcome<ShareFetchResponse> {
    let idle = fetch.partitions.is_empty() || request.is_renew_ack || request.max_records <= 0;
    if idle {
        fetch.partitions.clear();
    }
    let wait_ms = i64::from(request.max_wait_ms);
    if let Some(response) = fetch.attempt(cluster, ctx, wait_ms <= 0 || idle) {
        return Outcome::Reply(response);
    }
    fetch.errors = fetch.count_errors(cluster, ctx);
    Outcome::Park { deadline: ctx.now.after_ms(wait_ms), keys: fetch.wait_keys(), parked: Box::new(fetch) }
}
