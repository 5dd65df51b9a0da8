//! What a group's coordinator says of the group's share-partitions.

use super::{Lab, SOON, Topic};
use crate::expect::{Check, fail, ok};
use kafka_share::net::CoordinatorKind;
use kafka_share_messages::describe_share_group_offsets_request::{
    DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsRequestTopic,
};
use kafka_share_messages::{ApiKey, DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse, ErrorCode};
use kafka_share_wire::Str;
use std::time::{Duration, Instant};

impl Lab {
    /// Start offset and lag of partition 0.
    pub(crate) async fn offsets(&self, group: &Str, topic: &Topic) -> Check<(i64, i64)> {
        let row = DescribeShareGroupOffsetsRequestTopic {
            topic_name: topic.name.clone(),
            partitions: vec![0],
            ..Default::default()
        };
        let row = DescribeShareGroupOffsetsRequestGroup {
            group_id: group.clone(),
            topics: Some(vec![row]),
            ..Default::default()
        };
        let request = DescribeShareGroupOffsetsRequest { groups: vec![row], ..Default::default() };
        let code = |r: &DescribeShareGroupOffsetsResponse| {
            r.groups.first().map_or(ErrorCode::UNKNOWN_SERVER_ERROR, |g| g.error_code)
        };
        let response = self.coordinate(CoordinatorKind::Group, group, &request, None, code).await?;
        ok("DescribeShareGroupOffsets", code(&response))?;
        match response.groups.iter().flat_map(|g| &g.topics).flat_map(|t| &t.partitions).next() {
            Some(p) if p.error_code.is_ok() => Ok((p.start_offset, p.lag)),
            Some(p) => fail(format!("DescribeShareGroupOffsets, partition 0: {}", p.error_code)),
            None => fail("DescribeShareGroupOffsets was answered without a row for the partition"),
        }
    }

    /// Waits until `lag` records are not done and the start offset is not beyond `open`, the oldest of them.
    ///
    /// Kafka writes a start offset that moved with the next change of state only, so it may stay behind. Where the
    /// broker does not tell offsets, there is nothing to see.
    pub(crate) async fn lag_becomes(&self, group: &Str, topic: &Topic, open: i64, lag: i64) -> Check {
        let versions = self.cluster().features(self.deadline()).await?;
        if versions.range(ApiKey::DESCRIBE_SHARE_GROUP_OFFSETS).is_none() {
            self.note("DescribeShareGroupOffsets is not offered: start offset and lag are not compared");
            return Ok(());
        }
        let what = format!("a start offset of {open} at most and lag {lag}");
        // Version 0 has no lag.
        self.offsets_become(group, topic, &what, |got| got.0 <= open && (got.1 == lag || got.1 == -1)).await
    }

    /// Waits until start offset and lag are as wanted.
    pub(crate) async fn offsets_become(
        &self,
        group: &Str,
        topic: &Topic,
        what: &str,
        good: impl Fn((i64, i64)) -> bool + Send,
    ) -> Check {
        let until = Instant::now() + SOON / 2;
        loop {
            let got = self.offsets(group, topic).await?;
            if good(got) {
                return Ok(());
            }
            if Instant::now() > until {
                return fail(format!("expected {what}, got start offset {} and lag {}", got.0, got.1));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
