//! Every async method of the administration client, dropped at each of its await points: the client goes on as before, and
//! what a whole call does then is done.

use crate::drop_after;
use crate::support::{GROUP, LONG, Mode, Rig};
use kafka_share::admin::{
    AutoOffsetReset, ConfigResource, GroupFilter, Isolation, NewTopic, OffsetReset, OffsetSpec, ShareGroupSettings,
};
use kafka_share::{Admin, ClientConfig};
use std::collections::BTreeSet;
use std::path::Path;

/// Calls a method, dropped after 0, 1, 2, .. polls, until one call comes to its end; then once more, on the same client.
macro_rules! dropped_at_each_point {
    ($rig:expr, $called:expr, $($name:ident => $call:expr),* $(,)?) => {$({
        // A client of its own each time: the first call has to connect, and so has the most await points.
        let mut points = 0;
        loop {
            let admin = Admin::new(ClientConfig::new(&$rig.broker.bootstrap_servers())).unwrap();
            let whole = drop_after(points, ($call)(&admin)).await;
            let again = tokio::time::timeout(LONG, ($call)(&admin)).await;
            assert!(again.unwrap_or(false), "{} after one that was dropped at point {points}", stringify!($name));
            if let Some(done) = whole {
                assert!(done, "{} came to its end and failed", stringify!($name));
                break;
            }
            points += 1;
            assert!(points < 200, "{} has no end", stringify!($name));
        }
        assert!(points > 1, "{} never waited", stringify!($name));
        $called.push(stringify!($name));
    })*};
}

// On one thread, so that nothing else moves on while a call does, and no await point is passed in a hurry.
#[tokio::test]
async fn admin_methods_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let topic = rig.topic();
    let topic = topic.as_str();
    // A group with a start offset, and nobody in it.
    let consumer = rig.consumer(Mode::Explicit);
    rig.receive(&consumer, 3).await;
    consumer.close(LONG).await.unwrap();
    let group = ConfigResource::Group(GROUP.to_owned());
    let settings = ShareGroupSettings::new().auto_offset_reset(AutoOffsetReset::Earliest);
    let mut called = Vec::new();
    dropped_at_each_point!(rig, called,
        list_topics => async |a: &Admin| { a.list_topics().await.is_ok() },
        describe_topics => async |a: &Admin| { a.describe_topics(&[topic]).await.is_ok_and(|t| t[0].1.is_ok()) },
        describe_cluster => async |a: &Admin| { a.describe_cluster().await.is_ok() },
        list_offsets => async |a: &Admin| {
            a.list_offsets(topic, OffsetSpec::Latest, Isolation::ReadUncommitted).await.is_ok_and(|o| o == [3])
        },
        describe_configs => async |a: &Admin| { a.describe_configs(&group, &[]).await.is_ok() },
        incremental_alter_configs => async |a: &Admin| {
            a.incremental_alter_configs(&group, &[("share.auto.offset.reset", Some("earliest"))]).await.is_ok()
        },
        alter_share_group_configs => async |a: &Admin| {
            a.alter_share_group_configs(GROUP, &[("share.auto.offset.reset", "earliest")]).await.is_ok()
        },
        share_group_settings => async |a: &Admin| { a.share_group_settings(GROUP).await.is_ok() },
        apply_share_group_settings => async |a: &Admin| { a.apply_share_group_settings(GROUP, &settings).await.is_ok() },
        list_groups => async |a: &Admin| { a.list_groups().await.is_ok_and(|g| g.len() == 1) },
        list_groups_with => async |a: &Admin| { a.list_groups_with(&GroupFilter::default()).await.is_ok() },
        describe_share_group => async |a: &Admin| { a.describe_share_group(GROUP).await.is_ok() },
        describe_share_groups => async |a: &Admin| { a.describe_share_groups(&[GROUP]).await[0].1.is_ok() },
        describe_share_group_offsets => async |a: &Admin| { a.describe_share_group_offsets(GROUP).await.is_ok() },
        alter_share_group_offsets => async |a: &Admin| {
            a.alter_share_group_offsets(GROUP, &[(topic, 0, 1)]).await.is_ok()
        },
        alter_share_group_offsets_each => async |a: &Admin| {
            a.alter_share_group_offsets_each(GROUP, &[(topic, 0, 1)]).await.is_ok()
        },
        plan_share_group_reset => async |a: &Admin| {
            a.plan_share_group_reset(GROUP, &[topic], OffsetReset::Earliest).await.is_ok()
        },
        reset_share_group_offsets => async |a: &Admin| {
            a.reset_share_group_offsets(GROUP, &[topic], OffsetReset::Earliest).await.is_ok()
        },
        delete_share_group_offsets => async |a: &Admin| {
            // Of the one that was dropped, or of this one.
            let _ = a.delete_share_group_offsets(GROUP, &[topic]).await;
            a.describe_share_group_offsets(GROUP).await.is_ok_and(|o| o.iter().all(|o| o.start_offset.is_none()))
        },
        delete_groups => async |a: &Admin| {
            let _ = a.delete_groups(&[GROUP]).await;
            a.list_groups().await.is_ok_and(|groups| groups.is_empty())
        },
        // What was done by a call that was dropped is there already.
        create_topic => async |a: &Admin| {
            let _ = a.create_topic(NewTopic::new("new", 1)).await;
            a.describe_topics(&["new"]).await.is_ok_and(|t| t[0].1.is_ok())
        },
        create_topics => async |a: &Admin| {
            let _ = a.create_topics(&[NewTopic::new("newer", 1)]).await;
            a.describe_topics(&["newer"]).await.is_ok_and(|t| t[0].1.is_ok())
        },
        create_partitions => async |a: &Admin| {
            let _ = a.create_partitions("new", 2).await;
            a.describe_topics(&["new"]).await.is_ok_and(|t| t[0].1.as_ref().is_ok_and(|t| t.partitions.len() == 2))
        },
        delete_topics => async |a: &Admin| {
            let _ = a.delete_topics(&["newer"]).await;
            a.list_topics().await.is_ok_and(|topics| topics.iter().all(|t| t.name != "newer"))
        },
    );
    let called: BTreeSet<String> = called.into_iter().map(str::to_owned).collect();
    assert_eq!(called, async_methods("src/admin"), "each async method, and no other");
}

/// Names of the public async methods in the sources of a folder.
pub(crate) fn async_methods(folder: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        names.extend(text.lines().filter_map(|line| {
            let rest = line.trim_start().strip_prefix("pub async fn ")?;
            Some(rest.split(['(', '<']).next()?.to_owned())
        }));
    }
    names
}
