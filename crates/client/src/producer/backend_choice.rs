//! Which way acknowledgements go into transactions: forced by `share.ack.transaction.backend`, or what the cluster offers.

use super::ack_backend::{AckBackend, Boxed, NativeBackend, Refusals, Staging};
use super::both_backend::BothBackend;
use super::ledger_backend::{Commit, LedgerBackend, SealError};
use super::shared::Shared;
use crate::acknowledgements::{ShareAcknowledgements, ShareGroupMetadata, TransactionEnd};
use crate::ledger::{AckBackendChoice, LedgerPart, LedgerSettings};
use crate::{Error, ErrorKind, Result};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

pub(super) fn backend(shared: &Arc<Shared>, settings: LedgerSettings, key: i16) -> Box<dyn AckBackend> {
    let native = || NativeBackend::new(Arc::clone(&shared.cluster), key);
    match settings.backend.unwrap_or_default() {
        AckBackendChoice::Native => Box::new(native()),
        AckBackendChoice::None => Box::new(NoBackend),
        AckBackendChoice::Ledger => Box::new(LedgerBackend::new(Arc::clone(shared), settings, false)),
        AckBackendChoice::Both => Box::new(BothBackend::new(shared, settings, key)),
        AckBackendChoice::Auto => Box::new(AutoBackend {
            native: native(),
            ledger: LedgerBackend::new(Arc::clone(shared), settings.clone(), false),
            both: BothBackend::new(shared, settings, key),
            way: OnceLock::new(),
        }),
    }
}

/// Refuses.
#[derive(Debug)]
struct NoBackend;

impl NoBackend {
    fn refusal() -> Error {
        let text = "share.ack.transaction.backend is none: acknowledgements do not go into transactions";
        Error::new(ErrorKind::Unsupported, text)
    }
}

impl AckBackend for NoBackend {
    fn check<'a>(&'a self, _v2: bool, _deadline: Instant) -> Boxed<'a, Result<()>> {
        Box::pin(async { Err(Self::refusal()) })
    }

    fn stage<'a>(&'a self, _: &'a Staging, _: &'a ShareAcknowledgements, _: Instant) -> Boxed<'a, Result<Refusals>> {
        Box::pin(async { Err(Self::refusal()) })
    }
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Native,
    Ledger,
    Both,
}

/// Native where the cluster offers it when it is first asked, with the ledger beside it where there is one; else the ledger.
/// It stays so: a transaction goes one way.
#[derive(Debug)]
struct AutoBackend {
    native: NativeBackend,
    ledger: LedgerBackend,
    both: BothBackend,
    way: OnceLock<Way>,
}

impl AutoBackend {
    fn chosen(&self) -> &dyn AckBackend {
        match self.way.get() {
            None | Some(Way::Native) => &self.native,
            Some(Way::Ledger) => &self.ledger,
            Some(Way::Both) => &self.both,
        }
    }

    async fn check_now(&self, v2: bool, deadline: Instant) -> Result<()> {
        if self.way.get().is_some() {
            return self.chosen().check(v2, deadline).await;
        }
        let way = match self.native.check(v2, deadline).await {
            Err(missing) if missing.kind() == ErrorKind::Unsupported => {
                self.ledger.check(v2, deadline).await.map_err(|error| {
                    // The one is as good as the other: both are named.
                    let kind = if error.kind() == ErrorKind::Config { ErrorKind::Unsupported } else { error.kind() };
                    let text = format!("{error}; nor can it go natively: {missing}");
                    Error::new(kind, text).with_severity(error.severity()).with_code(error.code())
                })?;
                Way::Ledger
            }
            // Members of the group may use it still, from before the cluster offered more.
            Ok(()) if self.both.is_there(deadline).await? => Way::Both,
            Ok(()) => Way::Native,
            Err(error) => return Err(error),
        };
        self.way.get_or_init(|| way);
        Ok(())
    }
}

impl AckBackend for AutoBackend {
    fn check<'a>(&'a self, v2: bool, deadline: Instant) -> Boxed<'a, Result<()>> {
        Box::pin(self.check_now(v2, deadline))
    }

    fn adopt(&self, acks: &mut ShareAcknowledgements, member: &ShareGroupMetadata) -> Result<Vec<LedgerPart>> {
        self.chosen().adopt(acks, member)
    }

    fn stage<'a>(
        &'a self,
        staging: &'a Staging,
        acks: &'a ShareAcknowledgements,
        deadline: Instant,
    ) -> Boxed<'a, Result<Refusals>> {
        self.chosen().stage(staging, acks, deadline)
    }

    fn is_ledger(&self) -> bool {
        self.chosen().is_ledger()
    }

    fn is_native(&self) -> bool {
        self.chosen().is_native()
    }

    fn is_unsealed(&self) -> bool {
        self.chosen().is_unsealed()
    }

    fn seal<'a>(&'a self, commit: &'a Commit, deadline: Instant) -> Boxed<'a, std::result::Result<(), SealError>> {
        self.chosen().seal(commit, deadline)
    }

    fn verdict<'a>(&'a self, deadline: Instant) -> Boxed<'a, Result<Option<bool>>> {
        self.chosen().verdict(deadline)
    }

    fn knows_verdict(&self) -> bool {
        self.chosen().knows_verdict()
    }

    fn follow(&self, deadline: Instant) -> Option<Boxed<'static, Option<bool>>> {
        self.chosen().follow(deadline)
    }

    fn ended(&self, end: TransactionEnd) {
        self.chosen().ended(end);
    }
}
