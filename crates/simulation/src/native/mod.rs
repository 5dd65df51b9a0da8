//! The model of the native backend (KIP-1289): acknowledgements staged at the share-partition's leader, decided by markers.
//!
//! As in the model of the ledger everything is asynchronous, so that pauses and slow requests need no events of their own.

mod describe;
mod state;
mod step;

pub use crate::ledger::{NOT_LOST, ONCE};
pub use state::{Marker, Member, Phase, Record, Stage, State};
pub use step::Action;

use crate::explore::Checked;
use crate::faults::{Fault, Kinds};
use state::{MEMBERS, Names};
use stateright::{Model, Property};

/// A rule left out or broken, to show that the model would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NativePlanted {
    /// A pending record is delivered to another member.
    PendingDelivered,
    /// The lock of a pending record expires.
    PendingExpires,
    /// A new leader does not know what is pending.
    PendingLostAtLeaderMove,
    /// A staged acknowledgement is applied before the marker.
    AppliedBeforeMarker,
    /// A marker decides what its producer has staged at whatever epoch.
    AnyMarkerEpoch,
    /// transaction.version 2: a marker decides what was staged at its own epoch too.
    EqualMarkerEpoch,
    /// Staging below the start offset is answered with success, as an ordinary acknowledgement is.
    StagedBelowStart,
    /// Staging does not verify the transaction at the coordinator.
    NotVerified,
    /// No InitProducerId after an abort with a request to stage still under way (transaction.version 1).
    NoInitAfterAbort,
    /// An abort's marker leaves records pending.
    AbortLeavesPending,
    /// transaction.version 1: a marker is delivered a second time, after the next transaction has begun. Nothing tells the
    /// two apart; it is what version 2 was made for.
    SecondMarkerWithoutEpochs,
}

impl NativePlanted {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::PendingDelivered,
        Self::PendingExpires,
        Self::PendingLostAtLeaderMove,
        Self::AppliedBeforeMarker,
        Self::AnyMarkerEpoch,
        Self::EqualMarkerEpoch,
        Self::StagedBelowStart,
        Self::NotVerified,
        Self::NoInitAfterAbort,
        Self::AbortLeavesPending,
        Self::SecondMarkerWithoutEpochs,
    ];

    /// The smallest model in which it shows.
    pub fn config(self) -> NativeConfig {
        let base = NativeConfig { planted: Some(self), ..NativeConfig::default() };
        match self {
            Self::NoInitAfterAbort | Self::SecondMarkerWithoutEpochs => NativeConfig { transaction_version: 1, ..base },
            _ => base,
        }
    }
}

/// One model of the native backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeConfig {
    /// Members, 1 to 3.
    pub members: u8,
    /// Number of faults. A marker is delivered a second time with transaction.version 2 only.
    pub faults: u8,
    /// Which kinds there are.
    pub kinds: Kinds,
    /// 1 or 2: whether each transaction has its own epoch.
    pub transaction_version: u8,
    /// A broken rule.
    pub planted: Option<NativePlanted>,
}

impl Default for NativeConfig {
    fn default() -> Self {
        Self { members: 2, faults: 2, kinds: Kinds::ALL, transaction_version: 2, planted: None }
    }
}

impl NativeConfig {
    /// Whether there may be a fault of this kind, with that many left.
    pub(super) fn may(&self, left: u8, kind: Fault) -> bool {
        left > 0 && self.kinds.has(kind)
    }

    pub(super) fn planted(&self, fault: NativePlanted) -> bool {
        self.planted == Some(fault)
    }
}

impl Model for NativeConfig {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        assert!((1..=MEMBERS as u8).contains(&self.members), "a model has 1 to {MEMBERS} members");
        let members = (0..self.members).map(|_| Member { up: true, ..Member::default() }).collect();
        vec![State { faults: self.faults, members, names: Names([0, 1, 2]), ..State::default() }]
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
            Property::always(NOT_LOST, |_, state: &State| {
                let lost = |(record, count): (&Record, &u8)| *record == Record::Acknowledged && *count == 0;
                !state.records.iter().zip(&state.outputs).any(lost)
            }),
        ]
    }
}

impl Checked for NativeConfig {
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
