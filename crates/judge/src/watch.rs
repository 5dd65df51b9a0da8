//! Reads the frames of all connections of a client along, and keeps what was broken. No sockets, no clock.

use super::member::{Acks, Broken, Member, SessionAnswer, SessionRequest};
use bytes::Bytes;
use kafka_share::acknowledgements::TopicIdPartition;
use kafka_share_messages::{
    ApiKey, ErrorCode, Message, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest,
    ShareFetchResponse, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, frame,
};
use std::collections::{BTreeMap, HashMap};

/// Members of one client that are followed; the broker has no more at a time than its group's limit.
const MOST_MEMBERS: usize = 1_000;
/// What is kept of rules that were broken.
const MOST_BROKEN: usize = 100;

/// The acknowledgement batches of a message: two types of the same shape.
macro_rules! batches {
    ($batches:expr) => {
        $batches.iter().map(|b| (b.first_offset, b.last_offset, b.acknowledge_types.clone())).collect()
    };
}

/// A request whose answer is awaited.
struct Pending {
    key: ApiKey,
    version: i16,
    member: String,
}

/// All that a client has sent and heard.
#[derive(Default)]
pub(super) struct Watch {
    members: HashMap<String, Member>,
    pending: HashMap<(u64, i32), Pending>,
    /// Member of the heartbeats of each connection.
    beating: HashMap<u64, String>,
    /// Group that is judged; requests for others are let pass.
    group: String,
    broken: Vec<Broken>,
    /// Requests that were looked at.
    looked_at: BTreeMap<&'static str, u64>,
}

impl Watch {
    pub(super) fn new(group: &str) -> Self {
        Watch { group: group.to_owned(), ..Watch::default() }
    }

    /// What was broken.
    pub(super) fn broken(&self) -> &[Broken] {
        &self.broken
    }

