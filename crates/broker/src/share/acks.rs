//! Acknowledgements of a request: their form, and what becomes of them partition by partition.

use crate::api::RequestContext;
use crate::cluster::{Cluster, Refusal, WaitKey};
use crate::share_coordinator::ShareKey;
use crate::share_partition::{AckRange, AckRules};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};

/// RENEW.
const RENEW: i8 = 4;

/// Types that an acknowledgement may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedTypes {
    /// gap, ACCEPT, RELEASE, REJECT
    Plain,
    /// and RENEW (KIP-1222)
    Renew,
    /// gap, ACCEPT, REJECT (KIP-1289)
    Transactional,
}

impl AllowedTypes {
    fn allows(self, code: i8) -> bool {
        match self {
            AllowedTypes::Plain => (0..RENEW).contains(&code),
            AllowedTypes::Renew => (0..=RENEW).contains(&code),
            AllowedTypes::Transactional => matches!(code, 0 | 1 | 3),
        }
    }
}

/// Checks the form of a partition's acknowledgement batches: (first, last, types).
pub(crate) fn check_form<'a>(
    batches: impl Iterator<Item = AckRange<'a>>,
    allowed: AllowedTypes,
) -> Result<Vec<AckRange<'a>>, Refusal> {
    let bad = |why: &str| Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
    let mut checked: Vec<AckRange<'a>> = Vec::with_capacity(batches.size_hint().0);
    for range in batches {
        if range.first > range.last {
            return bad("The first offset of an acknowledgement batch must not exceed its last offset.");
        }
        // A batch that begins where the last one ends passes here, as in Kafka, and fails as acknowledged twice.
        if checked.last().is_some_and(|before| before.last > range.first) {
            return bad("Acknowledgement batches must be in ascending order and must not overlap.");
        }
        if range.types.is_empty() {
            return bad("An acknowledgement batch has no acknowledge type.");
        }
        if range.types.len() > 1 && range.types.len() as i64 != range.last - range.first + 1 {
            return bad("An acknowledgement batch must have one acknowledge type, or one per offset.");
        }
        if !range.types.iter().all(|code| allowed.allows(*code)) {
            return bad("An acknowledge type is not valid here.");
        }
        checked.push(range);
    }
    Ok(checked)
}

/// Applies a member's acknowledgements of one partition.
pub(crate) fn apply(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    group: &Str,
    member: &Str,
    tp: (Uuid, i32),
    ranges: Result<Vec<AckRange<'_>>, Refusal>,
) -> Result<(), Refusal> {
    let ranges = ranges?;
    cluster.may_read(ctx, tp.0)?;
    cluster.share_leader(ctx.node, tp.0, tp.1).map_err(|code| Refusal::new(code, ""))?;
    let config = cluster.share_config(group);
    let rules = AckRules {
        deliveries: config.deliveries(),
        renew_enabled: config.renew_enabled,
        deadline: ctx.now.after_ms(config.record_lock_duration_ms),
    };
    let key = ShareKey { group: group.clone(), topic: tp.0, partition: tp.1 };
    let Some(live) = cluster.share.live_mut(&key) else {
        return Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ""));
    };
    live.machine.acknowledge(member, &ranges, &rules)?;
    cluster.share.arm(&key);
    cluster.share.wrote(&key);
    cluster.write_dead_letters(ctx.now, &key);
    // Even an acceptance makes room, where the limit of records in flight was reached.
    cluster.wake(&WaitKey::SharePartition(key.group, key.topic, key.partition));
    Ok(())
}
