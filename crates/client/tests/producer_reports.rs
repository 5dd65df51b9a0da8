//! Field reports about sending: closing and giving up beside it, panics, a client whose runtime is gone, a silent broker.

mod support;

use kafka_share::net::Cluster;
use kafka_share::{ClientConfig, ErrorKind, PartitionReader, Producer, ProducerRecord, TransactionalProducer};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::ApiKey;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{LONG, Rig};
use tokio::sync::{Barrier, oneshot};
use tokio::time::timeout;

const SENDERS: usize = 8;
const ROUNDS: usize = 500;

fn record() -> ProducerRecord<'static> {
    ProducerRecord::new("orders").partition(0).value("r")
}

/// Sends until the producer is closed, without waiting in between; gives how many were delivered.
async fn send_until_closed(producer: Arc<Producer>, start: Arc<Barrier>) -> usize {
    start.wait().await;
    let mut taken = Vec::new();
    let refused = loop {
        match producer.send(record()).await {
            Ok(delivery) => taken.push(delivery),
            Err(error) => break error,
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(refused.kind(), ErrorKind::Closed, "{refused}");
    let mut delivered = 0;
    for delivery in taken {
        match timeout(LONG, delivery).await.expect("every send is settled") {
            Ok(_) => delivered += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Closed, "{error}"),
        }
    }
    delivered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r164_a_send_beside_close_is_delivered_or_fails_with_closed() {
    let rig = Rig::new(1).await;
    rig.producer().send(record()).await.unwrap().await.unwrap();
    let mut delivered = 1;
    for round in 0..ROUNDS {
        let producer = Arc::new(Producer::builder("").cluster(Arc::clone(&rig.cluster)).build().unwrap());
        let start = Arc::new(Barrier::new(SENDERS + 1));
        let senders: Vec<_> =
            (0..SENDERS).map(|_| tokio::spawn(send_until_closed(Arc::clone(&producer), Arc::clone(&start)))).collect();
        start.wait().await;
        // Some rounds give up what is on its way, the others deliver it.
        let patience = if round % 2 == 0 { LONG } else { Duration::ZERO };
        let closed = timeout(LONG, producer.close(patience)).await.expect("close returns");
        assert!(patience.is_zero() || closed.is_ok(), "{closed:?}");
        for sender in senders {
            delivered += sender.await.unwrap();
        }
        drop(timeout(LONG, producer.flush()).await.expect("flush returns"));
    }
    let mut reader = PartitionReader::read_committed(Arc::clone(&rig.cluster), "orders").await.unwrap();
    let read = timeout(LONG, reader.read_to_end()).await.unwrap().unwrap();
    let written: usize = read.iter().map(|batch| batch.iter().count()).sum();
    // What failed with "closed" may have been written; what was delivered was written.
    assert!(written >= delivered, "{written} written, {delivered} said to be");
}

#[test]
fn r163_sends_fail_promptly_once_the_clients_runtime_is_gone() {
    let brokers = tokio::runtime::Runtime::new().unwrap();
    let rig = brokers.block_on(Rig::new(1));
    let clients = tokio::runtime::Runtime::new().unwrap();
    let bootstrap = rig.broker.bootstrap_servers();
    let (producer, delivery) = clients.block_on(async {
        let cluster = Cluster::new(ClientConfig::new(&bootstrap)).unwrap();
        let producer = Producer::builder("").cluster(cluster).linger(Duration::ZERO).build().unwrap();
        producer.send(record()).await.unwrap().await.unwrap();
        let fault = rig.broker.fault(Fault::new(FaultAction::Delay(2 * LONG)).key(ApiKey::PRODUCE).times(u32::MAX));
        let delivery = producer.send(record()).await.unwrap();
        while rig.broker.fault_hits(fault) == 0 {
            tokio::task::yield_now().await;
        }
        (Arc::new(producer), delivery)
    });
    // Waits in another runtime, while the one that carries the requests goes away.
    let waiting = brokers.spawn(delivery);
    let (begun, has_begun) = oneshot::channel();
    let flushing = brokers.spawn({
        let producer = Arc::clone(&producer);
        async move {
            let flush = producer.flush();
            tokio::pin!(flush);
            let early = tokio::select! {
                biased;
                result = &mut flush => Some(result),
                () = std::future::ready(()) => None,
            };
            begun.send(()).unwrap();
            assert!(early.is_none(), "there is something to wait for");
            flush.await
        }
    });
    brokers.block_on(has_begun).unwrap();
    clients.shutdown_timeout(LONG);
    let began = Instant::now();
    brokers.block_on(async {
        for error in [
            timeout(LONG, waiting).await.unwrap().unwrap().unwrap_err(),
            timeout(LONG, flushing).await.unwrap().unwrap().unwrap_err(),
            timeout(LONG, producer.send(record())).await.unwrap().unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        }
        timeout(LONG, producer.flush()).await.expect("nothing is left to wait for").unwrap();
    });
    assert!(began.elapsed() < LONG / 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r157_a_broker_that_falls_silent_holds_a_send_no_longer_than_the_delivery_timeout() {
    let rig = Rig::new(1).await;
    let mut builder = Producer::builder(&rig.broker.bootstrap_servers());
    for (name, value) in [("request.timeout.ms", "1500"), ("delivery.timeout.ms", "5000"), ("linger.ms", "0")] {
        builder.set(name, value).unwrap();
    }
    let producer = builder.build().unwrap();
    producer.send(record()).await.unwrap().await.unwrap();
    rig.broker.fault(Fault::new(FaultAction::Ignore).key(ApiKey::PRODUCE).times(u32::MAX));
    let began = Instant::now();
    let error = timeout(LONG, producer.send(record()).await.unwrap()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(began.elapsed() >= Duration::from_millis(5000));
    // And the producer lives on.
    rig.broker.clear_faults();
    timeout(LONG, producer.send(record()).await.unwrap()).await.unwrap().unwrap();
}

/// A producer runs no code of the application but the work of a transaction: what panics there is dropped, as any other
/// call of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r158_work_that_panics_is_never_committed_and_the_producer_goes_on() {
    let rig = Rig::new(1).await;
    let builder = TransactionalProducer::builder("", "panics").cluster(Arc::clone(&rig.cluster));
    let producer = Arc::new(builder.build().unwrap());
    producer.init_transactions().await.unwrap();
    for round in 0..3 {
        let panicking = tokio::spawn({
            let producer = Arc::clone(&producer);
            async move {
                let work = async |t: &TransactionalProducer| {
                    t.send(record()).await?.await?;
                    assert!(round > 100, "of the application");
                    Ok(())
                };
                producer.transaction(work).await
            }
        });
        assert!(panicking.await.unwrap_err().is_panic());
        let work = async |t: &TransactionalProducer| t.send(record()).await.map(drop);
        timeout(LONG, producer.transaction(work)).await.expect("no lock is left").unwrap();
    }
    let mut reader = PartitionReader::read_committed(Arc::clone(&rig.cluster), &rig.topic()).await.unwrap();
    let read = timeout(LONG, reader.read_to_end()).await.unwrap().unwrap();
    assert_eq!(read.iter().map(|batch| batch.iter().count()).sum::<usize>(), 3, "one of each round");
}

/// Whoever gives up waiting stops the waiting, and nothing that is on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r166_a_close_that_is_given_up_and_a_dropped_producer_deliver_what_was_sent() {
    let rig = Rig::new(1).await;
    let slow = || rig.broker.fault(Fault::new(FaultAction::Delay(Duration::from_secs(3))).key(ApiKey::PRODUCE));
    for dropped in [false, true] {
        let producer = Producer::builder("").cluster(Arc::clone(&rig.cluster)).build().unwrap();
        let fault = slow();
        let on_its_way = producer.send(record()).await.unwrap();
        while rig.broker.fault_hits(fault) == 0 {
            tokio::task::yield_now().await;
        }
        // Begun behind the other, and not sent yet.
        let collected = producer.send(record()).await.unwrap();
        if !dropped {
            timeout(Duration::from_millis(1), producer.close(LONG)).await.expect_err("the broker is slow");
        }
        drop(producer);
        for delivery in [on_its_way, collected] {
            timeout(LONG, delivery).await.expect("it is settled").expect("it is written");
        }
    }
}
