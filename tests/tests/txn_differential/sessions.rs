//! Incremental fetch sessions (KIP-227).

use std::net::SocketAddr;

use kafka_share_wire::Uuid;

use crate::look::Fetched;
use crate::player::Player;

pub(crate) fn sessions(address: SocketAddr, level: i16) -> Vec<String> {
    script(address, level, 17)
}

/// Before v13 topics go by name.
pub(crate) fn sessions_by_name(address: SocketAddr, level: i16) -> Vec<String> {
    script(address, level, 12)
}

fn script(address: SocketAddr, level: i16, version: i16) -> Vec<String> {
    let mut p = Player::new(address, "sessions", level);
    let plain = (-1, -1);
    let f = Fetched { version, ..Fetched::default() };
    p.produce(None, plain, 0, -1, 2);
    p.fetch(&Fetched { epoch: 0, ..f.clone() });
    p.fetch(&Fetched { epoch: -1, parts: &[(0, 0), (1, 0)], ..f.clone() });
    let s = p.fetch(&Fetched { epoch: 0, parts: &[(0, 0), (1, 0)], ..f.clone() });
    let f = Fetched { session: s, ..f };
    // The same again, as the position was not moved; then nothing is new.
    p.fetch(&Fetched { epoch: 1, ..f.clone() });
    p.fetch(&Fetched { epoch: 2, parts: &[(0, 2)], ..f.clone() });
    p.fetch(&Fetched { epoch: 3, ..f.clone() });
    p.produce(None, plain, 1, -1, 1);
    p.fetch(&Fetched { epoch: 4, ..f.clone() });
    p.fetch(&Fetched { epoch: 5, parts: &[(1, 1)], ..f.clone() });
    p.say("wrong epochs and sessions");
    p.fetch(&Fetched { epoch: 5, ..f.clone() });
    p.fetch(&Fetched { epoch: 7, ..f.clone() });
    p.fetch(&Fetched { session: s.wrapping_add(1) & i32::MAX, epoch: 1, ..f.clone() });
    p.fetch(&Fetched { session: 0, epoch: 1, ..f.clone() });
    p.fetch(&Fetched { epoch: 6, version: if version >= 13 { 12 } else { 13 }, ..f.clone() });
    p.say("added and forgotten");
    p.fetch(&Fetched { epoch: 6, parts: &[(2, 0)], ..f.clone() });
    p.produce(None, plain, 2, -1, 1);
    p.produce(None, plain, 0, -1, 1);
    p.fetch(&Fetched { epoch: 7, forget: &[0], ..f.clone() });
    p.fetch(&Fetched { epoch: 8, forget: &[1], parts: &[(1, 0)], ..f.clone() });
    p.fetch(&Fetched { epoch: 9, ..f.clone() });
    p.say("errors come each time");
    p.fetch(&Fetched { epoch: 10, parts: &[(0, 77), (99, 0)], ..f.clone() });
    p.fetch(&Fetched { epoch: 11, ..f.clone() });
    p.fetch(&Fetched { epoch: 12, parts: &[(0, 3)], forget: &[99], ..f.clone() });
    p.fetch(&Fetched { epoch: 13, ..f.clone() });
    p.fetch(&Fetched { epoch: 14, parts: &[(2, 1)], ..f.clone() });
    if version >= 13 {
        p.fetch(&Fetched { epoch: 15, parts: &[(0, 0)], topic: Some(Uuid([9; 16])), ..f.clone() });
        p.fetch(&Fetched { epoch: 16, ..f.clone() });
        p.fetch(&Fetched { epoch: 17, forget: &[0], topic: Some(Uuid([9; 16])), ..f.clone() });
        p.fetch(&Fetched { epoch: 18, ..f.clone() });
    }
    p.say("all forgotten");
    let next = if version >= 13 { 19 } else { 15 };
    p.fetch(&Fetched { epoch: next, forget: &[0, 1, 2], ..f.clone() });
    p.fetch(&Fetched { epoch: next + 1, parts: &[(0, 0)], ..f.clone() });
    p.say("closed by a full fetch, and for good");
    let s = p.fetch(&Fetched { session: 0, epoch: 0, parts: &[(0, 0)], ..f.clone() });
    let t = p.fetch(&Fetched { session: s, epoch: 0, parts: &[(1, 0)], ..f.clone() });
    p.fetch(&Fetched { session: s, epoch: 1, ..f.clone() });
    p.fetch(&Fetched { session: t, epoch: 1, ..f.clone() });
    p.fetch(&Fetched { session: t, epoch: -1, ..f.clone() });
    p.fetch(&Fetched { session: t, epoch: 2, ..f.clone() });
    p.fetch(&Fetched { session: t, epoch: -1, parts: &[(0, 0)], ..f });
    p.lines
}
