//! Share groups as saved values: epochs, members, assignments.

use super::{GroupCoordinator, Member, ShareGroup, TopicPartition};
use crate::persistence::{Decoder, Encoder};
use bytes::Bytes;
use kafka_share_wire::{Result, Str};
use std::collections::BTreeSet;
use std::time::Duration;

fn put_assignment(out: &mut Encoder, assignment: &BTreeSet<TopicPartition>) {
    out.list(assignment.iter(), |out, (topic, partition)| {
        out.uuid(*topic).i32(*partition);
    });
}

fn assignment(input: &mut Decoder) -> Result<BTreeSet<TopicPartition>> {
    input.list(|input| Ok((input.uuid()?, input.i32()?)))
}

impl GroupCoordinator {
    /// Notes from now on which groups change.
    pub(crate) fn record(&mut self) {
        self.groups.record();
    }

    pub(crate) fn take_changed(&mut self) -> BTreeSet<Str> {
        self.groups.take_changed()
    }

    /// Takes a saved group back. Its members have until `deadline` to be heard of.
    pub(crate) fn restore(&mut self, name: &Str, value: Bytes, deadline: Duration) -> Result<()> {
        let group = ShareGroup::decode(value, deadline)?;
        for member in group.members.keys() {
            self.deadlines.insert((deadline, name.clone(), member.clone()));
        }
        self.groups.insert(name.clone(), group);
        Ok(())
    }
}

impl ShareGroup {
    /// Without deadlines: a heartbeat that changes nothing else need not be saved.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Encoder::default();
        out.i32(self.epoch).i32(self.assignment_epoch);
        out.list(self.members.iter(), |out, (id, member)| {
            out.text(id).i32(member.epoch).i32(member.previous_epoch).text(&member.client_id);
            out.optional(member.rack.as_ref(), |out, rack| {
                out.text(rack);
            });
            out.list(member.topics.iter(), |out, topic| {
                out.text(topic);
            });
            put_assignment(out, &member.assigned);
            put_assignment(out, &member.target);
        });
        out.list(self.topics.iter(), |out, (name, (id, partitions))| {
            out.text(name).uuid(*id).i32(*partitions);
        });
        out.list(self.initialized.iter(), |out, (id, partitions)| {
            out.uuid(*id).i32(*partitions);
        });
        out.finish()
    }

    fn decode(value: Bytes, deadline: Duration) -> Result<ShareGroup> {
        let mut input = Decoder::new(value);
        let (epoch, assignment_epoch) = (input.i32()?, input.i32()?);
        let members = input.list(|input| {
            let member = Member {
                epoch: 0,
                previous_epoch: 0,
                client_id: Str::default(),
                rack: None,
                topics: Vec::new(),
                assigned: BTreeSet::new(),
                target: BTreeSet::new(),
                deadline,
            };
            let id = input.text()?;
            let (epoch, previous_epoch, client_id) = (input.i32()?, input.i32()?, input.text()?);
            let rack = input.optional(Decoder::text)?;
            let topics = input.list(Decoder::text)?;
            let (assigned, target) = (assignment(input)?, assignment(input)?);
            Ok((id, Member { epoch, previous_epoch, client_id, rack, topics, assigned, target, ..member }))
        })?;
        let topics = input.list(|input| Ok((input.text()?, (input.uuid()?, input.i32()?))))?;
        let initialized = input.list(|input| Ok((input.uuid()?, input.i32()?)))?;
        input.finish()?;
        Ok(ShareGroup { epoch, assignment_epoch, members, assigned_at: None, topics, initialized })
    }
}
