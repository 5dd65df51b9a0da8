//! Administration of share groups.

use crate::lab::{EXPLICIT, IMPLICIT, LONG, Lab, Place, Release, SHORT, joined, receive};
use kafka_share::admin::{GroupFilter, GroupSetting, OffsetReset, ShareGroupSettings};
use kafka_share::{AckType, ErrorCode, ErrorKind};
use std::time::Instant;

async fn listed(lab: &Lab, filter: GroupFilter, place: &Place) -> Option<String> {
    let groups = lab.admin.list_groups_with(&filter).await.unwrap();
    groups.into_iter().find(|g| g.id == place.group).map(|g| g.state)
}

pub(crate) async fn groups_are_listed_and_described(lab: &Lab) {
    let place = lab.place(2).await;
    let builder = lab.builder(&place).acknowledgement_mode(IMPLICIT).rack("here").client_config(|c| c.client_id("me"));
    let consumer = lab.subscribed(&place, builder);
    lab.produce(&place, 0..1).await;
    receive(&consumer, 1).await;
    assert_eq!(listed(lab, GroupFilter::share(), &place).await.as_deref(), Some("Stable"));
    assert_eq!(listed(lab, GroupFilter::default().state("stable"), &place).await.as_deref(), Some("Stable"));
    assert_eq!(listed(lab, GroupFilter::share().state("Empty"), &place).await, None);
    assert_eq!(listed(lab, GroupFilter::default().group_type("consumer"), &place).await, None);
    let group = lab.admin.describe_share_group(&place.group).await.unwrap();
    assert_eq!((group.id.as_str(), group.state.as_str()), (place.group.as_str(), "Stable"));
    assert_eq!(group.epoch, group.assignment_epoch);
    assert!(lab.cluster.node_ids().contains(&group.coordinator));
    let [member] = &group.members[..] else { panic!("{group:?}") };
    let metadata = consumer.share_group_metadata().unwrap();
    assert_eq!((member.id.as_str(), member.epoch), (metadata.member_id(), metadata.member_epoch()));
    assert_eq!((member.client_id.as_str(), member.rack.as_deref()), ("me", Some("here")));
    assert_eq!(member.subscription, std::slice::from_ref(&place.topic));
    assert_eq!(member.assignment, [(place.topic.clone(), vec![0, 1])]);
    consumer.close(LONG).await.unwrap();
    assert_eq!(listed(lab, GroupFilter::share(), &place).await.as_deref(), Some("Empty"));
}

/// Start offset and lag of each partition.
async fn offsets(lab: &Lab, place: &Place) -> Vec<(Option<i64>, Option<i64>)> {
    let offsets = lab.admin.describe_share_group_offsets(&place.group).await.unwrap();
    offsets.into_iter().map(|o| (o.start_offset, o.lag)).collect()
}

pub(crate) async fn offsets_are_described_altered_reset_and_deleted(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..10).await;
    let (group, topic) = (place.group.as_str(), place.topic.as_str());
    let lag = |lag: i64| lab.tells_lag().then_some(lag);
    if lab.release == Release::V4_1 {
        // It takes the request and does nothing; its own tool says that it is not implemented, and so do we.
        let reset = lab.admin.reset_share_group_offsets(group, &[topic], OffsetReset::Latest).await.unwrap_err();
        assert_eq!(reset.kind(), ErrorKind::Unsupported, "{reset}");
        assert!(reset.to_string().contains("Kafka 4.2"), "{reset}");
        return;
    }
    // A group that does not exist is created by it.
    lab.admin.alter_share_group_offsets(group, &[(topic, 0, 4)]).await.unwrap();
    assert_eq!(offsets(lab, &place).await, [(Some(4), lag(6))]);
    let reset = async |to| lab.admin.reset_share_group_offsets(group, &[], to).await.map(|m| m.into_values().next());
    assert_eq!(reset(OffsetReset::Earliest).await.unwrap(), Some(0));
    assert_eq!(offsets(lab, &place).await, [(Some(0), lag(10))]);
    assert_eq!(reset(OffsetReset::Latest).await.unwrap(), Some(10));
    assert_eq!(offsets(lab, &place).await, [(Some(10), lag(0))]);
    assert_eq!(reset(OffsetReset::Timestamp(0)).await.unwrap(), Some(0));
    assert_eq!(reset(OffsetReset::Timestamp(i64::MAX)).await.unwrap(), Some(10));
    assert_eq!(reset(OffsetReset::Offset(7)).await.unwrap(), Some(7));
    assert_eq!(reset(OffsetReset::Offset(11)).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(offsets(lab, &place).await, [(Some(7), lag(3))]);
    accept_the_rest(lab, &place).await;
    lab.admin.delete_share_group_offsets(group, &[topic]).await.unwrap();
    assert_eq!(offsets(lab, &place).await, []);
    lab.admin.delete_groups(&[group]).await.remove(0).1.unwrap();
    assert_eq!(listed(lab, GroupFilter::share(), &place).await, None);
}

