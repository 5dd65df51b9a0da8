//! Connections that have to authenticate first.

use super::{CloseReason, Cluster, ConnId, Parked};
use crate::api::{self, Answer, RequestContext};
use crate::security::{Auth, Gate};
use crate::{Now, Output};
use bytes::Bytes;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Reader;
use std::time::Duration;

/// Largest frame that a client may send before it has authenticated (`sasl.server.max.receive.size`).
const UNAUTHENTICATED_BYTES: usize = 524_288;

impl Cluster {
    /// Bytes that the next frame of a connection may have.
    #[must_use]
    pub fn max_frame(&self, conn: ConnId) -> usize {
        let most = self.config.max_request_bytes;
        match self.connections.get(conn) {
            Some(connection) if !connection.auth.is_open() => most.min(UNAUTHENTICATED_BYTES),
            _ => most,
        }
    }

    /// Whether a connection has nothing left to prove, or has proved it; one that is gone has not.
    #[must_use]
    pub fn is_authenticated(&self, conn: ConnId) -> bool {
        self.connections.get(conn).is_some_and(|connection| connection.auth.is_open())
    }

    /// Whether a request may be served. `false`: it was answered instead.
    pub(super) fn pass(&mut self, ctx: &mut RequestContext, body: &Reader) -> Result<bool, CloseReason> {
        let Some(connection) = self.connections.get_mut(ctx.conn) else { return Err(CloseReason::Unknown) };
        match connection.auth.gate(ctx.now, ctx.key) {
            Gate::Serve(principal) => {
                ctx.principal = principal;
                Ok(true)
            }
            Gate::Illegal => {
                let answer = api::error_answer(ctx, body.clone(), ErrorCode::ILLEGAL_SASL_STATE)?;
                self.say_farewell(ctx, answer);
                Ok(false)
            }
            Gate::Unauthenticated => Err(CloseReason::Unauthenticated { key: ctx.key }),
            Gate::Expired => Err(CloseReason::SessionExpired),
        }
    }

    /// Sends the last answer of a connection, some time later: whoever guesses passwords should not be quick.
    pub(super) fn say_farewell(&mut self, ctx: &RequestContext, answer: Answer) {
        let answer = match answer {
            Answer::Frame(frame) => Answer::Last(frame),
            other => other,
        };
        let delay = Duration::from_millis(self.config.failed_authentication_delay_ms);
        if delay.is_zero() {
            return self.finish(ctx, answer);
        }
        self.park(ctx.clone(), ctx.now.mono + delay, Vec::new(), Box::new(Farewell(Some(answer))));
    }

    /// Takes a token that comes without a header, as the oldest clients send them.
    pub(super) fn serve_bare_token(&mut self, now: Now, conn: ConnId, token: &Bytes) -> Result<(), CloseReason> {
        match self.authenticate(now, conn, token) {
            Some(Ok(progress)) => {
                let size = (progress.token.len() as i32).to_be_bytes();
                let segments = vec![Bytes::copy_from_slice(&size), Bytes::from(progress.token)];
                self.output.push_back(Output::Send { conn, segments });
                Ok(())
            }
            // There is no way to say why.
            Some(Err(_)) | None => Err(CloseReason::AuthenticationFailed),
        }
    }

    /// How the connection authenticates, with what is needed to do so.
    pub(crate) fn auth_of(&mut self, conn: ConnId) -> Option<(&mut Auth, &crate::security::Credentials)> {
        let connection = self.connections.get_mut(conn)?;
        let known = self.credentials.get(connection.listener)?;
        Some((&mut connection.auth, known))
    }

    /// ApiVersions was answered with the versions.
    pub(crate) fn told_versions(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.auth.told_versions();
        }
    }

    /// One token of a client.
    pub(crate) fn authenticate(
        &mut self,
        now: Now,
        conn: ConnId,
        token: &[u8],
    ) -> Option<Result<crate::security::Progress, crate::security::Failure>> {
        let connection = self.connections.get_mut(conn)?;
        let known = self.credentials.get(connection.listener)?;
        connection.auth.token(known, now, &mut self.secrets, token)
    }
}

/// A last answer that waits for its time.
struct Farewell(Option<Answer>);

impl Parked for Farewell {
    fn resume(&mut self, _: &mut Cluster, _: &RequestContext, expired: bool) -> Option<Answer> {
        if expired { self.0.take() } else { None }
    }
}
