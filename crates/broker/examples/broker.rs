//! Runs an embedded broker until it is interrupted: `cargo run --example broker -- [nodes] [first port]`.

use kafka_share_broker::EmbeddedBroker;
use std::net::{Ipv4Addr, SocketAddr};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let nodes = args.next().map_or(Ok(1), |n| n.parse::<u16>())?;
    let port = args.next().map_or(Ok(0), |p| p.parse::<u16>())?;
    let address = |i| SocketAddr::from((Ipv4Addr::LOCALHOST, if port == 0 { 0 } else { port + i }));
    let broker = EmbeddedBroker::builder().listen((0..nodes).map(address)).start().await?;
    println!("bootstrap.servers={}", broker.bootstrap_servers());
    std::future::pending::<()>().await;
    Ok(())
}
