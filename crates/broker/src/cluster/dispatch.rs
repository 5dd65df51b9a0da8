//! From a frame to an answer: header, version, handler, encoding.

use super::faults::Verdict;
use super::{CloseReason, Cluster, ConnId};
use crate::api::{self, Answer, RequestContext, Served};
use crate::security::ANONYMOUS;
use crate::{Now, Output};
use bytes::Bytes;
use kafka_share_messages::{ApiKey, frame};

impl Cluster {
    /// Serves one request of a connection that is idle.
    pub(super) fn serve(&mut self, now: Now, conn: ConnId, node: i32, request: Bytes) -> Result<(), CloseReason> {
        let Some(connection) = self.connections.get(conn) else { return Err(CloseReason::Unknown) };
        if connection.auth.takes_bare_token() {
            return self.serve_bare_token(now, conn, &request);
        }
        let listener = connection.listener;
        let malformed = |error: kafka_share_wire::Error| CloseReason::Malformed(error.to_string());
        let (header, body) = frame::decode_request_header(request).map_err(malformed)?;
        let (key, version) = (ApiKey(header.request_api_key), header.request_api_version);
        let mut ctx = RequestContext {
            now,
            node,
            conn,
            listener,
            principal: ANONYMOUS,
            key,
            version,
            correlation_id: header.correlation_id,
            client_id: header.client_id,
            answer_fault: None,
        };
        if !api::versions(&self.config.features, key).is_some_and(|range| range.contains(&version)) {
            if key == ApiKey::API_VERSIONS && self.pass(&mut ctx, &body)? {
                let answer = api::refuse_api_versions(&ctx)?;
                self.finish(&ctx, answer);
                return Ok(());
            }
            return Err(CloseReason::Unsupported { key, version });
        }
        if !self.pass(&mut ctx, &body)? {
            return Ok(());
        }
        match self.judge(&mut ctx, &body)? {
            Verdict::Serve(fault) => ctx.answer_fault = fault,
            Verdict::Answer(answer) => {
                self.finish(&ctx, answer);
                return Ok(());
            }
            Verdict::Ignore => {
                self.hold(conn);
                return Ok(());
            }
        }
        match api::handle(self, &ctx, body)? {
            Served::Answer(answer) => self.finish(&ctx, answer),
            Served::Farewell(answer) => self.say_farewell(&ctx, answer),
            Served::Nothing => {}
            Served::Park { deadline, keys, parked } => self.park(ctx, deadline, keys, parked),
        }
        Ok(())
    }

    /// Sends an answer.
    pub(super) fn finish(&mut self, ctx: &RequestContext, answer: Answer) {
        if let Some(fault) = ctx.answer_fault.clone() {
            return self.finish_badly(ctx.clone(), answer, fault);
        }
        match answer {
            Answer::Frame(frame) => {
                self.output.push_back(Output::Send { conn: ctx.conn, segments: frame.into_segments() });
            }
            Answer::Last(frame) => {
                self.output.push_back(Output::Send { conn: ctx.conn, segments: frame.into_segments() });
                self.close(ctx.now, ctx.conn, CloseReason::AuthenticationFailed);
            }
            Answer::Close(reason) => {
                self.close(ctx.now, ctx.conn, reason);
            }
        }
    }
}
