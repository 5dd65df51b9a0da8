//! The model of the acknowledgement ledger: members, ledger partition, share-partition, transaction coordinator.
//!
//! Everything is asynchronous: a member that takes no step is one that is paused, and every step of the others can come
//! between any two of its own. So a pause, a slow request and an answer that waits in a socket need no events of their
//! own. What does are the faults, of which a run has a limited number ([`Config::faults`]).
//!
//! The transaction's point of decision is the coordinator's; outputs are counted there. Replication is left out: a
//! request counts as arrived once it is acknowledged by all replicas, and a reader that cannot read so far yet is a
//! reader that has not read yet. A moved leader of the ledger therefore adds nothing but delay.

mod broker;
mod config;
mod describe;
mod log;
mod normal;
mod reader;
mod state;
mod step;

pub use config::{Config, Planted, SingleBatches};
pub use reader::Verdict;
pub use state::{Batch, Chunk, Coordinator, Entry, Known, Member, Mine, Mode, Phase, Record, Stage, State, Txn, Wire};
pub use step::{Action, Pass, Then};

use crate::explore::Checked;
use state::{MEMBERS, Names};
use stateright::{Model, Property};

/// No record has two committed outputs.
pub const ONCE: &str = "no record has two committed outputs";
/// No record is acknowledged at the broker without a committed output.
pub const NOT_LOST: &str = "no record is acknowledged without a committed output";

/// No committed transaction is reported to the application as aborted.
pub const TOLD_RIGHT: &str = "no committed transaction is reported as aborted";

impl Config {
    /// As [`Model::next_state`], but nothing is renumbered, exchanged or removed: offsets, keys and ask numbers are what they
    /// would be in Kafka. For walks that are short enough for it.
    pub fn step(&self, state: &State, action: Action) -> Option<State> {
        step::apply(self, state, action).map(|next| next.settled(self))
    }

    /// What a member's check says of its transaction.
    pub fn verdict(&self, state: &State, member: usize) -> Verdict {
        state.members[member].check(self)
    }
}

impl Model for Config {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        assert!((1..=MEMBERS as u8).contains(&self.members), "a model has 1 to {MEMBERS} members");
        let member = Member { up: true, epoch_ok: true, next_ask: 1, ..Member::default() };
        let modes = self.modes.iter().take(usize::from(self.members));
        let members = modes.map(|mode| Member { mode: *mode, ..member }).collect();
        let names = Names { members: [0, 1, 2], ..Names::default() };
        let Self { faults, compactions, .. } = *self;
        vec![State { faults, compactions, members, names, ..State::default() }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        step::actions(self, state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        step::next(self, state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_, state: &State| state.outputs.iter().all(|count| *count < 2)),
            Property::always(TOLD_RIGHT, |_, state: &State| !state.misreported),
            Property::always(NOT_LOST, |_, state: &State| {
                let lost = |(record, count): (&Record, &u8)| *record == Record::Acknowledged && *count == 0;
                !state.records.iter().zip(&state.outputs).any(lost)
            }),
        ]
    }
}

impl Checked for Config {
    fn is_fault(&self, state: &State, action: &Action) -> bool {
        step::is_fault(state, *action)
    }

    fn is_end(&self, state: &State) -> bool {
        state.ended()
    }

    fn describe(&self, state: &State, action: &Action) -> String {
        describe::action(state, *action)
    }

    fn summary(&self, state: &State) -> String {
        describe::state(state)
    }
}
