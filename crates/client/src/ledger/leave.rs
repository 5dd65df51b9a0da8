//! A group leaves the ledger: once none of its members knows the ledger alone, and what such members have left is settled, all
//! of them go on natively.

use super::LedgerIntent;
use super::inspect::intent;
use crate::admin::Admin;
use crate::producer::transactional_acknowledgements_offered;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::ledger::LedgerRecord;
use kafka_share_wire::Str;
use std::time::Instant;

/// What members that know the ledger alone have left of a group, as [`Admin::leave_ledger`] finds it.
#[derive(Debug, Clone, Default)]
pub struct LedgerRemainder {
    /// Their transactions that have not ended.
    pub open: Vec<LedgerIntent>,
    /// Their committed transactions with records that the broker was not told of, as far as the group's start offsets show.
    pub unconfirmed: Vec<LedgerIntent>,
}

impl LedgerRemainder {
    /// Whether nothing is left, so that members that acknowledge natively alone may be started.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.unconfirmed.is_empty()
    }
}

impl Admin {
    /// Has a share group leave the ledger, for native acknowledgements (KIP-1289), while its members run: written once, it
    /// keeps members that acknowledge by the ledger alone from committing anything, and has those with
    /// `share.ack.transaction.backend=both` (or `auto`) go on natively, as soon as nothing is left to settle. Answers what is
    /// left: to be called again until it [is empty](LedgerRemainder::is_empty). Before that no member may acknowledge natively
    /// alone, as it would do again what it does not see in the ledger.
    ///
    /// [`raise_ledger_generation`](Admin::raise_ledger_generation), without members, takes the group back to the ledger.
    ///
    /// # Cancel safety
    /// The group may have left. Calling again does no harm.
    ///
    /// # Errors
    /// As [`Admin::describe_ledger`]; [`Unsupported`](ErrorKind::Unsupported), where the cluster has no transactional
    /// acknowledgements; a ledger partition with faults.
    pub async fn leave_ledger(&self, topic: &str, group: &str) -> Result<LedgerRemainder> {
        let deadline = Instant::now() + self.cluster().config().default_api_timeout;
        let features = self.cluster().features(deadline).await?;
        if !transactional_acknowledgements_offered(&features) {
            let text = format!(
                "share group {group:?} must stay on the ledger: this cluster takes no acknowledgements into transactions (KIP-1289)"
            );
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let ledger = self.open_ledger(topic).await?;
        let partition = ledger.layout.partition_for(group);
        loop {
            let surveys = self.survey(&ledger, Some(partition)).await?;
            let Some((survey, ..)) = surveys.first() else {
                return Err(Error::new(
                    ErrorKind::Protocol,
                    format!("ledger {topic:?} was read without partition {partition}"),
                ));
            };
            if let Some(fault) = survey.faults().first() {
                return Err(Error::new(ErrorKind::InvalidState, format!("nothing was done: {fault}")));
            }
            if !survey.left().any(|known| known == group) {
                let (group, generation) = (Str::from(group), survey.generation(group));
                self.write_of_group(&ledger, partition, &LedgerRecord::Left { group, generation }).await?;
                // What was written before it is read now.
                continue;
            }
            let starts = self.start_offsets(&surveys, Some(group)).await?;
            let of_group = survey.intents().iter().filter(|(_, i)| i.intent.groups.iter().any(|g| g.group == *group));
            let alone = of_group.map(|(offset, found)| intent(*offset, found, survey, &starts));
            let alone = alone.filter(|i| !i.native && !i.outdated);
            let (open, done): (Vec<_>, Vec<_>) = alone.partition(|i| i.open);
            let unconfirmed = done.into_iter().filter(|i| i.unconfirmed_of(group, &[]) != Some(0)).collect();
            return Ok(LedgerRemainder { open, unconfirmed });
        }
    }
}
