//! `kshare broker`: the embedded broker as a process.

use crate::exit::Failure;
use clap::Args;
use kafka_share_broker::EmbeddedBroker;
use std::net::SocketAddr;

/// Options of `kshare broker`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  kshare broker --listen 127.0.0.1:9092\n\nEverything is in memory and gone when it ends."
)]
pub(crate) struct BrokerArgs {
    /// Address of the first node; further nodes take the ports that follow
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9092")]
    listen: SocketAddr,
    /// Number of nodes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// transaction.version to run with
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(i16).range(1..=2))]
    transaction_version: i16,
    /// Offer only what Apache Kafka 4.4 offers: no transactional acknowledgements
    #[arg(long)]
    released: bool,
}

pub(crate) async fn run(args: BrokerArgs) -> Result<(), Failure> {
    let mut addresses = Vec::new();
    for i in 0..args.nodes {
        let port = match args.listen.port() {
            0 => 0,
            first => first.checked_add(i).ok_or_else(|| Failure::usage("--listen and --nodes go past port 65535"))?,
        };
        addresses.push(SocketAddr::new(args.listen.ip(), port));
    }
    let broker = EmbeddedBroker::builder()
        .nodes(usize::from(args.nodes))
        .listen(addresses)
        .transaction_version(args.transaction_version)
        .transactional_acks(!args.released)
        .start()
        .await
        .map_err(Failure::new)?;
    println!(
        "embedded broker at {}, for development and tests; production is Apache Kafka",
        broker.bootstrap_servers()
    );
    println!("Ctrl-C ends it");
    tokio::signal::ctrl_c().await.map_err(|e| Failure::new(format_args!("Ctrl-C cannot be waited for: {e}")))?;
    broker.shutdown().await;
    println!("ended");
    Ok(())
}
