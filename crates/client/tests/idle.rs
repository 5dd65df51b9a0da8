//! R20: a poll that waits costs nothing. Alone in its process, because it looks at the process's CPU time.

#![cfg(target_os = "linux")]

mod support;

use kafka_share::{Admin, ClientConfig, KafkaShareConsumer};
use kafka_share_broker::EmbeddedBroker;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r020_an_idle_poll_burns_no_cpu() {
    let broker = EmbeddedBroker::builder().topic("quiet", 2).start().await.expect("broker");
    let servers = broker.bootstrap_servers();
    Admin::new(ClientConfig::new(&servers)).expect("admin").list_topics().await.expect("topics");
    let consumer = KafkaShareConsumer::builder(&servers, "idle").build().expect("consumer");
    consumer.subscribe(["quiet"]).expect("subscribe");
    // Joining and the first fetches are behind us after this poll.
    assert!(consumer.poll(Duration::from_secs(2)).await.expect("poll").is_empty());
    let (before, started) = (support::cpu_time(), Instant::now());
    assert!(consumer.poll(Duration::from_secs(3)).await.expect("poll").is_empty());
    let used = support::cpu_time() - before;
    // Two tasks that keep each other awake would use the whole time, or twice that.
    assert!(used < started.elapsed() / 4, "{used:?} of CPU in {:?} of waiting", started.elapsed());
    consumer.close(Duration::from_secs(5)).await.expect("close");
}
