//! Dead letter queues of share groups (KIP-1191).

use super::SHARE;
use crate::Need;
use crate::case::list;
use crate::expect::{Check, Stop, equal, fail, that};
use crate::lab::{Lab, Member, SOON, Topic};
use kafka_share_messages::ApiKey;
use kafka_share_wire::Str;
use std::time::{Duration, Instant};

const DLQ: &[Need] = &[Need::Api(ApiKey::SHARE_FETCH, 2), Need::Feature("share.version", 2)];

list! {
    rejected_record_becomes_a_dead_letter(1191, DLQ) "SHARE-DLQ-01";
    three_rejections_are_three_letters(1191, DLQ) "SHARE-DLQ-01";
    delivery_limit_makes_a_dead_letter(1191, DLQ) "SHARE-DLQ-02";
    letter_names_its_record(1191, DLQ) "SHARE-DLQ-03";
    letter_names_group_and_count(1191, DLQ) "SHARE-DLQ-04";
    letter_leaves_key_and_value_out(1191, DLQ) "SHARE-DLQ-05" => payload(false);
    letter_has_key_and_value_where_wanted(1191, DLQ) "SHARE-DLQ-06" => payload(true);
    topic_that_does_not_allow_it_gets_none(1191, DLQ) "SHARE-DLQ-07";
    accepted_and_released_make_no_letters(1191, DLQ) "SHARE-DLQ-08";
    group_without_a_queue_archives(1191, SHARE) "SHARE-DLQ-09";
    missing_queue_does_not_keep_the_record(1191, DLQ) "SHARE-DLQ-11";
    letter_says_why_it_was_rejected(1191, DLQ) "SHARE-DLQ-12" => reason(false);
    letter_says_why_at_the_limit(1191, DLQ) "SHARE-DLQ-12" => reason(true);
}

const ALLOWED: &[(&str, &str)] = &[("errors.deadletterqueue.group.enable", "true")];

/// A source with `records` records, a queue, and a member that has acquired all of them.
async fn stage(lab: &Lab, records: usize, allowed: bool, more: &[(&str, &str)]) -> Check<(Topic, Member, Topic)> {
    let name = format!("dlq.{}", lab.name("q"));
    let queue = lab.topic_named(&name, 1, if allowed { ALLOWED } else { &[] }).await?;
    let mut configs = vec![("errors.deadletterqueue.topic.name", name.as_str())];
    configs.extend_from_slice(more);
    let (topic, mut member) = lab.with_records_and(records, &configs).await?;
    member.acquire_exactly(&topic, 0..records as i64, 1).await?;
    Ok((topic, member, queue))
}

/// Header names and values of each letter, with key and value as `key` and `value`.
type Letter = Vec<(String, Option<String>)>;

/// Waits until the queue has as many letters.
async fn letters(lab: &Lab, queue: &Topic, want: usize) -> Check<Vec<Letter>> {
    let until = Instant::now() + SOON;
    loop {
        let found = lab.records(queue).await?;
        if found.len() >= want {
            equal("letters in the queue", found.len(), want)?;
            return Ok(found);
        }
        that(Instant::now() < until, || format!("{} of {want} letters are in the queue", found.len()))?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn header<'a>(letter: &'a Letter, name: &str) -> Option<&'a str> {
    letter.iter().find(|(found, _)| found == name).and_then(|(_, value)| value.as_deref())
}

async fn rejected_record_becomes_a_dead_letter(lab: Lab) -> Check {
    let (topic, mut member, queue) = stage(&lab, 1, true, &[]).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[3])]).await?;
    letters(&lab, &queue, 1).await?;
    lab.lag_becomes(&member.group, &topic, 1, 0).await
}

async fn three_rejections_are_three_letters(lab: Lab) -> Check {
    let (topic, mut member, queue) = stage(&lab, 5, true, &[]).await?;
    member.acknowledge_ok(&topic, &[(0, 4, &[3, 1, 3, 1, 3])]).await?;
    let found = letters(&lab, &queue, 3).await?;
    let mut offsets: Vec<Option<&str>> = found.iter().map(|l| header(l, "__dlq.errors.offset")).collect();
    offsets.sort_unstable();
    equal("offsets in the letters", offsets, vec![Some("0"), Some("2"), Some("4")])
}

const TWICE: &[(&str, &str)] = &[("share.delivery.count.limit", "2")];