    /// How many requests of each kind were looked at.
    pub(super) fn looked_at(&self) -> &BTreeMap<&'static str, u64> {
        &self.looked_at
    }

    fn note(&mut self, broken: impl IntoIterator<Item = Broken>) {
        let room = MOST_BROKEN - self.broken.len().min(MOST_BROKEN);
        self.broken.extend(broken.into_iter().take(room));
    }

    /// A request, without its size prefix.
    pub(super) fn request(&mut self, connection: u64, bytes: &Bytes) {
        let (header, body) = match frame::decode_request_header(bytes.clone()) {
            Ok(parts) => parts,
            Err(error) => return self.note([("WIRE", format!("a request that cannot be read: {error}"))]),
        };
        let (key, version) = (ApiKey(header.request_api_key), header.request_api_version);
        let body = bytes.slice(bytes.len() - body.remaining()..);
        let member = match key {
            ApiKey::SHARE_GROUP_HEARTBEAT => self.heartbeat(connection, body, version),
            ApiKey::SHARE_FETCH => self.fetch(connection, body, version),
            ApiKey::SHARE_ACKNOWLEDGE => self.acknowledge(connection, body, version),
            _ => None,
        };
        if let Some(member) = member {
            self.pending.insert((connection, header.correlation_id), Pending { key, version, member });
        }
    }

    fn read<M: Message>(&mut self, what: &'static str, body: Bytes, version: i16) -> Option<M> {
        *self.looked_at.entry(what).or_default() += 1;
        match M::decode_all(body, version) {
            Ok(message) => Some(message),
            Err(error) => {
                self.note([("WIRE", format!("{what} version {version} cannot be read: {error}"))]);
                None
            }
        }
    }

    fn member(&mut self, id: &str) -> Option<&mut Member> {
        if !self.members.contains_key(id) && self.members.len() >= MOST_MEMBERS {
            return None;
        }
        Some(self.members.entry(id.to_owned()).or_default())
    }

    fn heartbeat(&mut self, connection: u64, body: Bytes, version: i16) -> Option<String> {
        let beat: ShareGroupHeartbeatRequest = self.read("ShareGroupHeartbeat", body, version)?;
        if beat.group_id.as_str() != self.group {
            return None;
        }
        let id = beat.member_id.to_string();
        let mut broken = Vec::new();
        if id.is_empty() {
            broken.push(("SHARE-MEMBER-10", "a heartbeat without a member id".to_owned()));
        }
        let before = self.beating.insert(connection, id.clone()).filter(|before| *before != id);
        if let Some(before) = before.filter(|before| self.members.get(before).is_some_and(Member::is_there)) {
            broken.push(("SHARE-MEMBER-10", format!("member id {id}, while {before} has not left")));
        }
        let member = self.member(&id)?;
        broken.extend(member.beats(connection, beat.member_epoch, beat.subscribed_topic_names.as_deref()));
        self.note(broken);
        Some(id)
    }

    fn fetch(&mut self, connection: u64, body: Bytes, version: i16) -> Option<String> {
        let fetch: ShareFetchRequest = self.read("ShareFetch", body, version)?;
        let acks = fetch.topics.iter().flat_map(|topic| topic.partitions.iter().map(move |p| (topic.topic_id, p)));
        let acks = acks.filter(|(_, p)| !p.acknowledgement_batches.is_empty()).map(|(topic_id, p)| Acks {
            tp: TopicIdPartition { topic_id, partition: p.partition_index },
            batches: batches!(p.acknowledgement_batches),
        });
        let request =
            SessionRequest { connection, epoch: fetch.share_session_epoch, is_fetch: true, acks: acks.collect() };
        self.session(fetch.group_id.as_deref(), fetch.member_id.as_deref(), request)
    }

    fn acknowledge(&mut self, connection: u64, body: Bytes, version: i16) -> Option<String> {
        let sent: ShareAcknowledgeRequest = self.read("ShareAcknowledge", body, version)?;
        let acks = sent.topics.iter().flat_map(|topic| topic.partitions.iter().map(move |p| (topic.topic_id, p)));
        let acks = acks.map(|(topic_id, p)| Acks {
            tp: TopicIdPartition { topic_id, partition: p.partition_index },
            batches: batches!(p.acknowledgement_batches),
        });
        let epoch = sent.share_session_epoch;
        let request = SessionRequest { connection, epoch, is_fetch: false, acks: acks.collect() };
        self.session(sent.group_id.as_deref(), sent.member_id.as_deref(), request)
    }

    fn session(&mut self, group: Option<&str>, member: Option<&str>, request: SessionRequest) -> Option<String> {
        if group != Some(self.group.as_str()) {
            return None;
        }
        let id = member.unwrap_or_default().to_owned();
        let broken = self.member(&id)?.asks(request);
        self.note(broken);
        Some(id)
    }

    /// An answer, without its size prefix.
    pub(super) fn answer(&mut self, connection: u64, bytes: &Bytes) {
        let Ok(correlation) = frame::correlation_id(bytes) else { return };
        let Some(Pending { key, version, member }) = self.pending.remove(&(connection, correlation)) else { return };
        let Some(member) = self.members.get_mut(&member) else { return };
        // What cannot be read is no rule that the client broke; it ends the connection, if the client sees it too.
        match key {
            ApiKey::SHARE_GROUP_HEARTBEAT => {
                let Ok((_, answer)) = frame::decode_response::<ShareGroupHeartbeatRequest>(bytes.clone(), version)
                else {
                    return;
                };
                beat(member, &answer);
            }
            ApiKey::SHARE_FETCH => {
                let Ok((_, answer)) = frame::decode_response::<ShareFetchRequest>(bytes.clone(), version) else {
                    return;
                };
                member.answered(&fetched(&answer));
            }
            _ => {
                let Ok((_, answer)) = frame::decode_response::<ShareAcknowledgeRequest>(bytes.clone(), version) else {
                    return;
                };
                member.answered(&acknowledged(&answer));
            }
        }
    }

    /// A connection is over, and the client does not know yet.
    pub(super) fn disconnected(&mut self, connection: u64) {
        self.pending.retain(|(of, _), _| *of != connection);
        self.beating.remove(&connection);
        self.members.values_mut().for_each(|member| member.disconnected(connection));
    }
}

