//! The postgres sink on a real PostgreSQL: what is stored, what is refused and how, and exactly-once.

mod bad_input;
mod common;
mod exactly_once;
mod orders;
mod rows;
