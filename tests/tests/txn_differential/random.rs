//! A random walk: whatever two transactional ids and an idempotent producer may do in any order, right or wrong.

use std::net::SocketAddr;

use crate::look::Fetched;
use crate::player::{Identity, Init, Player};

/// Steps of one walk.
const STEPS: usize = 150;

/// A small generator, so that both brokers are asked the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

struct Walker {
    name: &'static str,
    /// The last identity that was given.
    identity: Identity,
    /// Next sequence number by partition.
    sequences: [i32; 2],
}

pub(crate) fn script(address: SocketAddr, level: i16, seed: u64) -> Vec<String> {
    let mut p = Player::new(address, "random", level);
    let mut dice = Dice(seed);
    let mut walkers = ["a", "b"].map(|name| Walker { name, identity: p.fresh(name), sequences: [0; 2] });
    for _ in 0..STEPS {
        let walker = &mut walkers[dice.roll(2) as usize];
        step(&mut p, &mut dice, walker);
    }
    p.describe(&["a", "b"]);
    p.producers(&[0, 1]);
    for part in [0, 1] {
        p.offsets(part);
        p.fetch(&Fetched { parts: &[(part, 0)], ..Fetched::default() });
    }
    p.lines
}

fn step(p: &mut Player, dice: &mut Dice, walker: &mut Walker) {
    let (name, current) = (walker.name, walker.identity);
    let producer = match dice.roll(12) {
        0 => (current.0, current.1 + 1),
        1 => (current.0, current.1 - 1),
        _ => current,
    };
    let part = dice.roll(2) as usize;
    match dice.roll(12) {
        0 => take(walker, p.init(Some(name), Init::default())),
        1 => take(walker, p.init(Some(name), Init { current: producer, ..Init::default() })),
        2 | 3 if p.level < 2 => p.add(name, producer, &[("", &[part as i32])], 3),
        4..=6 => end(p, dice, walker, producer),
        7 => p.describe(&[name]),
        _ => {
            let sequence = walker.sequences[part] + if dice.roll(10) == 0 { 1 } else { 0 };
            p.produce(Some(name), producer, part as i32, sequence, 1);
            let went_well = p.lines.last().is_some_and(|line| line.contains("NONE"));
            if went_well && sequence == walker.sequences[part] && producer == current {
                walker.sequences[part] += 1;
            }
        }
    }
}

fn end(p: &mut Player, dice: &mut Dice, walker: &mut Walker, producer: Identity) {
    let next = p.end(walker.name, producer, dice.roll(2) == 0);
    if p.level >= 2 {
        take(walker, next);
    }
}

fn take(walker: &mut Walker, identity: Identity) {
    if identity.0 >= 0 && identity != walker.identity {
        walker.identity = identity;
        walker.sequences = [0; 2];
    }
}
