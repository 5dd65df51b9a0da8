//! A share consumer as the ledger sees it.

use super::{LedgerSettings, LedgerTopic, Tail};
use crate::Result;
use crate::acknowledgements::{ShareAcknowledgements, StagedPart};
use std::fmt::Debug;
use std::sync::Arc;

/// A consumer whose acknowledgements go into transactions by the ledger.
pub(crate) trait LedgerMember: Debug + Send + Sync {
    /// The consumer's reader of its group's ledger partition; attached now where it has none. Then all that the consumer holds
    /// and has asked for counts as asked for before.
    ///
    /// # Errors
    /// A consumer that is closed, or that reads another ledger.
    fn attach(&self, topic: &Arc<LedgerTopic>, settings: &LedgerSettings) -> Result<Arc<Tail>>;

    /// Its group.
    fn group(&self) -> &str;

    /// Whether its group may have members that know the ledger alone, as far as the consumer's reader has read; `None` where it
    /// has no reader.
    fn needs_intent(&self) -> Option<bool>;

    /// Its acknowledgements go by the ledger alone: once its group has left the ledger, nothing more may be handed out to it.
    fn goes_by_ledger_alone(&self);

    /// Whether its reader has not come to the end of the ledger yet, or not again.
    fn is_reading(&self) -> bool;

    /// Takes acknowledgements out of the ordinary path that the application has put together by hand.
    ///
    /// # Errors
    /// Records that the consumer does not hold.
    fn stage(&self, acks: &ShareAcknowledgements) -> Result<Box<dyn StagedPart>>;
}

/// What a check needs to know of staged acknowledgements.
#[derive(Debug, Clone)]
pub(crate) struct LedgerPart {
    /// Whose they are.
    pub(crate) member: Arc<dyn LedgerMember>,
    /// The lowest number of the requests that brought the records.
    pub(crate) lowest_ask: u64,
}
