//! What one member of a share group may send, as far as its earlier requests and their answers tell. No sockets, no clock.

use kafka_share::acknowledgements::TopicIdPartition;
use kafka_share_wire::Str;
use std::collections::{BTreeMap, BTreeSet};

/// Epoch that leaves a group, or closes a share session.
pub(super) const FINAL: i32 = -1;
/// The type of an acknowledgement that keeps the record.
const RENEW: i8 = 4;

/// A rule that was broken, and how.
pub(super) type Broken = (&'static str, String);

/// Acknowledgements of one share-partition in a request.
#[derive(Debug, Clone)]
pub(super) struct Acks {
    pub(super) tp: TopicIdPartition,
    /// First offset, last offset, types.
    pub(super) batches: Vec<(i64, i64, Vec<i8>)>,
}

/// A ShareFetch or ShareAcknowledge request.
#[derive(Debug, Clone)]
pub(super) struct SessionRequest {
    pub(super) connection: u64,
    pub(super) epoch: i32,
    pub(super) is_fetch: bool,
    pub(super) acks: Vec<Acks>,
}

/// What came back for one.
#[derive(Debug, Default)]
pub(super) struct SessionAnswer {
    /// The session is not known, or not at this epoch.
    pub(super) lost: bool,
    /// Any other error of the whole request.
    pub(super) failed: bool,
    /// Acquired ranges.
    pub(super) acquired: Vec<(TopicIdPartition, i64, i64)>,
    /// Share-partitions whose acknowledgements were refused.
    pub(super) refused: BTreeSet<TopicIdPartition>,
}

/// A member, as the wire shows it.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// Epoch that the last answered heartbeat told.
    told: Option<i32>,
    /// It was told that it is not, or no longer, what it thinks.
    must_join: bool,
    left: bool,
    subscription: Option<Vec<Str>>,
    /// Connection of the heartbeat whose answer is awaited.
    beating: Option<u64>,
    /// The last heartbeat was answered well, so that the coordinator knows the subscription.
    settled: bool,
    /// Epoch that the next request of the open session has.
    next: Option<i32>,
    /// The session was lost, and no request has shown yet that the client knows.
    lost: bool,
    session_connection: Option<u64>,
    under_way: Option<SessionRequest>,
    /// Offsets that it holds.
    held: BTreeMap<TopicIdPartition, BTreeSet<i64>>,
}

impl Member {
    /// A heartbeat is sent.
    pub(super) fn beats(&mut self, connection: u64, epoch: i32, names: Option<&[Str]>) -> Vec<Broken> {
        let mut broken = Vec::new();
        // One that leaves need not wait for the answer to the one before.
        if self.beating.replace(connection).is_some() && epoch != FINAL {
            broken.push(("SHARE-CLIENT-20", "a heartbeat while the answer to another is awaited".to_owned()));
        }
        if epoch == FINAL {
            self.left = true;
            return broken;
        }
        if self.must_join && epoch != 0 {
            broken.push((
                "SHARE-CLIENT-32",
                format!("member epoch {epoch} after it was fenced or unknown, instead of 0"),
            ));
        }
        let expected = self.told.filter(|_| !self.must_join && !self.left).unwrap_or(0);
        if !self.must_join && epoch != expected {
            broken.push(("SHARE-CLIENT-31", format!("member epoch {epoch}, where the last answer told {expected}")));
        }
        match names {
            None if epoch == 0 => broken.push(("SHARE-CLIENT-19", "it joins without a subscription".to_owned())),
            Some(names) if epoch != 0 && self.settled && self.subscription.as_deref() == Some(names) => {
                broken.push(("SHARE-CLIENT-19", "a subscription that has not changed is named again".to_owned()));
            }
            _ => {}
        }
        if let Some(names) = names {
            self.subscription = Some(names.to_vec());
        }
        self.left = false;
        broken
    }

    /// A heartbeat was answered. `told`: the epoch; nothing where it was refused.
    pub(super) fn beat_answered(&mut self, told: Option<i32>, must_join: bool) {
        self.beating = None;
        self.settled = told.is_some();
        self.must_join |= must_join;
        if told.is_some() {
            (self.told, self.must_join) = (told, false);
        }
    }

