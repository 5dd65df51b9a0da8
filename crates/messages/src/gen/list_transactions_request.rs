//! ListTransactionsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Lists the transactions this coordinator knows, filtered by state, producer, age or id pattern.
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct ListTransactionsRequest {
    /// Names of wanted states; empty for any.
    pub state_filters: Vec<Str>,
    /// Wanted producer ids; empty for any.
    pub producer_id_filters: Vec<i64>,
    /// Least age in milliseconds of a wanted transaction; negative for any. (versions 1-2)
    pub duration_filter: i64,
    /// Regular expression (RE2) a wanted transactional id must match; null or empty for any. (versions 2)
    pub transactional_id_pattern: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListTransactionsRequest {
    fn default() -> Self {
        Self {
            state_filters: Vec::new(),
            producer_id_filters: Vec::new(),
            duration_filter: -1,
            transactional_id_pattern: None,
            tagged: TaggedFields::new(),
        }
    }
}

impl ListTransactionsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.state_filters = r.array(true, 1, |r| r.string(true))?;
        this.producer_id_filters = r.array(true, 8, |r| r.i64())?;
        if version >= 1 {
            this.duration_filter = r.i64()?;
        }
        if version >= 2 {
            this.transactional_id_pattern = r.nullable_string(true)?;
        }
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.state_filters.len(), true)?;
        for item in &self.state_filters {
            w.string(item, true)?;
        }
        w.array_len(self.producer_id_filters.len(), true)?;
        for item in &self.producer_id_filters {
            w.i64(*item);
        }
        if version >= 1 {
            w.i64(self.duration_filter);
        } else {
            if self.duration_filter != -1 {
                return Err(ErrorKind::FieldNotInVersion { field: "ListTransactionsRequest.DurationFilter", version }
                    .at(w.len()));
            }
        }
        if version >= 2 {
            match &self.transactional_id_pattern {
                Some(value) => {
                    w.string(value, true)?;
                }
                None => {
                    w.null_string(true);
                }
            }
        } else {
            if self.transactional_id_pattern.is_some() {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "ListTransactionsRequest.TransactionalIdPattern",
                    version,
                }
                .at(w.len()));
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ListTransactionsRequest {
    const NAME: &'static str = "ListTransactionsRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 2;
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

impl Request for ListTransactionsRequest {
    type Response = super::list_transactions_response::ListTransactionsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(66);
}
