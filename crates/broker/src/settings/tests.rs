//! Tests of definitions, ranges and changes.

use super::definition::{Change, change};
use super::*;
use kafka_share_messages::ErrorCode;

fn set(definitions: &'static [Definition], name: &str, value: &str) -> Result<Overrides, ErrorCode> {
    let mut overrides = Overrides::new();
    change(definitions, &mut overrides, name, Change::Set, Some(value)).map_err(|refusal| refusal.code)?;
    Ok(overrides)
}

#[test]
fn defaults_pass_their_own_checks() {
    for definition in TOPIC_DEFINITIONS.iter().chain(GROUP_DEFINITIONS) {
        assert_eq!(definition.check(definition.default), Ok(()), "{}", definition.name);
    }
    for definitions in [TOPIC_DEFINITIONS, GROUP_DEFINITIONS] {
        assert!(definitions.is_sorted_by_key(|definition| definition.name));
    }
}

#[test]
fn topic_values_are_checked() {
    assert!(TopicConfig::new(&set(TOPIC_DEFINITIONS, "cleanup.policy", "compact,delete").unwrap()).compact);
    assert_eq!(set(TOPIC_DEFINITIONS, "cleanup.policy", "shred"), Err(ErrorCode::INVALID_CONFIG));
    assert_eq!(set(TOPIC_DEFINITIONS, "no.such", "1"), Err(ErrorCode::INVALID_CONFIG));
    assert_eq!(set(TOPIC_DEFINITIONS, "max.message.bytes", "-1"), Err(ErrorCode::INVALID_CONFIG));
    assert_eq!(set(TOPIC_DEFINITIONS, "max.message.bytes", "many"), Err(ErrorCode::INVALID_CONFIG));
}

#[test]
fn lists_are_edited() {
    let mut overrides = Overrides::new();
    change(TOPIC_DEFINITIONS, &mut overrides, "cleanup.policy", Change::Append, Some("compact")).unwrap();
    assert_eq!(overrides["cleanup.policy"], "delete,compact");
    change(TOPIC_DEFINITIONS, &mut overrides, "cleanup.policy", Change::Subtract, Some("delete")).unwrap();
    assert_eq!(overrides["cleanup.policy"], "compact");
    assert!(change(TOPIC_DEFINITIONS, &mut overrides, "retention.ms", Change::Append, Some("1")).is_err());
}

#[test]
fn group_bounds_hold() {
    let bounds = GroupBounds::default();
    let check = |name: &str, value: &str| bounds.check(&set(GROUP_DEFINITIONS, name, value).unwrap()).is_ok();
    assert!(!check("share.record.lock.duration.ms", "14999"));
    assert!(check("share.record.lock.duration.ms", "15000"));
    assert!(!check("share.record.lock.duration.ms", "60001"));
    assert!(!check("share.auto.offset.reset", "none"));
    assert!(check("share.auto.offset.reset", "by_duration:PT1H"));
    assert!(!check("share.auto.offset.reset", "by_duration:-PT1H"));
    assert!(!check("errors.deadletterqueue.topic.name", "__dlq"));
}

#[test]
fn durations_are_iso() {
    assert_eq!(OffsetReset::parse("by_duration:P1DT2H3M4.5S"), Some(OffsetReset::ByDuration(93_784_500)));
    assert_eq!(OffsetReset::parse("by_duration:pt1h-30m0,25s"), Some(OffsetReset::ByDuration(1_800_250)));
    for bad in ["P", "PT", "1H", "PT1X", "PT-1S", "PT1.5H", "PTinfS", "PT1e3S", "PT1M1H", "P9223372036854775807D"] {
        assert_eq!(OffsetReset::parse(&format!("by_duration:{bad}")), None, "{bad}");
    }
}
