//! What is countable of a share consumer, on the embedded broker and on a real Kafka 4.4.0: requests, locks, times.
//!
//! Limits of time leave room for a busy machine, and still tell it from the clients they were measured on. On an idle one
//! `KAFKA_SHARE_FIGURES=strict cargo test --release -p kafka-share-tests --test share_figures -- --nocapture --test-threads=1`
//! holds the figures that this client is to reach. The figures themselves are printed in either case.

mod acks;
mod cuts;
mod lab;
mod members;

use kafka_share::{ErrorCode, ErrorKind};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction};
use kafka_share_messages::ApiKey;
use kafka_share_tests::kafka::RealKafka;
use kafka_share_tests::kafka_cluster::RealCluster;
use kafka_share_tests::proxy::Proxy;
use lab::{EMBEDDED, LONG, Lab, receive};
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

/// One after the other: they measure. All run, whatever fails.
#[derive(Default)]
struct Run {
    failed: Vec<&'static str>,
}

impl Run {
    async fn scenario(&mut self, name: &'static str, scenario: impl Future<Output = ()> + Send + 'static) {
        if tokio::spawn(scenario).await.is_err() {
            self.failed.push(name);
        }
    }

    fn end(self) {
        assert!(self.failed.is_empty(), "failed: {:?}", self.failed);
    }
}

/// `direct` and `proxied` lead to the same kind of broker.
async fn all(direct: Lab, proxied: Lab, proxy: Proxy) -> Run {
    let (direct, proxied, proxy) = (Arc::new(direct), Arc::new(proxied), Arc::new(proxy));
    let mut run = Run::default();
    macro_rules! run {
        ($($module:ident :: $name:ident ($($with:ident),*);)*) => {
            $(run.scenario(stringify!($name), $module::$name($(Arc::clone(&$with)),*)).await;)*
        };
    }
    run! {
        acks::requests_for_acks_one_by_one(proxied, proxy);
        acks::requests_for_acks_beside_a_poll(proxied, proxy);
        acks::commit_beside_acks(direct);
        acks::acks_in_reverse(direct);
        cuts::cut_with_records_buffered(proxied, proxy);
        cuts::cut_with_acks_pending(proxied, proxy);
        cuts::cut_with_acks_on_their_way(proxied, proxy);
        members::join_of_a_new_group(direct);
        members::unsubscribe_frees(direct);
        members::unsubscribe_beside_a_waiting_poll(direct);
        members::producer_beside_a_waiting_poll(direct);
    }
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_broker() {
    let direct = EmbeddedBroker::builder().start().await.unwrap();
    let proxy = Proxy::start().unwrap();
    let behind = free_port();
    let named = EmbeddedBroker::builder().listen([behind]).advertise_port(proxy.address().port());
    let _behind = named.start().await.unwrap();
    proxy.lead_to(behind);
    let proxied = Lab::new(EMBEDDED, &proxy.address().to_string());
    all(Lab::new(EMBEDDED, &direct.bootstrap_servers()), proxied, proxy).await.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_broker_of_three_nodes() {
    let broker = EmbeddedBroker::builder().nodes(3).start().await.unwrap();
    members::record_limit_on_three_brokers(Arc::new(Lab::new(EMBEDDED, &broker.bootstrap_servers()))).await;
}

#[test]
fn kafka_4_4_0_of_three_nodes() {
    let Some(kafka) = RealCluster::start("kafka_4_4_0_of_three_nodes", "4.4.0") else { return };
    runtime().block_on(async {
        members::record_limit_on_three_brokers(Arc::new(Lab::new("Kafka 4.4.0", &kafka.bootstrap()))).await;
    });
}

#[test]
fn kafka_4_4_0() {
    let proxy = Proxy::start().unwrap();
    let behind = free_port();
    // A listener of its own, so that the broker's own connections do not go through the proxy.
    let properties = [
        &format!("listeners=PLAINTEXT://127.0.0.1:{{port}},PROXIED://{behind},CONTROLLER://127.0.0.1:{{controller}}"),
        &format!("advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},PROXIED://{}", proxy.address()),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=PLAINTEXT",
    ];
    let Some(kafka) = RealKafka::start_with("kafka_4_4_0", "4.4.0", &properties) else { return };
    proxy.lead_to(behind);
    runtime().block_on(async {
        let proxied = Lab::new("Kafka 4.4.0", &proxy.address().to_string());
        all(Lab::new("Kafka 4.4.0", &kafka.bootstrap()), proxied, proxy).await.end();
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn free_port() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr()).unwrap()
}

/// On a real Kafka this takes an authoriser; here the broker refuses from some moment on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorisation_withdrawn_is_returned_by_poll() {
    for key in [ApiKey::SHARE_FETCH, ApiKey::SHARE_GROUP_HEARTBEAT] {
        let broker = EmbeddedBroker::builder().start().await.unwrap();
        let lab = Lab::new(EMBEDDED, &broker.bootstrap_servers());
        let place = lab.place(1).await;
        lab.produce(&place, 0, 0..1).await;
        let consumer = lab.member(&place);
        receive(&consumer, 1).await;
        let code = ErrorCode::GROUP_AUTHORIZATION_FAILED;
        broker.fault(Fault::new(FaultAction::Error(code)).key(key).times(u32::MAX));
        let error = consumer.poll(LONG).await.expect_err("the refusal is shown");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Authorization, Some(code)), "{key:?}: {error}");
    }
}
