//! Streams of records and of outcomes: items that nobody waits for any more, and streams that are dropped and made anew.

use crate::support::{LONG, Mode, Rig, SHORT, offsets};
use crate::{POINTS, acknowledged, all_acknowledged, drop_after, flat};
use futures_core::Stream;
use std::future::poll_fn;
use std::pin::Pin;

/// The next item of a stream.
async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r160_stream_dropped_at_every_await_point() {
    // The item's future alone, or the stream with it.
    for keep in [true, false] {
        let rig = Rig::new(1).await;
        let consumer = rig.consumer(Mode::Implicit);
        assert!(consumer.poll(SHORT).await.unwrap().is_empty());
        let mut stream = consumer.stream();
        let mut whole = 0;
        for round in 0..POINTS as i64 {
            rig.produce(round * 2..round * 2 + 2).await;
            for offset in [round * 2, round * 2 + 1] {
                let record = match drop_after(round as usize, next(&mut stream)).await {
                    Some(record) => {
                        whole += 1;
                        record
                    }
                    None => {
                        if !keep {
                            stream = consumer.stream();
                        }
                        next(&mut stream).await
                    }
                };
                let record = record.unwrap().unwrap();
                assert_eq!((record.offset(), record.delivery_count()), (offset, 1), "after {round} await points");
            }
        }
        assert!(whole > 0, "no item came at once");
        drop(stream);
        consumer.close(LONG).await.unwrap();
        let second = rig.consumer(Mode::Implicit);
        assert_eq!(offsets(&rig.receive(&second, 1).await), [(POINTS as i64 * 2 - 1, 2)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    let consumer = rig.consumer(Mode::Explicit);
    let mut told = Vec::new();
    for round in 0..POINTS {
        acknowledged(&rig, &consumer, round as i64).await;
        consumer.commit_async().unwrap();
        let mut stream = consumer.outcomes();
        told.extend(drop_after(round, next(&mut stream)).await.flatten());
        if round % 2 == 0 {
            told.extend(drop_after(1, next(&mut stream)).await.flatten());
        }
    }
    consumer.commit_sync(LONG).await.unwrap();
    assert!(!told.is_empty());
    told.extend(consumer.poll_outcomes());
    assert_eq!(flat(&told), all_acknowledged(POINTS));
}
