//! DescribeTransactionsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Asks for the details of transactions by transactional id.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeTransactionsRequest {
    /// Transactional ids asked about.
    pub transactional_ids: Vec<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeTransactionsRequest {
    fn default() -> Self {
        Self { transactional_ids: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DescribeTransactionsRequest {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.transactional_ids = r.array(true, 1, |r| r.string(true))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.array_len(self.transactional_ids.len(), true)?;
        for item in &self.transactional_ids {
            w.string(item, true)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeTransactionsRequest {
    const NAME: &'static str = "DescribeTransactionsRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 0;
    const FLEXIBLE_FROM: i16 = 0;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for DescribeTransactionsRequest {
    type Response = super::describe_transactions_response::DescribeTransactionsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(65);
}
