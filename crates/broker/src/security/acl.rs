//! Access control lists, decided as Kafka's StandardAuthorizer decides: who is denied is denied, whatever else is allowed.

use std::collections::BTreeSet;

/// What is done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// All that can be done.
    All,
    /// Read records, join groups, acknowledge.
    Read,
    /// Write records, use a transactional id.
    Write,
    /// Create.
    Create,
    /// Delete.
    Delete,
    /// Alter, such as the number of partitions.
    Alter,
    /// See that it exists. Allowed to whoever may read, write, delete or alter.
    Describe,
    /// What nodes of a cluster do among themselves.
    ClusterAction,
    /// Read the settings. Allowed to whoever may alter them.
    DescribeConfigs,
    /// Change the settings.
    AlterConfigs,
    /// Be an idempotent producer; on the cluster. Allowed to whoever may write to any topic.
    IdempotentWrite,
    /// Take part in two-phase commit (KIP-939); on a transactional id.
    TwoPhaseCommit,
}

impl Operation {
    /// Those that have a bit in sets of authorised operations, with Kafka's codes.
    pub(crate) const CODED: [(Operation, u32); 10] = [
        (Operation::Read, 3),
        (Operation::Write, 4),
        (Operation::Create, 5),
        (Operation::Delete, 6),
        (Operation::Alter, 7),
        (Operation::Describe, 8),
        (Operation::ClusterAction, 9),
        (Operation::DescribeConfigs, 10),
        (Operation::AlterConfigs, 11),
        (Operation::IdempotentWrite, 12),
    ];

    /// Whether who may do `self` may do `other`.
    fn implies(self, other: Operation) -> bool {
        match self {
            Operation::All => true,
            Operation::Read | Operation::Write | Operation::Delete | Operation::Alter => {
                self == other || other == Operation::Describe
            }
            Operation::AlterConfigs => self == other || other == Operation::DescribeConfigs,
            _ => self == other,
        }
    }
}

/// Kinds of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ResourceKind {
    /// Topics, by name.
    Topic,
    /// Groups, by id.
    Group,
    /// The cluster as a whole.
    Cluster,
    /// Transactional ids.
    TransactionalId,
}

/// What a rule is about: one resource, all of a kind, or all whose name begins alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    kind: ResourceKind,
    name: String,
    prefixed: bool,
}

impl Resource {
    /// A topic; `*` stands for all.
    #[must_use]
    pub fn topic(name: impl Into<String>) -> Self {
        Resource { kind: ResourceKind::Topic, name: name.into(), prefixed: false }
    }

    /// A group; `*` stands for all.
    #[must_use]
    pub fn group(id: impl Into<String>) -> Self {
        Resource { kind: ResourceKind::Group, name: id.into(), prefixed: false }
    }

    /// A transactional id; `*` stands for all.
    #[must_use]
    pub fn transactional_id(id: impl Into<String>) -> Self {
        Resource { kind: ResourceKind::TransactionalId, name: id.into(), prefixed: false }
    }

    /// The cluster.
    #[must_use]
    pub fn cluster() -> Self {
        Resource { kind: ResourceKind::Cluster, name: CLUSTER.into(), prefixed: false }
    }

    /// All of this kind whose name begins as this one's.
    #[must_use]
    pub fn prefixed(mut self) -> Self {
        self.prefixed = true;
        self
    }

    fn covers(&self, kind: ResourceKind, name: &str) -> bool {
        let named = if self.prefixed { name.starts_with(&self.name) } else { self.name == name || self.name == ANY };
        self.kind == kind && named
    }

    /// Whether all that `other` covers is covered too.
    fn contains(&self, other: &Resource) -> bool {
        self.kind == other.kind
            && match (self.prefixed, other.prefixed) {
                (true, _) => other.name != ANY && other.name.starts_with(&self.name),
                (false, true) => self.name == ANY,
                (false, false) => self.name == ANY || self.name == other.name,
            }
    }
}

