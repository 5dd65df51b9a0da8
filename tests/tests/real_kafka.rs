//! Real brokers of each supported release come up with share groups on, and answer our codec.

use kafka_share_messages::ApiVersionsResponse;
use kafka_share_tests::kafka::{RealKafka, api_versions};
use std::time::{Duration, Instant};

fn check_release(test: &str, version: &str, share_fetch: (i16, i16), share_version: i16) {
    let Some(kafka) = RealKafka::start(test, version) else { return };
    let level = |answer: &ApiVersionsResponse| {
        answer.finalized_features.iter().find(|f| f.name == "share.version").map(|f| f.max_version_level)
    };
    // Features are told a moment after the first answer.
    let until = Instant::now() + Duration::from_secs(60);
    let answer = loop {
        let answer = api_versions(kafka.address()).expect("the broker answers");
        if level(&answer).is_some() || Instant::now() > until {
            break answer;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let range = answer.api_keys.iter().find(|k| k.api_key == 78).map(|k| (k.min_version, k.max_version));
    assert_eq!(range, Some(share_fetch), "ShareFetch of Kafka {version}");
    assert_eq!(level(&answer), Some(share_version), "share.version of Kafka {version}");
}

#[test]
fn kafka_4_1_offers_share_groups() {
    check_release("kafka_4_1_offers_share_groups", "4.1.1", (1, 1), 1);
}

#[test]
fn kafka_4_2_offers_share_groups() {
    check_release("kafka_4_2_offers_share_groups", "4.2.0", (1, 2), 1);
}

#[test]
fn kafka_4_3_offers_share_groups() {
    check_release("kafka_4_3_offers_share_groups", "4.3.1", (1, 2), 1);
}

#[test]
fn kafka_4_4_offers_share_groups() {
    check_release("kafka_4_4_offers_share_groups", "4.4.0", (1, 2), 2);
}
