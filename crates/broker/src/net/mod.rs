//! The tokio shell: listeners, connections, the timer. It carries bytes and decides nothing.

mod activity;
mod connection;
mod hub;
mod listener;
mod outbox;

pub(crate) use connection::Limits;
pub(crate) use hub::{Hub, start_time};
pub(crate) use listener::{Listener, run_timer};
