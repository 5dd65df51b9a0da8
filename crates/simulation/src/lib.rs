//! Models of both ways to acknowledge in a transaction, checked in every interleaving.
//!
//! [`ledger`] is the acknowledgement ledger for released brokers, [`native`] the RPC of KIP-1289. Both are
//! [`stateright::Model`]s: two or three members, two records, and at every step a crash, a pause, a redelivery, a lock that
//! expires, a moved leader, a fenced producer, an abort by the coordinator, a lost answer, compaction that passes a stopped
//! reader. What must hold:
//!
//! * no record has two committed outputs;
//! * no record is acknowledged at the broker without a committed output;
//! * no committed transaction is reported to its application as aborted (ledger);
//! * from every state that can be reached, an end can be reached without a further fault: every fair run ends.
//!
//! stateright checks the first three. The last needs the graph, see [`explore`](mod@explore).
//!
//! That a model finds nothing says little unless it would find something: [`ledger::Planted`] and [`native::NativePlanted`]
//! leave out or break one rule each, and a test asks for the trace of each.
//!
//! What was learned from the traces, beyond the rules as they were first written:
//!
//! * After a gap the picture must be formed anew: an intent whose abort has been compacted away is otherwise taken for
//!   committed at its producer's next commit, and its record is lost ([`ledger::Planted::PictureKeptAtGap`]). For a reader at
//!   the tail an emptied control batch is such a gap ([`ledger::Planted::EmptyMarkerSkipped`]).
//! * While reading from the start the same can happen between two fetches ([`ledger::Planted::SuspectsTrusted`]). Markers go
//!   only after what they decide, so that an intent that is still in the log was judged by its own.
//! * Nothing may be asked for while reading from the start, or a gap there drops it
//!   ([`ledger::Planted::AskedWhileReading`]).
//! * A record that was delivered to a member twice must not go into one transaction twice: no check of earlier intents sees
//!   that ([`ledger::Planted::TwiceInOneTransaction`]).
//! * Tombstones that are written after their confirmation do no harm if they are counted early; those written before it may
//!   be only if the commit waits for the confirmation, and then both [`ledger::Planted::AbortedTombstoneCounts`] and
//!   [`ledger::Planted::AskCountedAtTombstone`] double records.
//!
//! # Short form, long form
//!
//! `cargo test -p kafka-share-simulation` takes about two minutes on one core. Longer runs:
//!
//! ```text
//! cargo run --release -p kafka-share-simulation -- model --members 3 --faults 2
//! cargo run --release -p kafka-share-simulation -- model --plant forget-at-tombstone
//! cargo run --release -p kafka-share-simulation -- model --help
//! ```
//!
//! # Bounds
//!
//! A run has a number of faults ([`ledger::Config::faults`]) and of compactions that pass a live reader; everything else is
//! bounded by itself. Names that grow for ever in Kafka (offsets, keys, epochs, ask numbers) are renumbered by rank, so that
//! members that try again and again come back to a state that was seen.

pub mod explore;
pub mod faults;
pub mod ledger;
pub mod list;
pub mod native;
