//! `kshare broker` as a user runs it: its command line, its end, its data directory, `kill -9`.

mod commands;
mod kill;
mod process;
mod wire;
mod workers;
