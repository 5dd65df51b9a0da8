//! Every async method of the administration client, dropped at each of its await points: the client goes on as before, and
//! what a whole call does then is done.

use crate::support::{GROUP, LONG, Mode, Rig};
use kafka_share::admin::{
    AutoOffsetReset, ConfigResource, GroupFilter, Isolation, NewTopic, OffsetReset, OffsetSpec, ShareGroupSettings,
    TransactionFilter,
};
use kafka_share::ledger::NewLedger;
use kafka_share::{Admin, ClientConfig};
use std::collections::BTreeSet;
use std::path::Path;

/// The group has a start offset then, and nobody is in it.
async fn left_by_its_member(rig: &Rig) {
    let consumer = rig.consumer(Mode::Explicit);
    rig.receive(&consumer, 3).await;
    consumer.close(LONG).await.unwrap();
}

// On one thread, so that nothing else moves on while a call does, and no await point is passed in a hurry.
#[tokio::test]
async fn admin_methods_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let topic = rig.topic();
    let topic = topic.as_str();
    left_by_its_member(&rig).await;
    let group = ConfigResource::Group(GROUP.to_owned());
    let settings = ShareGroupSettings::new().auto_offset_reset(AutoOffsetReset::Earliest);
    let mut called = Vec::new();
    let new = || Admin::new(ClientConfig::new(&rig.broker.bootstrap_servers())).unwrap();
    dropped_at_each_point!(new, called,
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
        list_transactions => async |a: &Admin| a.list_transactions(&TransactionFilter::ongoing()).await.is_ok(),
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

#[tokio::test]
async fn methods_of_the_ledger_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    let new = || Admin::new(ClientConfig::new(&rig.broker.bootstrap_servers())).unwrap();
    let ledger = "share-ack-ledger";
    let mut called = Vec::new();
    dropped_at_each_point!(new, called,
        create_ledger => async |a: &Admin| a.create_ledger(&NewLedger::new().partitions(2)).await.is_ok(),
        check_ledger => async |a: &Admin| a.check_ledger(ledger).await.is_ok(),
        describe_ledger => async |a: &Admin| a.describe_ledger(ledger).await.is_ok_and(|l| l.partitions.len() == 2),
        raise_ledger_generation => async |a: &Admin| a.raise_ledger_generation(ledger, GROUP).await.is_ok_and(|n| n > 0),
        leave_ledger => async |a: &Admin| a.leave_ledger(ledger, GROUP).await.is_ok_and(|left| left.is_empty()),
        settle_ledger => async |a: &Admin| a.settle_ledger(ledger, LONG).await.is_ok_and(|done| done.left == 0),
    );
    let called: BTreeSet<String> = called.into_iter().map(str::to_owned).collect();
    assert_eq!(called, async_methods("src/ledger"), "each async method, and no other");
}

/// Names of the public async methods in the sources of a folder.
pub(crate) fn async_methods(folder: &str) -> BTreeSet<String> {
    documented_async_methods(folder).into_iter().map(|(name, _)| name).collect()
}

/// The same with what is said of each.
pub(crate) fn documented_async_methods(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut methods = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|e| e.path().is_file()) {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let mut docs = String::new();
        for line in text.lines().map(str::trim_start) {
            if let Some(doc) = line.strip_prefix("///") {
                docs = docs + doc + "\n";
            } else if let Some(rest) = line.strip_prefix("pub async fn ") {
                methods.extend(rest.split(['(', '<']).next().map(|name| (name.to_owned(), std::mem::take(&mut docs))));
            } else if !line.starts_with(['#', '/']) {
                docs.clear();
            }
        }
    }
    methods
}