/// Accepts the last three records, and waits until the lag says so.
async fn accept_the_rest(lab: &Lab, place: &Place) {
    let consumer = lab.member(place, EXPLICIT);
    for records in &receive(&consumer, 3).await {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    consumer.commit_sync(LONG).await.unwrap();
    consumer.close(LONG).await.unwrap();
    // The start offset that is described is the one that was stored last, which trails the acknowledgements.
    let until = Instant::now() + LONG;
    while lab.tells_lag() && offsets(lab, place).await[0].1 != Some(0) {
        assert!(Instant::now() < until, "{:?}", offsets(lab, place).await);
        tokio::time::sleep(SHORT).await;
    }
}

/// Settings that a release knows.
fn known_settings(release: Release) -> usize {
    match release {
        Release::V4_1 | Release::V4_2 => 5,
        Release::V4_3 => 9,
        Release::V4_4 => GroupSetting::ALL.len(),
    }
}

pub(crate) async fn settings_are_typed_and_seen_by_every_broker(lab: &Lab) {
    let place = lab.place(1).await;
    let before = lab.admin.share_group_settings(&place.group).await.unwrap();
    let known: Vec<GroupSetting> =
        GroupSetting::ALL.iter().copied().filter(|s| before.contains_key(s.name())).collect();
    assert_eq!(known.len(), known_settings(lab.release), "{known:?}");
    assert_eq!(before.len(), known.len(), "every setting has a name here: {before:?}");
    for setting in known {
        let value = before[setting.name()].value.as_deref().unwrap();
        setting.check(value).unwrap();
    }
    let lock = GroupSetting::RecordLockDuration.name();
    let changes =
        ShareGroupSettings::new().record_lock_duration(std::time::Duration::from_secs(20)).read_committed(true);
    lab.admin.apply_share_group_settings(&place.group, &changes).await.unwrap();
    let after = lab.admin.share_group_settings(&place.group).await.unwrap();
    assert_eq!((after[lock].value.as_deref(), after[lock].is_default), (Some("20000"), false));
    assert_eq!(after[GroupSetting::IsolationLevel.name()].value.as_deref(), Some("read_committed"));
    lab.admin.apply_share_group_settings(&place.group, &ShareGroupSettings::new().unset(lock)).await.unwrap();
    let back = lab.admin.share_group_settings(&place.group).await.unwrap();
    assert_eq!(back[lock], before[lock]);
    assert!(!back[GroupSetting::IsolationLevel.name()].is_default, "only what was named is taken back");
}

pub(crate) async fn refusals_are_typed(lab: &Lab) {
    let place = lab.place(1).await;
    let (group, topic) = (place.group.as_str(), place.topic.as_str());
    let code = |error: kafka_share::Error| error.code();
    let none = "there-is-no-such-group";
    assert_eq!(
        lab.admin.describe_share_group(none).await.map_err(code).unwrap_err(),
        Some(ErrorCode::GROUP_ID_NOT_FOUND)
    );
    let deleted = lab.admin.delete_groups(&[none]).await.remove(0).1;
    assert_eq!(deleted.map_err(code).unwrap_err(), Some(ErrorCode::GROUP_ID_NOT_FOUND));
    let set = |name: &str, value: &str| ShareGroupSettings::new().set(name, value);
    for settings in [set("share.no.such.setting", "1"), set("share.record.lock.duration.ms", "999999")] {
        let error = lab.admin.apply_share_group_settings(group, &settings).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Broker, Some(ErrorCode::INVALID_CONFIG)), "{error}");
    }
    let local =
        lab.admin.apply_share_group_settings(group, &set("share.session.timeout.ms", "soon")).await.unwrap_err();
    assert_eq!(local.kind(), ErrorKind::InvalidInput);
    let consumer = lab.member(&place, EXPLICIT);
    joined(&consumer).await;
    let mut refused = vec![lab.admin.delete_groups(&[group]).await.remove(0).1.unwrap_err()];
    if lab.release > Release::V4_1 {
        refused.push(lab.admin.alter_share_group_offsets(group, &[(topic, 0, 0)]).await.unwrap_err());
        refused.push(lab.admin.reset_share_group_offsets(group, &[topic], OffsetReset::Latest).await.unwrap_err());
        refused.push(lab.admin.delete_share_group_offsets(group, &[topic]).await.unwrap_err());
    }
    for error in refused {
        assert_eq!(error.code(), Some(ErrorCode::NON_EMPTY_GROUP), "{error}");
    }
    consumer.close(LONG).await.unwrap();
    let missing = lab.admin.reset_share_group_offsets(group, &["no-such-topic"], OffsetReset::Latest).await;
    assert_eq!(missing.map_err(code).unwrap_err(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    if lab.release == Release::V4_1 {
        return;
    }
    let each = lab.admin.alter_share_group_offsets_each(group, &[(topic, 0, 0), (topic, 7, 0)]).await.unwrap();
    assert!(each[&(topic.to_owned(), 0)].is_ok(), "{each:?}");
    let refused = each[&(topic.to_owned(), 7)].as_ref().unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
}