    /// A session request is sent.
    pub(super) fn asks(&mut self, request: SessionRequest) -> Vec<Broken> {
        let mut broken = Vec::new();
        if self.under_way.is_some() {
            broken.push(("SHARE-SESSION-13", "a session request while the answer to another is awaited".to_owned()));
        }
        let epoch = request.epoch;
        let kind = if request.is_fetch { "ShareFetch" } else { "ShareAcknowledge" };
        if epoch == 0 {
            if !request.is_fetch {
                broken.push(("SHARE-CLIENT-29", "a ShareAcknowledge at epoch 0".to_owned()));
            }
            if !request.acks.is_empty() {
                broken.push(("SHARE-SESSION-15", "acknowledgements in the request that opens a session".to_owned()));
            }
            self.held.clear();
        } else if self.lost && epoch != FINAL {
            broken.push((
                "SHARE-SESSION-15",
                format!("{kind} at epoch {epoch} after the session was lost, instead of 0"),
            ));
        } else if epoch != FINAL && self.next != Some(epoch) {
            let expected = self.next.map_or_else(|| "0, as none is open".to_owned(), |next| next.to_string());
            broken.push(("SHARE-CLIENT-29", format!("{kind} at share session epoch {epoch} instead of {expected}")));
        }
        if epoch != 0 {
            request.acks.iter().for_each(|acks| self.check(acks, &mut broken));
        }
        self.lost &= epoch != 0;
        self.session_connection = Some(request.connection);
        self.under_way = Some(request);
        broken
    }

    fn check(&self, acks: &Acks, broken: &mut Vec<Broken>) {
        let place = |offset: i64| format!("partition {} offset {offset}", acks.tp.partition);
        let held = self.held.get(&acks.tp);
        let mut end = i64::MIN;
        for (first, last, types) in &acks.batches {
            if first > last || *first <= end {
                broken.push(("SHARE-CLIENT-05", format!("{}: ranges out of order, or twice", place(*first))));
                continue;
            }
            end = *last;
            let offsets = last.abs_diff(*first).saturating_add(1);
            if types.len() != 1 && types.len() as u64 != offsets {
                let text = format!("{}: {} types for {offsets} offsets", place(*first), types.len());
                broken.push(("SHARE-CLIENT-06", text));
            }
            let within = held.map_or(0, |held| held.range(first..=last).count() as u64);
            if within != offsets {
                let text = format!("{}: {} of {offsets} offsets are not held", place(*first), offsets - within);
                broken.push(("SHARE-CLIENT-30", text));
            }
        }
    }

    /// A session request was answered.
    pub(super) fn answered(&mut self, answer: &SessionAnswer) {
        let Some(request) = self.under_way.take() else { return };
        if answer.lost {
            return self.lose();
        }
        if answer.failed {
            return;
        }
        for acks in request.acks.iter().filter(|acks| !answer.refused.contains(&acks.tp)) {
            self.let_go(acks);
        }
        for (tp, first, last) in &answer.acquired {
            self.held.entry(*tp).or_default().extend(*first..=*last);
        }
        self.next = match request.epoch {
            FINAL => None,
            i32::MAX => Some(1),
            epoch => Some(epoch + 1),
        };
        if self.next.is_none() {
            self.held.clear();
        }
    }

    fn let_go(&mut self, acks: &Acks) {
        let Some(held) = self.held.get_mut(&acks.tp) else { return };
        for (first, last, types) in &acks.batches {
            let ended = |offset: i64| {
                let at = usize::try_from(offset - first).unwrap_or(0);
                types.get(at).or(types.first()) != Some(&RENEW)
            };
            held.retain(|offset| offset < first || offset > last || !ended(*offset));
        }
    }

    /// A connection is over: with it the session and what it held.
    pub(super) fn disconnected(&mut self, connection: u64) {
        if self.beating == Some(connection) {
            (self.beating, self.settled) = (None, false);
        }
        if self.session_connection == Some(connection) {
            self.under_way = None;
            if self.next.is_some() {
                self.lose();
            }
        }
    }

    fn lose(&mut self) {
        (self.lost, self.next) = (true, None);
        self.held.clear();
    }

    /// Whether it is, or may be, a member still.
    pub(super) fn is_there(&self) -> bool {
        !self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_share::Uuid;

    fn tp() -> TopicIdPartition {
        TopicIdPartition { topic_id: Uuid::from_halves(1, 2), partition: 3 }
    }

    fn fetch(epoch: i32, acks: &[(i64, i64, &[i8])]) -> SessionRequest {
        let batches: Vec<_> = acks.iter().map(|(first, last, types)| (*first, *last, types.to_vec())).collect();
        let acks = if batches.is_empty() { Vec::new() } else { vec![Acks { tp: tp(), batches }] };
        SessionRequest { connection: 1, epoch, is_fetch: true, acks }
    }

    fn got(first: i64, last: i64) -> SessionAnswer {
        SessionAnswer { acquired: vec![(tp(), first, last)], ..SessionAnswer::default() }
    }

    fn ids(broken: &[Broken]) -> Vec<&'static str> {
        broken.iter().map(|(id, _)| *id).collect()
    }

