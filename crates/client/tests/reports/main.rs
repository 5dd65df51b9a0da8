//! Field reports on the whole client, with answers as no healthy broker gives them.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod callbacks;
mod connections;
mod contents;
mod delivery;
mod hostile;
mod leaders;
mod tracing_spans;

mod log;
mod properties;
mod wide;
