//! One file per API key, and the table that leads to them.

mod budget;
mod configs;
mod errors;
mod errors_admin;
mod table;

#[path = "24_add_partitions_to_txn.rs"]
mod add_partitions_to_txn;
#[path = "96_add_share_acks_to_txn.rs"]
mod add_share_acks_to_txn;
#[path = "91_alter_share_group_offsets.rs"]
mod alter_share_group_offsets;
#[path = "18_api_versions.rs"]
mod api_versions;
#[path = "37_create_partitions.rs"]
mod create_partitions;
#[path = "19_create_topics.rs"]
mod create_topics;
#[path = "42_delete_groups.rs"]
mod delete_groups;
#[path = "21_delete_records.rs"]
mod delete_records;
#[path = "92_delete_share_group_offsets.rs"]
mod delete_share_group_offsets;
#[path = "20_delete_topics.rs"]
mod delete_topics;
#[path = "60_describe_cluster.rs"]
mod describe_cluster;
#[path = "32_describe_configs.rs"]
mod describe_configs;
#[path = "61_describe_producers.rs"]
mod describe_producers;
#[path = "90_describe_share_group_offsets.rs"]
mod describe_share_group_offsets;
#[path = "75_describe_topic_partitions.rs"]
mod describe_topic_partitions;
#[path = "65_describe_transactions.rs"]
mod describe_transactions;
#[path = "26_end_txn.rs"]
mod end_txn;
#[path = "01_fetch.rs"]
mod fetch;
#[path = "10_find_coordinator.rs"]
mod find_coordinator;
#[path = "44_incremental_alter_configs.rs"]
mod incremental_alter_configs;
#[path = "22_init_producer_id.rs"]
mod init_producer_id;
mod leader_hints;
#[path = "74_list_config_resources.rs"]
mod list_config_resources;
#[path = "16_list_groups.rs"]
mod list_groups;
#[path = "02_list_offsets.rs"]
mod list_offsets;
#[path = "66_list_transactions.rs"]
mod list_transactions;
#[path = "03_metadata.rs"]
mod metadata;
#[path = "00_produce.rs"]
mod produce;
#[path = "36_sasl_authenticate.rs"]
mod sasl_authenticate;
#[path = "17_sasl_handshake.rs"]
mod sasl_handshake;
#[path = "79_share_acknowledge.rs"]
mod share_acknowledge;
#[path = "78_share_fetch.rs"]
mod share_fetch;
#[path = "77_share_group_describe.rs"]
mod share_group_describe;
#[path = "76_share_group_heartbeat.rs"]
mod share_group_heartbeat;
#[path = "95_txn_share_acknowledge.rs"]
mod txn_share_acknowledge;
#[path = "27_write_txn_markers.rs"]
mod write_txn_markers;

pub(crate) use api_versions::refuse as refuse_api_versions;
pub(crate) use errors::error_answer;
pub(crate) use table::{handle, versions};

use crate::Now;
use crate::cluster::{CloseReason, ConnId, Parked, WaitKey};
use crate::faults::AnswerFault;
use kafka_share_messages::{ApiKey, Message, Request, frame};
use kafka_share_wire::{Frame, Reader, Str};
use std::time::Duration;

/// The request being served, apart from its body.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) now: Now,
    /// The node that was asked.
    pub(crate) node: i32,
    pub(crate) conn: ConnId,
    /// The listener that was asked, by its place in the settings.
    pub(crate) listener: usize,
    /// Who asks.
    pub(crate) principal: Str,
    pub(crate) key: ApiKey,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    pub(crate) client_id: Option<Str>,
    /// What a fault does to the answer.
    pub(crate) answer_fault: Option<AnswerFault>,
}

impl RequestContext {
    /// The request that a body holds, and nothing else.
    fn decode<R: Request>(&self, mut body: Reader) -> Result<R, CloseReason> {
        let malformed = |error: kafka_share_wire::Error| CloseReason::Malformed(format!("{}: {error}", R::NAME));
        let request = R::decode(&mut body, self.version).map_err(malformed)?;
        body.finish().map_err(malformed)?;
        Ok(request)
    }

    /// The answer to this request.
    pub(crate) fn answer<M: Message>(&self, response: &M) -> Answer {
        match frame::encode_response(self.key, response, self.version, self.correlation_id) {
            Ok(frame) => Answer::Frame(frame),
            Err(error) => Answer::Close(CloseReason::Encode(format!("{}: {error}", M::NAME))),
        }
    }
}

/// What ends a request.
#[derive(Debug)]
pub(crate) enum Answer {
    Frame(Frame),
    /// The connection is closed behind it.
    Last(Frame),
    Close(CloseReason),
}

/// What a handler decides.
pub(crate) enum Outcome<R> {
    /// Answer now.
    Reply(R),
    /// Answer, some time later, and close the connection.
    Farewell(R),
    /// Never answer (produce with acks 0).
    NoReply,
    /// Close the connection.
    Close(CloseReason),
    /// Answer when one of `keys` is woken and the request is content, or at the deadline.
    Park {
        /// On the monotonic clock.
        deadline: Duration,
        /// What to wait for.
        keys: Vec<WaitKey>,
        /// The request.
        parked: Box<dyn Parked>,
    },
}

/// An [`Outcome`] whose response is encoded.
pub(crate) enum Served {
    Answer(Answer),
    Farewell(Answer),
    Nothing,
    Park { deadline: Duration, keys: Vec<WaitKey>, parked: Box<dyn Parked> },
}
