//! The same raw share-group requests are played to the embedded broker and to a real Kafka: the answers must agree.

mod player;
mod scripts;

use std::net::SocketAddr;

/// A broker that is given by hand, for work on the scripts.
#[test]
fn explore() {
    let Ok(address) = std::env::var("SHARE_TARGET") else { return };
    let address: SocketAddr = address.parse().expect("an address");
    for (name, script) in scripts::ALL {
        println!("== {name}");
        for line in script(address) {
            println!("{line}");
        }
    }
}
