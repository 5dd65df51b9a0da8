//! The sink driver on an embedded broker.

mod at_least_once;
mod common;
mod errors;
mod exactly_once;
mod killed;
mod lives;
mod refused;
mod states;
mod transformed;
