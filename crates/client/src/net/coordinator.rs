//! Finding coordinators, and sending them requests with the retries that coordinator moves need.

use super::cluster::{Cluster, Purpose};
use crate::{Error, ErrorKind, Result};
use kafka_share_core::metadata::Node;
use kafka_share_messages::{ApiKey, ErrorCode, FindCoordinatorRequest, FindCoordinatorResponse, Request};
use kafka_share_wire::Str;
use std::sync::PoisonError;
use std::time::Instant;

/// What a coordinator is responsible for (the key types of FindCoordinator).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoordinatorKind {
    /// Groups, share groups included.
    Group,
    /// Transactions.
    Transaction,
}

impl CoordinatorKind {
    fn key_type(self) -> i8 {
        match self {
            CoordinatorKind::Group => 0,
            CoordinatorKind::Transaction => 1,
        }
    }
}

impl Cluster {
    /// Broker that coordinates `key`, asked for once and remembered.
    ///
    /// # Cancel safety
    /// At most FindCoordinator has gone out, whose answer nobody hears: the next call asks again.
    ///
    /// # Errors
    /// Refusals that no retry heals at once; others when `deadline` passes.
    pub async fn coordinator(&self, kind: CoordinatorKind, key: &str, deadline: Instant) -> Result<i32> {
        if let Some(node) = self.cached_coordinator(kind, key) {
            return Ok(node);
        }
        let cache_key = (kind.key_type(), key.to_owned());
        // The key stands in both forms: single (to v3) and batched (from v4); each version sends its own.
        let single = FindCoordinatorRequest { key: Str::from(key), key_type: kind.key_type(), ..Default::default() };
        let batched = FindCoordinatorRequest {
            key_type: kind.key_type(),
            coordinator_keys: vec![Str::from(key)],
            ..FindCoordinatorRequest::default()
        };
        let mut attempt = 0;
        loop {
            let features = self.features(deadline).await?;
            let batch = features.range(FindCoordinatorRequest::KEY).is_some_and(|(_, max)| max >= 4);
            let request = if batch { &batched } else { &single };
            let response = self.call_any(request, deadline).await?;
            let (node, code, detail) = answer(&response)?;
            if code.is_ok() {
                let id = node.id;
                self.hint_node(node);
                self.coordinators.lock().unwrap_or_else(PoisonError::into_inner).insert(cache_key, id);
                return Ok(id);
            }
            attempt += 1;
            if !code.is_retriable() || !self.pause_before_retry(attempt, deadline).await {
                return Err(Error::broker(code, format_args!("finding the coordinator of {key:?}"), detail.as_deref()));
            }
        }
    }

    /// Broker that coordinates `key`, as far as it is remembered.
    #[must_use]
    pub fn cached_coordinator(&self, kind: CoordinatorKind, key: &str) -> Option<i32> {
        let cache_key = (kind.key_type(), key.to_owned());
        self.coordinators.lock().unwrap_or_else(PoisonError::into_inner).get(&cache_key).copied()
    }

    /// Forgets the coordinator of `key`, so that the next call asks again.
    pub fn forget_coordinator(&self, kind: CoordinatorKind, key: &str) {
        let cache_key = (kind.key_type(), key.to_owned());
        self.coordinators.lock().unwrap_or_else(PoisonError::into_inner).remove(&cache_key);
    }

    /// Sends a request to the coordinator of `key`. `code_of` reads the error code that decides about a retry: while
    /// the coordinator moves or loads the request is sent again, to the new one, until `deadline`.
    ///
    /// A request whose answer was lost is *not* sent again: that is for the caller to decide.
    ///
    /// # Cancel safety
    /// As [`super::Connection::call`].
    ///
    /// # Errors
    /// Lost answers and refusals; a coordinator that is not available until `deadline`.
    pub async fn call_coordinator<R: Request>(
        &self,
        kind: CoordinatorKind,
        key: &str,
        request: &R,
        deadline: Instant,
        code_of: impl Fn(&R::Response) -> ErrorCode,
    ) -> Result<R::Response> {
        self.call_coordinator_as(kind, key, request, (R::KEY, R::MAX_VERSION), deadline, code_of).await
    }

    /// As [`Cluster::call_coordinator`], under a given API key and in no higher version than a given one.
    ///
    /// # Cancel safety
    /// As [`super::Connection::call`]. While it looks for the coordinator, or pauses before it tries again, the request
    /// itself is not under way.
    ///
    /// # Errors
    /// As [`Cluster::call_coordinator`].
    pub async fn call_coordinator_as<R: Request>(
        &self,
        kind: CoordinatorKind,
        key: &str,
        request: &R,
        (api, cap): (ApiKey, i16),
        deadline: Instant,
        code_of: impl Fn(&R::Response) -> ErrorCode,
    ) -> Result<R::Response> {
        let mut attempt = 0;
        loop {
            let node = self.coordinator(kind, key, deadline).await?;
            let limit = self.request_deadline(deadline);
            let result = self.call_node_as(node, Purpose::Coordination, request, (api, cap), limit).await;
            let moved = match &result {
                Ok(response) => matches!(
                    code_of(response),
                    ErrorCode::NOT_COORDINATOR
                        | ErrorCode::COORDINATOR_NOT_AVAILABLE
                        | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
                ),
                Err(error) => {
                    self.forget_coordinator(kind, key);
                    let unsent =
                        matches!(error.kind(), ErrorKind::Connect | ErrorKind::Disconnected) && !error.maybe_done();
                    unsent && error.is_retriable()
                }
            };
            if !moved {
                return result;
            }
            self.forget_coordinator(kind, key);
            attempt += 1;
            if !self.pause_before_retry(attempt, deadline).await {
                return result;
            }
        }
    }
}

fn answer(response: &FindCoordinatorResponse) -> Result<(Node, ErrorCode, Option<String>)> {
    let port = |port: i32| u16::try_from(port).unwrap_or(0);
    if let Some(c) = response.coordinators.first() {
        let node = Node { id: c.node_id, host: c.host.detached(), port: port(c.port) };
        return Ok((node, c.error_code, c.error_message.as_ref().map(ToString::to_string)));
    }
    if response.error_code.is_err() || !response.host.is_empty() {
        let node = Node { id: response.node_id, host: response.host.detached(), port: port(response.port) };
        return Ok((node, response.error_code, response.error_message.as_ref().map(ToString::to_string)));
    }
    Err(Error::new(ErrorKind::Protocol, "FindCoordinator was answered without a coordinator"))
}