async fn delivery_limit_makes_a_dead_letter(lab: Lab) -> Check {
    let (topic, mut member, queue) = stage(&lab, 1, true, TWICE).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[2])]).await?;
    member.acquire_exactly(&topic, 0..1, 2).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[2])]).await?;
    let found = letters(&lab, &queue, 1).await?;
    equal("delivery count", header(&found[0], "__dlq.errors.delivery.count"), Some("2"))
}

async fn letter_names_its_record(lab: Lab) -> Check {
    let (topic, mut member, queue) = stage(&lab, 3, true, &[]).await?;
    member.acknowledge_ok(&topic, &[(0, 2, &[1, 3, 1])]).await?;
    let found = letters(&lab, &queue, 1).await?;
    equal("topic", header(&found[0], "__dlq.errors.topic"), Some(topic.name.as_str()))?;
    equal("partition", header(&found[0], "__dlq.errors.partition"), Some("0"))?;
    equal("offset", header(&found[0], "__dlq.errors.offset"), Some("1"))
}

async fn letter_names_group_and_count(lab: Lab) -> Check {
    let (topic, mut member, queue) = stage(&lab, 1, true, &[]).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[3])]).await?;
    let found = letters(&lab, &queue, 1).await?;
    equal("group", header(&found[0], "__dlq.errors.group"), Some(member.group.as_str()))?;
    equal("delivery count", header(&found[0], "__dlq.errors.delivery.count"), Some("1"))
}

async fn payload(lab: Lab, wanted: bool) -> Check {
    let copy: &[(&str, &str)] = &[("errors.deadletterqueue.copy.record.enable", "true")];
    let (topic, mut member, queue) = stage(&lab, 1, true, if wanted { copy } else { &[] }).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[3])]).await?;
    let found = letters(&lab, &queue, 1).await?;
    equal("value of the letter", header(&found[0], "value"), wanted.then_some("record 0"))
}

async fn topic_that_does_not_allow_it_gets_none(lab: Lab) -> Check {
    let (topic, mut member, queue) = stage(&lab, 1, false, &[]).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[3])]).await?;
    lab.lag_becomes(&member.group, &topic, 1, 0).await?;
    letters(&lab, &queue, 0).await.map(drop)
}

async fn accepted_and_released_make_no_letters(lab: Lab) -> Check {
    let (topic, mut member, queue) = stage(&lab, 2, true, &[]).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[1, 2])]).await?;
    member.acquire_exactly(&topic, 1..2, 2).await?;
    member.acknowledge_ok(&topic, &[(1, 1, &[1])]).await?;
    lab.lag_becomes(&member.group, &topic, 2, 0).await?;
    letters(&lab, &queue, 0).await.map(drop)
}

async fn group_without_a_queue_archives(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[3])]).await?;
    lab.lag_becomes(&member.group, &topic, 1, 0).await
}

async fn missing_queue_does_not_keep_the_record(lab: Lab) -> Check {
    let name = format!("dlq.{}", lab.name("q"));
    let (topic, mut member) = lab.with_records_and(1, &[("errors.deadletterqueue.topic.name", &name)]).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[3])]).await?;
    let gone = lab.lag_becomes(&member.group, &topic, 1, 0).await;
    // Brokers may be told to create queues; then there is one to be removed.
    if lab.cluster().topic(&Str::from(name.as_str()), false, Instant::now() + Duration::from_millis(500)).await.is_ok()
    {
        return Err(Stop::NotSupported("the broker creates dead letter queues by itself".into()));
    }
    gone
}

async fn reason(lab: Lab, at_the_limit: bool) -> Check {
    let (topic, mut member, queue) = stage(&lab, 1, true, TWICE).await?;
    if at_the_limit {
        member.acknowledge_ok(&topic, &[(0, 0, &[2])]).await?;
        member.acquire_exactly(&topic, 0..1, 2).await?;
    }
    member.acknowledge_ok(&topic, &[(0, 0, if at_the_limit { &[2] } else { &[3] })]).await?;
    let found = letters(&lab, &queue, 1).await?;
    let Some(message) = header(&found[0], "__dlq.errors.message") else {
        return fail(format!("the letter has no reason: {:?}", found[0]));
    };
    let word = if at_the_limit { "delivery count" } else { "rejected" };
    that(message.contains(word), || format!("the reason says {message:?}, without {word:?}"))
}
