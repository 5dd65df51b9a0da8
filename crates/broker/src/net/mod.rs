//! The tokio shell: listeners, connections, the timer. It carries bytes and decides nothing.

mod activity;
mod connection;
mod hub;
mod listener;
mod outbox;
mod tls;

pub(crate) use connection::{Limits, Place};
pub(crate) use hub::{Hub, start_time};
pub(crate) use listener::{Listener, run_timer};
pub(crate) use tls::acceptor;
