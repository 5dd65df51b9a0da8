//! Acknowledgements staged natively and written to the ledger too: for groups with members that know the ledger alone.
//!
//! Such a member sees in the ledger what this one claims, and this one what the others have done; members that acknowledge
//! natively alone have brokers between them and this one. So a group goes from the ledger to this, and from this to native
//! acknowledgements, one member at a time. Once the group has left the ledger, no intents are written any more.

use super::ack_backend::{AckBackend, Boxed, NativeBackend, Refusals, Staging};
use super::ledger_backend::{Commit, LedgerBackend, SealError};
use super::shared::Shared;
use crate::Result;
use crate::acknowledgements::{ShareAcknowledgements, ShareGroupMetadata, TransactionEnd};
use crate::ledger::{LedgerPart, LedgerSettings};
use std::sync::Arc;
use std::time::Instant;

/// See the module.
#[derive(Debug)]
pub(super) struct BothBackend {
    native: NativeBackend,
    ledger: LedgerBackend,
}

impl BothBackend {
    pub(super) fn new(shared: &Arc<Shared>, settings: LedgerSettings, key: i16) -> Self {
        let native = NativeBackend::new(Arc::clone(&shared.cluster), key);
        BothBackend { native, ledger: LedgerBackend::new(Arc::clone(shared), settings, true) }
    }

    /// Whether there is a ledger.
    pub(super) async fn is_there(&self, deadline: Instant) -> Result<bool> {
        self.ledger.is_there(deadline).await
    }
}

impl AckBackend for BothBackend {
    fn check<'a>(&'a self, v2: bool, deadline: Instant) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            self.native.check(v2, deadline).await?;
            self.ledger.check(v2, deadline).await
        })
    }

    fn adopt(&self, acks: &mut ShareAcknowledgements, member: &ShareGroupMetadata) -> Result<Vec<LedgerPart>> {
        self.ledger.adopt(acks, member)
    }

    fn stage<'a>(
        &'a self,
        staging: &'a Staging,
        acks: &'a ShareAcknowledgements,
        deadline: Instant,
    ) -> Boxed<'a, Result<Refusals>> {
        Box::pin(async move {
            if staging.parts.iter().any(|part| part.member.needs_intent() != Some(false)) {
                // Sends nothing yet.
                self.ledger.stage(staging, acks, deadline).await?;
            }
            self.native.stage(staging, acks, deadline).await
        })
    }

    fn is_ledger(&self) -> bool {
        true
    }

    fn is_unsealed(&self) -> bool {
        self.ledger.is_unsealed()
    }

    fn seal<'a>(&'a self, commit: &'a Commit, deadline: Instant) -> Boxed<'a, std::result::Result<(), SealError>> {
        self.ledger.seal(commit, deadline)
    }

    fn verdict<'a>(&'a self, deadline: Instant) -> Boxed<'a, Result<Option<bool>>> {
        self.ledger.verdict(deadline)
    }

    fn knows_verdict(&self) -> bool {
        self.ledger.knows_verdict()
    }

    fn follow(&self, deadline: Instant) -> Option<Boxed<'static, Option<bool>>> {
        self.ledger.follow(deadline)
    }

    fn ended(&self, end: TransactionEnd) {
        self.ledger.ended(end);
    }
}
