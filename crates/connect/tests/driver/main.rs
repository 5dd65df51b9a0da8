//! The sink driver on an embedded broker.

mod at_least_once;
mod common;
mod dead_letters;
mod errors;
mod exactly_once;
mod gated;
mod killed;
mod limits;
mod lives;
#[cfg(feature = "postgres")]
mod postgres;
mod refused;
mod renewals;
mod shows;
mod states;
mod transformed;
