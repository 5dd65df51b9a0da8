//! Share groups that read committed records only, over open, committed and aborted transactions.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kafka_share_messages::{EndTxnRequest, ErrorCode, InitProducerIdRequest};
use kafka_share_wire::Str;
use kafka_share_wire::records::BatchOptions;

use crate::player::{A, Fetch, Player};

/// A transactional producer that speaks raw requests.
struct Producer {
    txn_id: String,
    id: i64,
    epoch: i16,
    sequence: i32,
}

impl Producer {
    fn new(p: &mut Player, name: &str) -> Self {
        let txn_id = format!("{name}-{}", p.group);
        p.coordinator(1, &txn_id);
        let request = InitProducerIdRequest {
            transactional_id: Some(Str::from(&txn_id)),
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let answer = p.conns[0].call(&request, 5).expect("an answer");
            if answer.error_code.is_ok() {
                return Producer { txn_id, id: answer.producer_id, epoch: answer.producer_epoch, sequence: 0 };
            }
            assert!(Instant::now() < deadline, "InitProducerId: {:?}", answer.error_code);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn produce(&mut self, p: &mut Player, records: usize) {
        let options = BatchOptions {
            producer_id: self.id,
            producer_epoch: self.epoch,
            base_sequence: self.sequence,
            transactional: true,
            ..BatchOptions::default()
        };
        p.produce_as(0, records, Some(&self.txn_id.clone()), options);
        self.sequence += records as i32;
    }

    fn end(&mut self, p: &mut Player, committed: bool) {
        let request = EndTxnRequest {
            transactional_id: Str::from(&self.txn_id),
            producer_id: self.id,
            producer_epoch: self.epoch,
            committed,
            ..Default::default()
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let answer = p.conns[0].call(&request, 5).expect("an answer");
            match answer.error_code {
                ErrorCode::NONE => {
                    (self.id, self.epoch, self.sequence) = (answer.producer_id, answer.producer_epoch, 0);
                    // The markers of a real broker come a moment after its answer.
                    std::thread::sleep(Duration::from_millis(300));
                    return;
                }
                ErrorCode::CONCURRENT_TRANSACTIONS if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                code => panic!("EndTxn: {code:?}"),
            }
        }
    }
}

/// Plays the script.
pub(crate) fn committed(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "committed", 1, 20_000);
    p.configure(&[("share.isolation.level", "read_committed")]);
    p.join(&[A]);
    let mut one = Producer::new(&mut p, "one");
    let mut two = Producer::new(&mut p, "two");
    p.produce(0, 2);
    p.fetch_some(A, 0, &[(0, &[])]);
    p.say("an open transaction holds all back");
    one.produce(&mut p, 3);
    p.produce(0, 2);
    p.fetch(A, 1, &[]);
    p.say("committed, with another one aborted in between");
    two.produce(&mut p, 2);
    one.produce(&mut p, 1);
    two.end(&mut p, false);
    p.fetch(A, 2, &[]);
    one.end(&mut p, true);
    p.fetch_some(A, 3, &[]);
    p.ack(A, 4, &[(0, &[(0, 6, &[1])])]);
    p.ack(A, 5, &[(0, &[(7, 8, &[1])])]);
    p.ack(A, 6, &[(0, &[(9, 11, &[0])])]);
    p.say("only aborted records");
    two.produce(&mut p, 4);
    two.end(&mut p, false);
    p.fetch(A, 7, &[]);
    p.produce(0, 1);
    p.fetch_some(A, 8, &[]);
    p.say("the strict mode");
    one.produce(&mut p, 3);
    one.end(&mut p, false);
    one.produce(&mut p, 3);
    one.end(&mut p, true);
    let two_records = Fetch { max_records: 2, batch_size: 2, strict: true, wait_ms: 3_000, ..Fetch::default() };
    for epoch in 9..13 {
        p.fetch_with(A, epoch, &[], &two_records);
    }
    p.say("uncommitted reads see everything");
    p.configure(&[("share.isolation.level", "read_uncommitted")]);
    two.produce(&mut p, 2);
    p.fetch_some(A, 13, &[]);
    two.end(&mut p, false);
    p.fetch(A, 14, &[]);
    p.lines
}
