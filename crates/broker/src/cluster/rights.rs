//! What who asks may do, with the code of the refusal.

use super::{Cluster, Topic, TopicRef};
use crate::api::RequestContext;
use crate::security::{Authorizer, CLUSTER, Operation, Resource, ResourceKind};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Uuid;

impl Cluster {
    /// Changes the rules of the authoriser, which is there from now on.
    pub fn change_rights(&mut self, change: impl FnOnce(&mut Authorizer)) {
        change(self.config.authorizer.get_or_insert_default());
    }

    /// Allows a principal an operation; see [`Authorizer`], which is there from now on.
    pub fn allow(&mut self, principal: &str, operation: Operation, resource: Resource) {
        self.change_rights(|rights| rights.add(principal.to_owned(), operation, resource, false));
    }

    /// Denies a principal an operation; see [`Authorizer`], which is there from now on.
    pub fn deny(&mut self, principal: &str, operation: Operation, resource: Resource) {
        self.change_rights(|rights| rights.add(principal.to_owned(), operation, resource, true));
    }

    /// Takes back what [`Cluster::allow`] gave; says whether there was such a rule.
    pub fn remove_allow(&mut self, principal: &str, operation: Operation, resource: &Resource) -> bool {
        let rights = self.config.authorizer.as_mut();
        rights.is_some_and(|rights| rights.remove(principal, operation, resource, false))
    }

    /// Takes back what [`Cluster::deny`] took; says whether there was such a rule.
    pub fn remove_deny(&mut self, principal: &str, operation: Operation, resource: &Resource) -> bool {
        let rights = self.config.authorizer.as_mut();
        rights.is_some_and(|rights| rights.remove(principal, operation, resource, true))
    }

    fn may(&self, ctx: &RequestContext, operation: Operation, kind: ResourceKind, name: &str) -> bool {
        let rights = self.config.authorizer.as_ref();
        rights.is_none_or(|rights| rights.allows(&ctx.principal, operation, kind, name))
    }

    pub(crate) fn may_topic(&self, ctx: &RequestContext, operation: Operation, name: &str) -> Result<(), ErrorCode> {
        let may = self.may(ctx, operation, ResourceKind::Topic, name);
        if may { Ok(()) } else { Err(ErrorCode::TOPIC_AUTHORIZATION_FAILED) }
    }

    pub(crate) fn may_group(&self, ctx: &RequestContext, operation: Operation, id: &str) -> Result<(), ErrorCode> {
        let may = self.may(ctx, operation, ResourceKind::Group, id);
        if may { Ok(()) } else { Err(ErrorCode::GROUP_AUTHORIZATION_FAILED) }
    }

    pub(crate) fn may_transact(&self, ctx: &RequestContext, operation: Operation, id: &str) -> Result<(), ErrorCode> {
        let may = self.may(ctx, operation, ResourceKind::TransactionalId, id);
        if may { Ok(()) } else { Err(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED) }
    }

    pub(crate) fn may_cluster(&self, ctx: &RequestContext, operation: Operation) -> Result<(), ErrorCode> {
        let may = self.may(ctx, operation, ResourceKind::Cluster, CLUSTER);
        if may { Ok(()) } else { Err(ErrorCode::CLUSTER_AUTHORIZATION_FAILED) }
    }

    /// Whoever may write to any topic may be an idempotent producer (KIP-679).
    pub(crate) fn may_be_idempotent(&self, ctx: &RequestContext) -> Result<(), ErrorCode> {
        let rights = self.config.authorizer.as_ref();
        let any = |rights: &Authorizer| rights.allows_any(&ctx.principal, Operation::Write, ResourceKind::Topic);
        if rights.is_none_or(any) { Ok(()) } else { self.may_cluster(ctx, Operation::IdempotentWrite) }
    }

    /// A topic on which who asks may do this. As in Kafka, whether a name exists is told only to whom it concerns; ids are no
    /// secret.
    pub(crate) fn allowed_topic(
        &self,
        ctx: &RequestContext,
        operation: Operation,
        topic: &TopicRef<'_>,
    ) -> Result<&Topic, ErrorCode> {
        if let TopicRef::Name(name) = topic {
            self.may_topic(ctx, operation, name)?;
        }
        let found = self.find_topic(topic)?;
        self.may_topic(ctx, operation, &found.name).map(|()| found)
    }

    /// Whether who asks may read the topic of this id, if there is one.
    pub(crate) fn may_read(&self, ctx: &RequestContext, topic: Uuid) -> Result<(), ErrorCode> {
        // Asked for every partition of a fetch: nothing is looked up where nothing can be refused.
        if self.config.authorizer.is_none() {
            return Ok(());
        }
        self.topics.by_id(topic).map_or(Ok(()), |topic| self.may_topic(ctx, Operation::Read, &topic.name))
    }

    /// Which of these operations, as a set of bits, who asks may do.
    pub(crate) fn operations(&self, ctx: &RequestContext, all: i32, kind: ResourceKind, name: &str) -> i32 {
        if self.config.authorizer.is_none() {
            return all;
        }
        let name = if kind == ResourceKind::Cluster { CLUSTER } else { name };
        let bits = Operation::CODED
            .iter()
            .filter(|(operation, bit)| all & (1 << bit) != 0 && self.may(ctx, *operation, kind, name));
        bits.fold(0, |set, (_, bit)| set | (1 << bit))
    }
}
