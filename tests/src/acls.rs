//! Rights, taken away from everybody and given back: on a real broker with an authoriser ([`AUTHORIZER`]), and on the embedded
//! one with the same ([`authorizer`]).

use std::io;
use std::net::SocketAddr;

use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;
use kafka_protocol::messages::{CreateAclsRequest, DeleteAclsRequest};
use kafka_protocol::protocol::StrBytes;
use kafka_share_broker::{Authorizer, EmbeddedBroker};
use kafka_share_messages::ErrorCode;

use crate::raw::Raw;

/// Server properties under which all may do what no entry forbids.
pub const AUTHORIZER: &[&str] = &[
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found=true",
];

/// What [`AUTHORIZER`] is on the embedded broker.
pub fn authorizer() -> Authorizer {
    Authorizer::new().allow_without_rules(true)
}

/// The broker that keeps the rights.
#[derive(Debug, Clone, Copy)]
pub enum Keeper<'a> {
    /// A real one.
    Real(SocketAddr),
    /// The embedded one.
    Embedded(&'a EmbeddedBroker),
}

impl From<SocketAddr> for Keeper<'_> {
    fn from(broker: SocketAddr) -> Self {
        Keeper::Real(broker)
    }
}

impl<'a> From<&'a EmbeddedBroker> for Keeper<'a> {
    fn from(broker: &'a EmbeddedBroker) -> Self {
        Keeper::Embedded(broker)
    }
}

impl Resource {
    fn embedded(self, name: &str) -> kafka_share_broker::Resource {
        match self {
            Resource::Topic => kafka_share_broker::Resource::topic(name),
            Resource::Group => kafka_share_broker::Resource::group(name),
            Resource::TransactionalId => kafka_share_broker::Resource::transactional_id(name),
        }
    }
}

impl Operation {
    fn embedded(self) -> kafka_share_broker::Operation {
        match self {
            Operation::Read => kafka_share_broker::Operation::Read,
            Operation::Write => kafka_share_broker::Operation::Write,
            Operation::Describe => kafka_share_broker::Operation::Describe,
            Operation::DescribeConfigs => kafka_share_broker::Operation::DescribeConfigs,
        }
    }
}

// Codes of `AclOperation`, `PatternType` and `AclPermissionType`.
const LITERAL: i8 = 3;
const PREFIXED: i8 = 4;
const DENY: i8 = 2;
const ALLOW: i8 = 3;
const ALL: i8 = 2;
const EVERYBODY: &str = "User:*";
const ANYWHERE: &str = "*";

/// What a right is on, with its code of `ResourceType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum Resource {
    /// A topic.
    Topic = 2,
    /// A group.
    Group = 3,
    /// A transactional id.
    TransactionalId = 5,
}

/// What a right allows, with its code of `AclOperation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum Operation {
    /// Read.
    Read = 3,
    /// Write.
    Write = 4,
    /// Describe.
    Describe = 8,
    /// Describe the configs.
    DescribeConfigs = 10,
}

/// Forbids everybody to read it.
///
/// # Errors
/// A broker that cannot be reached, or refuses.
pub fn deny_read<'a>(broker: impl Into<Keeper<'a>>, resource: Resource, name: &str) -> io::Result<()> {
    deny(broker, resource, name, Operation::Read)
}

/// Forbids everybody to do something with it.
///
/// # Errors
/// A broker that cannot be reached, or refuses.
pub fn deny<'a>(broker: impl Into<Keeper<'a>>, resource: Resource, name: &str, operation: Operation) -> io::Result<()> {
    match broker.into() {
        Keeper::Real(broker) => create(broker, vec![creation(resource, name, operation as i8, DENY)]),
        Keeper::Embedded(broker) => {
            broker.deny(EVERYBODY, operation.embedded(), resource.embedded(name));
            Ok(())
        }
    }
}

/// Allows everybody whatever is not forbidden by another entry: the first entry of a thing ends what is allowed without one.
///
/// # Errors
/// As [`deny`].
pub fn allow_the_rest<'a>(broker: impl Into<Keeper<'a>>, resource: Resource, name: &str) -> io::Result<()> {
    match broker.into() {
        Keeper::Real(broker) => create(broker, vec![creation(resource, name, ALL, ALLOW)]),
        Keeper::Embedded(broker) => {
            broker.allow(EVERYBODY, kafka_share_broker::Operation::All, resource.embedded(name));
            Ok(())
        }
    }
}

