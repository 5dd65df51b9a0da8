//! This project's client as a peer of `kshare bench`, in a program of its own: unlike `kshare`, which does the same as its own
//! first client, it holds no broker, no driver and no other command. `kshare bench --peer alone=kshare-peer` measures it.

#[path = "../bench/peer/mod.rs"]
mod peer;

#[path = "../exit.rs"]
#[allow(dead_code, reason = "kshare knows more ways to end")]
mod exit;

#[path = "../properties.rs"]
mod properties;

use clap::Parser;
use std::process::ExitCode;

/// Does what `kshare bench` asks of a peer.
#[derive(Parser)]
#[command(name = "kshare-peer", version)]
struct Arguments {
    #[command(flatten)]
    peer: peer::PeerArgs,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match Box::pin(peer::run(Arguments::parse().peer)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