fn beat(member: &mut Member, answer: &ShareGroupHeartbeatResponse) {
    let must_join = matches!(
        answer.error_code,
        ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::GROUP_ID_NOT_FOUND
    );
    member.beat_answered(answer.error_code.is_ok().then_some(answer.member_epoch), must_join);
}

fn whole(code: ErrorCode) -> SessionAnswer {
    let lost = matches!(code, ErrorCode::SHARE_SESSION_NOT_FOUND | ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    SessionAnswer { lost, failed: code.is_err(), ..SessionAnswer::default() }
}

fn fetched(answer: &ShareFetchResponse) -> SessionAnswer {
    let mut all = whole(answer.error_code);
    for topic in &answer.responses {
        for row in &topic.partitions {
            let tp = TopicIdPartition { topic_id: topic.topic_id, partition: row.partition_index };
            all.acquired.extend(row.acquired_records.iter().map(|a| (tp, a.first_offset, a.last_offset)));
            if row.acknowledge_error_code.is_err() {
                all.refused.insert(tp);
            }
        }
    }
    all
}

fn acknowledged(answer: &ShareAcknowledgeResponse) -> SessionAnswer {
    let mut all = whole(answer.error_code);
    let rows = answer.responses.iter().flat_map(|topic| topic.partitions.iter().map(move |row| (topic.topic_id, row)));
    let refused = rows.filter(|(_, row)| row.error_code.is_err());
    all.refused.extend(refused.map(|(topic_id, row)| TopicIdPartition { topic_id, partition: row.partition_index }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_share_messages::Request;
    use kafka_share_wire::Str;

    fn bytes<R: Request>(request: &R, version: i16, correlation: i32) -> Bytes {
        let frame = frame::encode_request(request, version, correlation, &Str::from("judged")).unwrap();
        Bytes::from(frame.to_vec()).slice(4..)
    }

    fn fetch(epoch: i32) -> ShareFetchRequest {
        ShareFetchRequest {
            group_id: Some("g".into()),
            member_id: Some("m".into()),
            share_session_epoch: epoch,
            ..ShareFetchRequest::default()
        }
    }

    fn ids(watch: &Watch) -> Vec<&'static str> {
        watch.broken().iter().map(|(id, _)| *id).collect()
    }

    #[test]
    fn requests_of_the_group_are_judged_and_those_of_others_are_not() {
        let mut watch = Watch::new("g");
        watch.request(1, &bytes(&ShareFetchRequest { group_id: Some("other".into()), ..fetch(7) }, 1, 1));
        assert!(watch.broken().is_empty());
        watch.request(1, &bytes(&fetch(7), 1, 2));
        assert_eq!(ids(&watch), ["SHARE-CLIENT-29"]);
        watch.disconnected(1);
        watch.request(2, &bytes(&fetch(0), 1, 1));
        assert_eq!(ids(&watch), ["SHARE-CLIENT-29"]);
    }

    //= SHARE-MEMBER-10
    #[test]
    fn a_member_keeps_its_id() {
        let beat = |member: &str| ShareGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: member.into(),
            subscribed_topic_names: Some(vec!["t".into()]),
            ..ShareGroupHeartbeatRequest::default()
        };
        let mut watch = Watch::new("g");
        watch.request(1, &bytes(&beat(""), 1, 1));
        watch.request(2, &bytes(&beat("a"), 1, 1));
        assert_eq!(ids(&watch), ["SHARE-MEMBER-10"]);
        watch.request(2, &bytes(&beat("b"), 1, 2));
        assert_eq!(ids(&watch), ["SHARE-MEMBER-10"; 2]);
    }

    #[test]
    fn damaged_requests_are_told_and_never_more_than_a_hundred() {
        let mut watch = Watch::new("g");
        for correlation in 0..200 {
            let whole = bytes(&fetch(0), 1, correlation);
            watch.request(1, &whole.slice(..whole.len() - 3));
        }
        watch.request(1, &Bytes::from_static(&[1]));
        assert_eq!(watch.broken().len(), MOST_BROKEN);
        assert!(watch.broken().iter().all(|(id, _)| *id == "WIRE"));
    }
}