/// The name of the cluster as a resource.
pub(crate) const CLUSTER: &str = "kafka-cluster";
const ANY: &str = "*";
const ANYBODY: &str = "User:*";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    resource: Resource,
    principal: String,
    operation: Operation,
    denies: bool,
}

impl Rule {
    fn is_for(&self, principal: &str) -> bool {
        self.principal == principal || self.principal == ANYBODY
    }
}

/// Who may do what. Without rules nobody may do anything but super users.
///
/// Principals are written as `User:alice`; `User:*` stands for everybody, and who has not authenticated is
/// `User:ANONYMOUS`.
///
/// ```
/// use kafka_share_broker::{Authorizer, Operation, Resource};
///
/// let rules = Authorizer::new()
///     .super_user("User:admin")
///     .allow("User:alice", Operation::Write, Resource::topic("orders"))
///     .allow("User:bob", Operation::Read, Resource::topic("ord").prefixed())
///     .allow("User:bob", Operation::Read, Resource::group("billing"));
/// # let _ = rules;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Authorizer {
    super_users: BTreeSet<String>,
    rules: BTreeSet<Rule>,
    allow_without_rules: bool,
}

impl Authorizer {
    /// Denies everything to everybody.
    pub fn new() -> Self {
        Authorizer::default()
    }

    /// This principal may do everything (`super.users`).
    pub fn super_user(mut self, principal: impl Into<String>) -> Self {
        self.super_users.insert(principal.into());
        self
    }

    /// Whether everybody may do everything to what no rule is about (`allow.everyone.if.no.acl.found`). Default false.
    pub fn allow_without_rules(mut self, on: bool) -> Self {
        self.allow_without_rules = on;
        self
    }

    /// Allows an operation.
    pub fn allow(mut self, principal: impl Into<String>, operation: Operation, resource: Resource) -> Self {
        self.add(principal.into(), operation, resource, false);
        self
    }

    /// Denies an operation, whatever is allowed.
    pub fn deny(mut self, principal: impl Into<String>, operation: Operation, resource: Resource) -> Self {
        self.add(principal.into(), operation, resource, true);
        self
    }

    pub(crate) fn add(&mut self, principal: String, operation: Operation, resource: Resource, denies: bool) {
        self.rules.insert(Rule { resource, principal, operation, denies });
    }

    /// Takes rules back; says whether there were any.
    pub(crate) fn remove(&mut self, principal: &str, operation: Operation, resource: &Resource, denies: bool) -> bool {
        let before = self.rules.len();
        self.rules.retain(|rule| {
            rule.principal != principal
                || rule.operation != operation
                || rule.resource != *resource
                || rule.denies != denies
        });
        self.rules.len() < before
    }

    /// Whether a principal may do this.
    pub(crate) fn allows(&self, principal: &str, operation: Operation, kind: ResourceKind, name: &str) -> bool {
        if self.super_users.contains(principal) {
            return true;
        }
        let mut about = false;
        let mut allowed = false;
        for rule in self.rules.iter().filter(|rule| rule.resource.covers(kind, name)) {
            about = true;
            if !rule.is_for(principal) {
                continue;
            }
            if rule.denies && (rule.operation == operation || rule.operation == Operation::All) {
                return false;
            }
            allowed |= !rule.denies && rule.operation.implies(operation);
        }
        if about { allowed } else { self.allow_without_rules }
    }