/// Allows everybody just this: per thing its operations, and nothing else of it. A name with `*` at its end stands for all that
/// begin so. All of it takes effect at one time.
///
/// # Errors
/// As [`deny`].
pub fn allow_only<'a>(broker: impl Into<Keeper<'a>>, things: &[(Resource, &str, &[Operation])]) -> io::Result<()> {
    let broker = match broker.into() {
        Keeper::Real(broker) => broker,
        Keeper::Embedded(broker) => {
            for (resource, name, operations) in things {
                let prefix = name.strip_suffix('*');
                let thing = resource.embedded(prefix.unwrap_or(name));
                let thing = if prefix.is_some() { thing.prefixed() } else { thing };
                operations.iter().for_each(|operation| broker.allow(EVERYBODY, operation.embedded(), thing.clone()));
            }
            return Ok(());
        }
    };
    let creations = things.iter().flat_map(|(resource, name, operations)| {
        let (name, pattern) = name.strip_suffix('*').map_or((*name, LITERAL), |prefix| (prefix, PREFIXED));
        operations.iter().map(move |operation| {
            creation(*resource, name, *operation as i8, ALLOW).with_resource_pattern_type(pattern)
        })
    });
    create(broker, creations.collect())
}

fn creation(resource: Resource, name: &str, operation: i8, permission: i8) -> AclCreation {
    AclCreation::default()
        .with_resource_type(resource as i8)
        .with_resource_name(StrBytes::from_string(name.to_owned()))
        .with_resource_pattern_type(LITERAL)
        .with_principal(StrBytes::from_static_str(EVERYBODY))
        .with_host(StrBytes::from_static_str(ANYWHERE))
        .with_operation(operation)
        .with_permission_type(permission)
}

fn create(broker: SocketAddr, creations: Vec<AclCreation>) -> io::Result<()> {
    let answer = Raw::connect(broker)?.call_peer(&CreateAclsRequest::default().with_creations(creations), 3)?;
    let refused: Vec<i16> = answer.results.iter().map(|r| r.error_code).filter(|code| *code != 0).collect();
    if refused.is_empty() { Ok(()) } else { Err(io::Error::other(format!("entries are refused: {refused:?}"))) }
}

/// Takes the entry of [`deny_read`] back.
///
/// # Errors
/// As [`deny_read`], and where there is no such entry.
pub fn allow_read<'a>(broker: impl Into<Keeper<'a>>, resource: Resource, name: &str) -> io::Result<()> {
    allow(broker, resource, name, Operation::Read)
}

/// Takes the entry of [`deny`] back.
///
/// # Errors
/// As [`deny`], and where there is no such entry.
pub fn allow<'a>(
    broker: impl Into<Keeper<'a>>,
    resource: Resource,
    name: &str,
    operation: Operation,
) -> io::Result<()> {
    let broker = match broker.into() {
        Keeper::Real(broker) => broker,
        Keeper::Embedded(broker) => {
            let found = broker.remove_deny(EVERYBODY, operation.embedded(), &resource.embedded(name));
            return if found { Ok(()) } else { Err(io::Error::other("there is no such entry")) };
        }
    };
    let filter = DeleteAclsFilter::default()
        .with_resource_type_filter(resource as i8)
        .with_resource_name_filter(Some(StrBytes::from_string(name.to_owned())))
        .with_pattern_type_filter(LITERAL)
        .with_principal_filter(Some(StrBytes::from_static_str(EVERYBODY)))
        .with_host_filter(Some(StrBytes::from_static_str(ANYWHERE)))
        .with_operation(operation as i8)
        .with_permission_type(DENY);
    let answer = Raw::connect(broker)?.call_peer(&DeleteAclsRequest::default().with_filters(vec![filter]), 3)?;
    match answer.filter_results.first() {
        Some(result) if result.error_code == 0 && result.matching_acls.len() == 1 => Ok(()),
        Some(result) => {
            let (code, found) = (ErrorCode(result.error_code), result.matching_acls.len());
            Err(io::Error::other(format!("{found} entries found: {code}")))
        }
        None => Err(io::Error::other("no answer about the entry")),
    }
}
