//! This project's own consumer, judged as any other; and one that breaks rules, to show that it is seen.

use kafka_share::{AcknowledgementMode, KafkaShareConsumer};
use kafka_share_judge::{Place, judge, scenarios};
use std::time::Duration;
use tokio::sync::oneshot;

const PATIENCE: Duration = Duration::from_secs(60);

async fn own(place: Place, mut stop: oneshot::Receiver<()>, mode: AcknowledgementMode) -> kafka_share::Result<()> {
    let consumer = KafkaShareConsumer::builder(&place.bootstrap, place.group).acknowledgement_mode(mode).build()?;
    consumer.subscribe([place.topic])?;
    while stop.try_recv().is_err() {
        let records = match consumer.poll(Duration::from_millis(200)).await {
            Ok(records) => records,
            Err(error) if error.is_retriable() => continue,
            Err(error) => return Err(error),
        };
        for record in &records {
            if mode == AcknowledgementMode::Explicit {
                consumer.acknowledge(&record)?;
            }
        }
    }
    consumer.close(Duration::from_secs(10)).await
}

#[tokio::test]
async fn the_own_consumer_keeps_every_rule() {
    for mode in [AcknowledgementMode::Implicit, AcknowledgementMode::Explicit] {
        for scenario in scenarios() {
            let run = async |place, stop| own(place, stop, mode).await.map_err(|error| error.to_string());
            let result = judge(&scenario, PATIENCE, run).await.unwrap();
            assert!(result.passed(), "{mode:?}: {result:#?}");
            assert!(result.looked_at["ShareFetch"] > 1 && result.looked_at["ShareGroupHeartbeat"] > 1, "{result:?}");
        }
    }
}

#[tokio::test]
async fn a_client_that_does_nothing_does_not_pass() {
    let scenario = &scenarios()[0];
    let idle = async |_: Place, stop: oneshot::Receiver<()>| {
        let _ = stop.await;
        Ok(())
    };
    let result = judge(scenario, Duration::from_millis(200), idle).await.unwrap();
    assert!(!result.passed() && result.left > 0, "{result:?}");
    let ends = async |_: Place, _: oneshot::Receiver<()>| Ok(());
    let result = judge(scenario, PATIENCE, ends).await.unwrap();
    assert_eq!(result.ended.as_deref(), Some("it ended before it was told to"));
}
