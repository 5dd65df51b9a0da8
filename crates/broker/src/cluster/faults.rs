//! Faults at work: before a request is served, and on its answer.

use super::{CloseReason, Cluster, Parked};
use crate::api::{self, Answer, RequestContext};
use crate::faults::AnswerFault;
use crate::{Fault, FaultAction, FaultId, Output};
use bytes::{Bytes, BytesMut};
use kafka_share_messages::{ApiKey, ErrorCode};
use kafka_share_wire::Reader;
use std::time::Duration;

/// What a fault leaves of a request.
pub(super) enum Verdict {
    /// Serve it, and do this to its answer.
    Serve(Option<AnswerFault>),
    /// Send this and do not serve it.
    Answer(Answer),
    /// Neither serve nor answer it.
    Ignore,
}

impl Cluster {
    /// Makes something go wrong.
    pub fn inject(&mut self, fault: Fault) -> FaultId {
        self.faults.inject(fault)
    }

    /// Takes a fault back; no matter if it is used up.
    pub fn remove_fault(&mut self, id: FaultId) {
        self.faults.remove(id);
    }

    /// Takes all faults back.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// How many requests a fault has picked so far.
    #[must_use]
    pub fn fault_hits(&self, id: FaultId) -> u32 {
        self.faults.hits(id)
    }

    /// The error of a request that a node sends to another one itself, if a fault picks it. Faults of connections count
    /// as a lost connection; those of answers do nothing, as nobody reads the answer.
    pub(crate) fn inner_fault(&mut self, node: i32, key: ApiKey) -> Option<ErrorCode> {
        match self.faults.pick(node, key)? {
            FaultAction::Error(code) => Some(code),
            FaultAction::Close | FaultAction::Ignore => Some(ErrorCode::NETWORK_EXCEPTION),
            _ => None,
        }
    }

    pub(super) fn judge(&mut self, ctx: &mut RequestContext, body: &Reader) -> Result<Verdict, CloseReason> {
        let Some(action) = self.faults.pick(ctx.node, ctx.key) else { return Ok(Verdict::Serve(None)) };
        tracing::debug!(node = ctx.node, key = %ctx.key, ?action, "fault");
        Ok(match action {
            FaultAction::Error(code) => Verdict::Answer(api::error_answer(ctx, body.clone(), code)?),
            FaultAction::Close => return Err(CloseReason::Fault),
            FaultAction::Ignore => Verdict::Ignore,
            FaultAction::Delay(by) => Verdict::Serve(Some(AnswerFault::Delay(by))),
            FaultAction::ApplyAndClose => Verdict::Serve(Some(AnswerFault::Lose)),
            FaultAction::CutAfter(bytes) => Verdict::Serve(Some(AnswerFault::CutAfter(bytes))),
            FaultAction::Truncate(bytes) => Verdict::Serve(Some(AnswerFault::Truncate(bytes))),
            FaultAction::ShiftCorrelationId(by) => Verdict::Serve(Some(AnswerFault::ShiftCorrelationId(by))),
            FaultAction::Rewrite(rewrite) => Verdict::Serve(Some(AnswerFault::Rewrite(rewrite))),
            FaultAction::MoveLeader { topic, partition, node } => {
                self.move_leader(ctx.now, &topic, partition, node);
                Verdict::Serve(None)
            }
            FaultAction::MoveCoordinator { kind, key, node } => {
                self.move_coordinator(ctx.now, kind, &key, node);
                Verdict::Serve(None)
            }
            FaultAction::ExpireLocks(group) => {
                self.expire_share_locks(ctx.now, &group);
                Verdict::Serve(None)
            }
            FaultAction::AdvanceClock(by) => {
                self.jump(ctx, by);
                Verdict::Serve(None)
            }
            FaultAction::RestartNode(node) => {
                self.restart_node(ctx.now, node);
                if node == ctx.node { Verdict::Ignore } else { Verdict::Serve(None) }
            }
        })
    }

    /// The owner hears of it with the outputs; until then the machine is ahead of it.
    fn jump(&mut self, ctx: &mut RequestContext, by: Duration) {
        self.ahead = self.ahead.saturating_add(by);
        self.output.push_back(Output::AdvanceClock { by });
        ctx.now = ctx.now.plus(by);
        self.handle_timeout(ctx.now);
    }

    /// Sends an answer as a fault wants it.
    pub(super) fn finish_badly(&mut self, mut ctx: RequestContext, answer: Answer, fault: AnswerFault) {
        ctx.answer_fault = None;
        if let AnswerFault::Delay(by) = fault {
            let deadline = ctx.now.mono + by;
            return self.park(ctx, deadline, Vec::new(), Box::new(Held(Some(answer))));
        }
        let (frame, last) = match answer {
            Answer::Frame(frame) => (frame, false),
            Answer::Last(frame) => (frame, true),
            Answer::Close(_) => return self.finish(&ctx, answer),
        };
        let mut bytes = BytesMut::from(&frame.to_vec()[..]);
        let close = match fault {
            AnswerFault::Delay(_) => false,
            AnswerFault::Lose => {
                bytes.clear();
                true
            }
            AnswerFault::CutAfter(keep) => {
                bytes.truncate(keep);
                true
            }
            AnswerFault::Truncate(less) => {
                bytes.truncate(bytes.len().saturating_sub(less).max(4));
                let size = (bytes.len() - 4) as i32;
                bytes[..4].copy_from_slice(&size.to_be_bytes());
                false
            }
            AnswerFault::Rewrite(rewrite) => {
                let flexible = ctx.key.info().map_or(0, |info| info.response_header_version(ctx.version));
                // Size, correlation id, and an empty section of tags where the header has one.
                let header = if flexible > 0 { 9 } else { 8 };
                let body = rewrite.apply(ctx.version, bytes.split_off(header.min(bytes.len())).to_vec());
                bytes.extend_from_slice(&body);
                let size = (bytes.len() - 4) as i32;
                bytes[..4].copy_from_slice(&size.to_be_bytes());
                false
            }
            AnswerFault::ShiftCorrelationId(by) => {
                let id = ctx.correlation_id.wrapping_add(by);
                bytes[4..8].copy_from_slice(&id.to_be_bytes());
                false
            }
        };
        if !bytes.is_empty() {
            self.output.push_back(Output::Send { conn: ctx.conn, segments: vec![Bytes::from(bytes)] });
        }
        if close || last {
            self.close(ctx.now, ctx.conn, CloseReason::Fault);
        }
    }
}

/// An answer that waits for its time.
struct Held(Option<Answer>);

impl Parked for Held {
    fn resume(&mut self, _: &mut Cluster, _: &RequestContext, expired: bool) -> Option<Answer> {
        if expired { self.0.take() } else { None }
    }
}
