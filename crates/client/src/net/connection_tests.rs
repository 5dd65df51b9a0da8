//! Connections over a socket that takes what it likes: callers that go away, peers that do not read.

use super::*;
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction};
use kafka_share_messages::{DescribeClusterRequest, FindCoordinatorRequest};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use tokio::io::{DuplexStream, ReadBuf};

const LONG: Duration = Duration::from_secs(20);

/// How many bytes the socket still takes, and who waits for more.
#[derive(Default)]
struct Gate(Mutex<(usize, Option<Waker>)>);

impl Gate {
    fn state(&self) -> MutexGuard<'_, (usize, Option<Waker>)> {
        self.0.lock().unwrap()
    }

    fn allow(&self, bytes: usize) {
        let mut state = self.state();
        state.0 = bytes;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }

    /// Waits until the socket takes no more, and somebody wants it to.
    async fn stalled(&self) {
        while self.state().1.is_none() {
            tokio::task::yield_now().await;
        }
    }
}

/// Takes three bytes at a time, and none beyond its gate.
struct Sluggish {
    inner: DuplexStream,
    gate: Arc<Gate>,
}

impl AsyncRead for Sluggish {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Sluggish {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        let gate = Arc::clone(&self.gate);
        let mut state = gate.state();
        if state.0 == 0 {
            state.1 = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let take = buf.len().min(3).min(state.0);
        let written = Pin::new(&mut self.inner).poll_write(cx, &buf[..take]);
        if let Poll::Ready(Ok(count)) = &written {
            state.0 -= count;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl Socket for Sluggish {
    const BUFFERS: bool = false;

    fn refusal(_: &std::io::Error, _: bool) -> Option<String> {
        None
    }
}

async fn connect(broker: &EmbeddedBroker) -> (Connection, Arc<Gate>) {
    let inner = broker.connect_in_memory(broker.nodes()[0].id).unwrap();
    let gate = Arc::new(Gate::default());
    gate.allow(usize::MAX);
    let socket = Sluggish { inner, gate: Arc::clone(&gate) };
    let config = ConnectionConfig {
        client_id: Str::from_static("test"),
        max_frame: 1 << 20,
        max_in_flight: 8,
        max_queued: 64,
        handshake_timeout: LONG,
        max_idle: LONG,
        sasl: None,
    };
    let setup = Setup { config, peer: "sluggish".into(), sasl: None, has_certificate: false };
    let connection = Connection::spawn(setup, async { Ok(socket) }, |_| {});
    connection.ready(Instant::now() + LONG).await.unwrap();
    (connection, gate)
}

fn find(key: &str) -> FindCoordinatorRequest {
    FindCoordinatorRequest { coordinator_keys: vec![Str::from(key)], ..FindCoordinatorRequest::default() }
}

#[tokio::test]
async fn r155_a_request_whose_caller_left_goes_out_whole() {
    let broker = EmbeddedBroker::builder().start().await.unwrap();
    let (connection, gate) = connect(&broker).await;
    // Cut at every byte of the frame: its size, its header, its body.
    let version = connection.version::<FindCoordinatorRequest>(ApiKey::FIND_COORDINATOR, 99, Instant::now() + LONG);
    let version = version.await.unwrap();
    let whole = frame::encode_request(&find("first"), version, 1, &Str::from_static("test")).unwrap().to_vec();
    for cut in 0..whole.len() {
        gate.allow(cut);
        let first = find("first");
        let call = tokio::spawn({
            let connection = connection.clone();
            async move { connection.call(&first, Instant::now() + LONG).await }
        });
        tokio::time::timeout(LONG, gate.stalled()).await.expect("a write that stalls");
        call.abort();
        assert!(call.await.is_err_and(|e| e.is_cancelled()), "after {cut} bytes");
        gate.allow(usize::MAX);
        let answer = connection.call(&find("second"), Instant::now() + LONG).await.unwrap();
        assert_eq!(answer.coordinators[0].key.as_str(), "second", "after {cut} bytes");
    }
    assert!(!connection.is_closed(), "and all of that on one connection");
}

#[tokio::test]
async fn r157_a_write_that_stalls_ends_in_time() {
    let broker = EmbeddedBroker::builder().start().await.unwrap();
    for taken in [0, 3] {
        let (connection, gate) = connect(&broker).await;
        gate.allow(taken);
        let limit = Duration::from_millis(200);
        let started = Instant::now();
        // One that is being written, many that wait behind it, and more than are taken in at all.
        let calls: Vec<_> = (0..2 * COMMANDS)
            .map(|_| {
                let connection = connection.clone();
                tokio::spawn(async move {
                    connection.call(&DescribeClusterRequest::default(), Instant::now() + limit).await
                })
            })
            .collect();
        for call in calls {
            let error = call.await.unwrap().unwrap_err();
            assert!(error.is_timeout() || error.is_retriable(), "{error}");
        }
        assert!(started.elapsed() >= limit && started.elapsed() < LONG, "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_request_that_comes_as_the_connection_ends_is_answered() {
    let broker = EmbeddedBroker::builder().start().await.unwrap();
    let (connection, _gate) = connect(&broker).await;
    let version = connection.version::<FindCoordinatorRequest>(ApiKey::FIND_COORDINATOR, 99, Instant::now() + LONG);
    let frame = frame::encode_request(&find("late"), version.await.unwrap(), 1, &Str::from_static("test")).unwrap();
    let permit = connection.handle.commands.reserve().await.unwrap();
    drop(broker);
    tokio::time::timeout(LONG, connection.closed()).await.expect("the broker is gone");
    let call = Call { correlation_id: 1, frame, deadline: Instant::now() + LONG, answered: true };
    let pending = connection.hand_in(permit, call, "FindCoordinator");
    let error = tokio::time::timeout(LONG, pending.answer()).await.expect("an answer").unwrap_err();
    assert!(error.is_retriable() && !error.maybe_done(), "{error:?}");
}

#[tokio::test]
async fn its_pace_is_that_of_the_last_answer() {
    let broker = EmbeddedBroker::builder().start().await.unwrap();
    let (connection, _gate) = connect(&broker).await;
    assert!(!connection.answers_within(LONG), "there was none");
    connection.call(&find("quick"), Instant::now() + LONG).await.unwrap();
    assert!(connection.answers_within(LONG));
    broker.fault(Fault::new(FaultAction::Delay(Duration::from_millis(20))).key(ApiKey::FIND_COORDINATOR));
    connection.call(&find("slow"), Instant::now() + LONG).await.unwrap();
    assert!(!connection.answers_within(Duration::from_millis(10)));
}
