//! What can go wrong in a model, and which of it may.

/// A kind of fault. Pauses are not among them: in a model every step can be late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A process is killed.
    Crash,
    /// The lock of a record expires while its member lives.
    Expire,
    /// The share-partition's leader moves.
    LeaderMove,
    /// The coordinator aborts a live member's transaction.
    Timeout,
    /// A live member's producer is fenced by another member.
    Fence,
    /// EndTxn's request or answer is lost.
    LostAnswer,
    /// A member gives its transaction up, with requests under way.
    GiveUp,
    /// A marker is delivered a second time (native backend only).
    SecondMarker,
}

impl Fault {
    /// All kinds, with their names on the command line.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Crash, "crash"),
        (Self::Expire, "expire"),
        (Self::LeaderMove, "leader-move"),
        (Self::Timeout, "timeout"),
        (Self::Fence, "fence"),
        (Self::LostAnswer, "lost-answer"),
        (Self::GiveUp, "give-up"),
        (Self::SecondMarker, "second-marker"),
    ];
}

/// Some kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// Every kind.
    pub const ALL: Self = Self(u16::MAX);

    /// These kinds.
    #[must_use]
    pub fn of(kinds: &[Fault]) -> Self {
        Self(kinds.iter().fold(0, |all, kind| all | 1 << *kind as u16))
    }

    pub(crate) fn has(self, kind: Fault) -> bool {
        self.0 & 1 << kind as u16 != 0
    }
}
