//! A random script: two members of a group do what members do, and what they should not.

use std::net::SocketAddr;
use std::time::Duration;

use crate::player::{A, Acks, B, Fetch, Player};

/// Steps of a script.
const STEPS: usize = 70;
/// Delivery limit of the group.
const LIMIT: &str = "4";

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn pick(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.pick(100) < percent
    }
}

/// A member as the script sees it.
struct Member {
    id: &'static str,
    /// What the next request should carry.
    epoch: i32,
}

/// Plays the script of a seed.
pub(crate) fn seeded(address: SocketAddr, seed: u64, partitions: i32) -> Vec<String> {
    let mut rng = Rng(seed);
    let mut p = Player::new(address, &format!("seed{seed}"), partitions, 60_000);
    p.configure(&[("share.delivery.count.limit", LIMIT)]);
    p.join(&[A, B]);
    let all: Vec<(i32, Acks<'_>)> = (0..partitions).map(|partition| (partition, &[][..])).collect();
    // A real broker loads share-partitions one by one.
    for (epoch, partition) in (0..partitions).enumerate() {
        p.produce(partition, 5);
        p.fetch_some(A, epoch as i32, &[(partition, &[])]);
    }
    let mut members = [Member { id: A, epoch: 0 }, Member { id: B, epoch: 0 }];
    members[0].epoch = partitions;
    for _ in 0..STEPS {
        let member = &mut members[rng.pick(2) as usize];
        match rng.pick(10) {
            0 | 1 => {
                let records = 1 + rng.pick(8) as usize;
                let partition = rng.pick(partitions as u64) as i32;
                p.produce(partition, records);
                p.say(format!("produced {records} to {partition}"));
            }
            2..=4 => fetch(&mut p, &mut rng, member, &all),
            5..=8 => acknowledge(&mut p, &mut rng, member, partitions),
            _ => close(&mut p, &mut rng, member),
        }
    }
    p.lines
}

/// Mostly the right epoch.
fn epoch(rng: &mut Rng, member: &mut Member) -> i32 {
    if rng.chance(92) {
        let epoch = member.epoch;
        member.epoch += 1;
        return epoch;
    }
    [member.epoch + 1, member.epoch - 1, 1_000_000, -2][rng.pick(4) as usize].max(-2)
}

fn fetch(p: &mut Player, rng: &mut Rng, member: &mut Member, all: &[(i32, Acks<'_>)]) {
    let opens = member.epoch == 0;
    let epoch = if opens { std::mem::replace(&mut member.epoch, 1) } else { epoch(rng, member) };
    if epoch == 0 || epoch == -1 {
        // A wrong guess that opens or closes a session.
        member.epoch = epoch + 1;
    }
    let strict = rng.chance(40);
    // Not compared: which of several partitions a real broker serves first, where the limit lets it not serve all.
    let max_records = if all.len() > 1 { 500 } else { [1, 3, 7, 500][rng.pick(4) as usize] };
    let how = Fetch { max_records, batch_size: max_records.min(100), strict, ..Fetch::default() };
    let topics = if epoch == 0 { all } else { &[] };
    p.fetch_with(member.id, epoch, topics, &how);
    if epoch <= 0 {
        // A real broker frees what the session before held a moment later.
        std::thread::sleep(Duration::from_millis(150));
    }
}

/// Ranges around what may be in flight, with any types.
fn acknowledge(p: &mut Player, rng: &mut Rng, member: &mut Member, partitions: i32) {
    let mut batches: Vec<(i64, i64, Vec<i8>)> = Vec::new();
    let mut first = rng.pick(40) as i64;
    for _ in 0..=rng.pick(2) {
        let last = first + rng.pick(5) as i64;
        let kind = |rng: &mut Rng| if rng.chance(97) { rng.pick(4) as i8 } else { 4 + rng.pick(2) as i8 };
        let types = if rng.chance(60) { vec![kind(rng)] } else { (first..=last).map(|_| kind(rng)).collect() };
        batches.push((first, last, types));
        first = if rng.chance(95) { last + 1 + rng.pick(4) as i64 } else { last };
    }
    let acks: Vec<(i64, i64, &[i8])> = batches.iter().map(|(first, last, types)| (*first, *last, &types[..])).collect();
    let epoch = if member.epoch == 0 { 1 } else { epoch(rng, member) };
    if epoch == -1 {
        member.epoch = 0;
    }
    let renew = rng.chance(5);
    let partition = rng.pick(partitions as u64) as i32;
    p.ack_with(member.id, epoch, &[(partition, &acks)], renew, 0);
    if epoch == -1 {
        std::thread::sleep(Duration::from_millis(150));
    }
}

fn close(p: &mut Player, rng: &mut Rng, member: &mut Member) {
    member.epoch = 0;
    if rng.chance(50) {
        p.fetch(member.id, -1, &[]);
    } else {
        p.ack(member.id, -1, &[]);
    }
    std::thread::sleep(Duration::from_millis(150));
}
