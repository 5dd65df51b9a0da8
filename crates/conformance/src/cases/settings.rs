//! Settings of groups: bounds, defaults, values that make no sense.

use super::SHARE;
use crate::case::list;
use crate::expect::{Check, Stop, equal, ok, that};
use crate::lab::{Lab, SOON};
use std::time::{Duration, Instant};

list! {
    lock_time_has_a_lower_bound(932, SHARE) "SHARE-CONFIG-01" => refused("share.record.lock.duration.ms", "1");
    lock_time_has_an_upper_bound(932, SHARE) "SHARE-CONFIG-02" => refused("share.record.lock.duration.ms", "99999999");
    lock_time_is_a_number(932, SHARE) "SHARE-CONFIG-10" => refused("share.record.lock.duration.ms", "soon");
    session_timeout_has_a_lower_bound(932, SHARE) "SHARE-CONFIG-01" => refused("share.session.timeout.ms", "1");
    session_timeout_has_an_upper_bound(932, SHARE) "SHARE-CONFIG-02" => refused("share.session.timeout.ms", "99999999");
    heartbeat_interval_has_a_lower_bound(932, SHARE) "SHARE-CONFIG-01" => refused("share.heartbeat.interval.ms", "1");
    heartbeat_interval_has_an_upper_bound(932, SHARE) "SHARE-CONFIG-02"
        => refused("share.heartbeat.interval.ms", "99999999");
    heartbeat_interval_is_a_number(932, SHARE) "SHARE-CONFIG-10" => refused("share.heartbeat.interval.ms", "often");
    delivery_limit_has_a_lower_bound(932, SHARE) "SHARE-CONFIG-01" => refused("share.delivery.count.limit", "1");
    delivery_limit_has_an_upper_bound(932, SHARE) "SHARE-CONFIG-02" => refused("share.delivery.count.limit", "1000");
    record_locks_have_a_lower_bound(932, SHARE) "SHARE-CONFIG-01" => refused("share.partition.max.record.locks", "1");
    record_locks_have_an_upper_bound(932, SHARE) "SHARE-CONFIG-02"
        => refused("share.partition.max.record.locks", "99999999");
    unknown_setting_is_refused(932, SHARE) "SHARE-CONFIG-03";
    reset_none_is_refused(932, SHARE) "SHARE-CONFIG-04" => refused("share.auto.offset.reset", "none");
    reset_without_duration_is_refused(932, SHARE) "SHARE-CONFIG-04" => refused("share.auto.offset.reset", "by_duration:");
    reset_of_bad_duration_is_refused(932, SHARE) "SHARE-CONFIG-04"
        => refused("share.auto.offset.reset", "by_duration:1h");
    reset_of_negative_duration_is_refused(932, SHARE) "SHARE-CONFIG-04"
        => refused("share.auto.offset.reset", "by_duration:-PT1H");
    unknown_isolation_is_refused(932, SHARE) "SHARE-CONFIG-05" => refused("share.isolation.level", "serializable");
    empty_isolation_is_refused(932, SHARE) "SHARE-CONFIG-05" => refused("share.isolation.level", "");
    default_reset_is_latest(932, SHARE) "SHARE-CONFIG-06" => default("share.auto.offset.reset", "latest");
    default_isolation_is_read_uncommitted(932, SHARE) "SHARE-CONFIG-06"
        => default("share.isolation.level", "read_uncommitted");
    default_allows_renewals(932, SHARE) "SHARE-CONFIG-06" => default("share.renew.acknowledge.enable", "true");
    deleted_setting_is_the_default_again(932, SHARE) "SHARE-CONFIG-08";
    validation_changes_nothing(932, SHARE) "SHARE-CONFIG-09";
    queue_name_may_not_be_internal(1191, SHARE) "SHARE-DLQ-10" => refused("errors.deadletterqueue.topic.name", "__letters");
}

/// Not supported where the broker does not know the setting.
async fn known(lab: &Lab, name: &str) -> Check<String> {
    let group = lab.plain_group();
    let value = lab.group_config(&group, name).await?;
    value.ok_or_else(|| Stop::NotSupported(format!("the broker tells no group setting {name}")))
}

async fn refused(lab: Lab, name: &'static str, value: &'static str) -> Check {
    known(&lab, name).await?;
    let group = lab.plain_group();
    let error = lab.try_group_config(&group, name, Some(value), false).await?;
    that(error.is_some(), || format!("{name}={value} was taken"))?;
    let told = lab.group_config(&group, name).await?;
    that(told.as_deref() != Some(value), || format!("{name}={value} was refused, and is told all the same"))
}

async fn unknown_setting_is_refused(lab: Lab) -> Check {
    let error = lab.try_group_config(&lab.plain_group(), "share.no.such.setting", Some("1"), false).await?;
    that(error.is_some(), || "a setting that does not exist was taken".into())
}

async fn default(lab: Lab, name: &'static str, want: &'static str) -> Check {
    let got = known(&lab, name).await?;
    equal(name, got.as_str(), want)
}

/// Waits until brokers tell the value.
async fn told(lab: &Lab, group: &kafka_share_wire::Str, name: &str, want: &str) -> Check {
    let until = Instant::now() + SOON;
    loop {
        let got = lab.group_config(group, name).await?;
        if got.as_deref() == Some(want) {
            return Ok(());
        }
        that(Instant::now() < until, || format!("{name}: expected {want}, told is {got:?}"))?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn deleted_setting_is_the_default_again(lab: Lab) -> Check {
    let name = "share.auto.offset.reset";
    let group = lab.group(&[]).await?;
    let error = lab.try_group_config(&group, name, None, false).await?;
    that(error.is_none(), || format!("deleting {name}: {error:?}"))?;
    told(&lab, &group, name, "latest").await
}

async fn validation_changes_nothing(lab: Lab) -> Check {
    let name = "share.auto.offset.reset";
    let group = lab.plain_group();
    let error = lab.try_group_config(&group, name, Some("earliest"), true).await?;
    that(error.is_none(), || format!("validating {name}=earliest: {error:?}"))?;
    let member = lab.member(&group).await?;
    let topic = lab.topic(1).await?;
    ok("joining", member.heartbeat(0, Some(&[&topic])).await?.error_code)?;
    equal(name, lab.group_config(&group, name).await?.as_deref(), Some("latest"))
}