    /// With offsets 0 to 9 of a session at epoch 1.
    fn holding() -> Member {
        let mut member = Member::default();
        assert!(member.asks(fetch(0, &[])).is_empty());
        member.answered(&got(0, 9));
        member
    }

    //= SHARE-CLIENT-30
    #[test]
    fn what_is_held_is_acknowledged_once() {
        let mut member = holding();
        assert!(member.asks(fetch(1, &[(0, 4, &[1]), (5, 6, &[2, 3])])).is_empty());
        member.answered(&SessionAnswer::default());
        assert_eq!(ids(&member.asks(fetch(2, &[(6, 7, &[1])]))), ["SHARE-CLIENT-30"]);
        member.answered(&SessionAnswer::default());
        // Renewed records stay.
        assert!(member.asks(fetch(3, &[(8, 9, &[4])])).is_empty());
        member.answered(&SessionAnswer::default());
        assert!(member.asks(fetch(4, &[(8, 9, &[1])])).is_empty());
    }

    #[test]
    fn refused_acknowledgements_may_come_again() {
        let mut member = holding();
        member.asks(fetch(1, &[(0, 9, &[1])]));
        member.answered(&SessionAnswer { refused: BTreeSet::from([tp()]), ..SessionAnswer::default() });
        assert!(member.asks(fetch(2, &[(0, 9, &[1])])).is_empty());
    }

    #[test]
    fn batches_are_in_order_and_whole() {
        let mut member = holding();
        let broken = member.asks(fetch(1, &[(5, 6, &[1, 1, 1]), (0, 2, &[1])]));
        assert_eq!(ids(&broken), ["SHARE-CLIENT-06", "SHARE-CLIENT-05"]);
    }

    //= SHARE-CLIENT-29
    #[test]
    fn session_epochs_count_up_and_wrap() {
        let mut member = holding();
        assert_eq!(ids(&member.asks(fetch(2, &[]))), ["SHARE-CLIENT-29"]);
        assert_eq!(ids(&member.asks(fetch(1, &[]))), ["SHARE-SESSION-13"]);
        member.answered(&SessionAnswer::default());
        member.next = Some(i32::MAX);
        member.asks(fetch(i32::MAX, &[]));
        member.answered(&SessionAnswer::default());
        assert_eq!(member.next, Some(1));
        assert!(member.asks(fetch(FINAL, &[(0, 0, &[1])])).is_empty());
        member.answered(&SessionAnswer::default());
        assert_eq!(ids(&member.asks(fetch(2, &[]))), ["SHARE-CLIENT-29"], "no session is open");
    }

    #[test]
    fn a_lost_session_is_opened_anew_and_holds_nothing() {
        for end in ["answer", "connection"] {
            let mut member = holding();
            match end {
                "answer" => {
                    member.asks(fetch(1, &[]));
                    member.answered(&SessionAnswer { lost: true, ..SessionAnswer::default() });
                }
                _ => member.disconnected(1),
            }
            assert_eq!(ids(&member.asks(fetch(1, &[]))), ["SHARE-SESSION-15"], "{end}");
            member.disconnected(1);
            assert_eq!(ids(&member.asks(fetch(0, &[(0, 0, &[1])]))), ["SHARE-SESSION-15"], "{end}");
            member.answered(&got(0, 0));
            assert!(member.asks(fetch(1, &[(0, 0, &[1])])).is_empty(), "{end}");
        }
    }

    //= SHARE-CLIENT-31
    //= SHARE-CLIENT-32
    #[test]
    fn heartbeats_carry_what_they_were_told() {
        let names = [Str::from("orders")];
        let mut member = Member::default();
        assert_eq!(ids(&member.beats(1, 3, Some(&names))), ["SHARE-CLIENT-31"]);
        assert_eq!(ids(&member.beats(1, 0, None)), ["SHARE-CLIENT-20", "SHARE-CLIENT-19"]);
        member.beat_answered(Some(5), false);
        assert_eq!(ids(&member.beats(1, 5, Some(&names))), ["SHARE-CLIENT-19"]);
        member.beat_answered(None, true);
        assert_eq!(ids(&member.beats(1, 5, None)), ["SHARE-CLIENT-32"]);
        member.beat_answered(None, true);
        assert!(member.beats(1, 0, Some(&names)).is_empty());
        member.beat_answered(Some(6), false);
        assert!(member.beats(1, 6, None).is_empty());
        assert!(member.beats(1, FINAL, None).is_empty() && !member.is_there(), "while a heartbeat is under way");
    }
}