    /// Whether a principal may do this to at least one resource of a kind, as far as the rules say.
    pub(crate) fn allows_any(&self, principal: &str, operation: Operation, kind: ResourceKind) -> bool {
        if self.super_users.contains(principal) {
            return true;
        }
        let mine = || self.rules.iter().filter(|rule| rule.resource.kind == kind && rule.is_for(principal));
        let denies = |rule: &&Rule| rule.denies && (rule.operation == operation || rule.operation == Operation::All);
        let denied: Vec<&Rule> = mine().filter(denies).collect();
        if denied.iter().any(|rule| rule.resource.name == ANY && !rule.resource.prefixed) {
            return false;
        }
        if self.allow_without_rules {
            return true;
        }
        let allows = |rule: &&Rule| !rule.denies && (rule.operation == operation || rule.operation == Operation::All);
        mine().filter(allows).any(|rule| !denied.iter().any(|deny| deny.resource.contains(&rule.resource)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ResourceKind::{Group, Topic};

    const ALICE: &str = "User:alice";

    #[test]
    fn nothing_is_allowed_by_default() {
        let none = Authorizer::new().super_user("User:root");
        assert!(!none.allows(ALICE, Operation::Read, Topic, "t"));
        assert!(none.allows("User:root", Operation::Read, Topic, "t"));
        assert!(none.allow_without_rules(true).allows(ALICE, Operation::Read, Topic, "t"));
    }

    #[test]
    fn names_prefixes_and_wildcards() {
        let rules = Authorizer::new()
            .allow(ALICE, Operation::Read, Resource::topic("t"))
            .allow(ALICE, Operation::Write, Resource::topic("pre").prefixed())
            .allow("User:*", Operation::Read, Resource::group("*"));
        assert!(rules.allows(ALICE, Operation::Read, Topic, "t") && !rules.allows(ALICE, Operation::Read, Topic, "tt"));
        assert!(rules.allows(ALICE, Operation::Write, Topic, "prefix"));
        assert!(!rules.allows(ALICE, Operation::Write, Topic, "pr"));
        assert!(rules.allows("User:bob", Operation::Read, Group, "any"));
        assert!(!rules.allows("User:bob", Operation::Read, Topic, "t"));
    }

    #[test]
    fn implied_operations() {
        let rules = Authorizer::new()
            .allow(ALICE, Operation::Read, Resource::topic("t"))
            .allow(ALICE, Operation::AlterConfigs, Resource::topic("t"))
            .allow(ALICE, Operation::All, Resource::group("g"));
        assert!(rules.allows(ALICE, Operation::Describe, Topic, "t"));
        assert!(rules.allows(ALICE, Operation::DescribeConfigs, Topic, "t"));
        assert!(!rules.allows(ALICE, Operation::Write, Topic, "t"));
        assert!(rules.allows(ALICE, Operation::Delete, Group, "g"));
    }

    #[test]
    fn who_is_denied_is_denied() {
        let mut rules = Authorizer::new().allow(ALICE, Operation::All, Resource::topic("*")).deny(
            "User:*",
            Operation::Read,
            Resource::topic("secret").prefixed(),
        );
        assert!(!rules.allows(ALICE, Operation::Read, Topic, "secrets"));
        // Only what is named is denied.
        assert!(rules.allows(ALICE, Operation::Describe, Topic, "secrets"));
        assert!(rules.remove("User:*", Operation::Read, &Resource::topic("secret").prefixed(), true));
        assert!(rules.allows(ALICE, Operation::Read, Topic, "secrets"));
        assert!(!rules.remove(ALICE, Operation::Read, &Resource::topic("*"), false));
    }

    #[test]
    fn rights_on_any_topic() {
        let any = |rules: &Authorizer| rules.allows_any(ALICE, Operation::Write, Topic);
        let rules = Authorizer::new();
        assert!(!any(&rules));
        let rules = rules.allow(ALICE, Operation::Write, Resource::topic("a"));
        assert!(any(&rules));
        let rules = rules.deny(ALICE, Operation::Write, Resource::topic("a"));
        assert!(!any(&rules));
        let rules = rules.allow(ALICE, Operation::Write, Resource::topic("b").prefixed());
        assert!(any(&rules));
        let rules = rules.deny("User:*", Operation::All, Resource::topic("*"));
        assert!(!any(&rules));
    }
}
