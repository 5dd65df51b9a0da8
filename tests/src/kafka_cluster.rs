//! A real Kafka cluster of several nodes on loopback: nodes are killed, stopped and started again, leaders move.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kafka_protocol::messages as peer;
use kafka_protocol::protocol::StrBytes;
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::{ErrorCode, MetadataRequest, MetadataResponse};
use kafka_share_wire::Str;
use tempfile::TempDir;

use crate::java;
use crate::kafka::{READY_WITHIN, free_ports, wait_until_ready};
use crate::kafka_process::{Node, Process};
use crate::raw::Raw;

/// Nodes, each a broker and a controller.
const NODES: usize = 3;
/// Heap of a node.
const HEAP: &str = "400m";
/// The same for all nodes; no other cluster reaches these ports.
const CLUSTER_ID: &str = "a2Fma2Etc2hhcmUtdGVzdA";
/// How long a node may take to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(60);
/// Beside what `kafka-up` sets.
const PROPERTIES: &[&str] = &[
    "default.replication.factor=3",
    "min.insync.replicas=2",
    "offsets.topic.replication.factor=3",
    "transaction.state.log.replication.factor=3",
    "transaction.state.log.min.isr=2",
    "share.coordinator.state.topic.replication.factor=3",
    "share.coordinator.state.topic.min.isr=2",
    // Leaders move when a test moves them, and away from a dead node within seconds.
    "auto.leader.rebalance.enable=false",
    "broker.session.timeout.ms=4000",
    "broker.heartbeat.interval.ms=500",
    "replica.lag.time.max.ms=10000",
    "controlled.shutdown.enable=true",
];

/// A cluster of three nodes with ids 1 to 3. All are killed, and their data removed, when this is dropped.
#[derive(Debug)]
pub struct RealCluster {
    version: String,
    // End before their data goes.
    members: Vec<Member>,
    _dir: TempDir,
}

#[derive(Debug)]
struct Member {
    port: u16,
    controller: u16,
    dir: PathBuf,
    process: Mutex<Option<Process>>,
}

impl Member {
    fn node<'a>(&'a self, version: &'a str) -> Node<'a> {
        Node { version, port: self.port, controller: self.controller, dir: &self.dir, heap: Some(HEAP) }
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RealCluster {
    /// Starts a cluster of a release. `None`: Java or Maven is missing, and `test` is reported as skipped.
    ///
    /// # Panics
    /// If it does not come up, or Java is missing where [`java::REQUIRE_JAVA`] is set.
    #[must_use]
    pub fn start(test: &str, version: &str) -> Option<Self> {
        if !java::available(test) {
            return None;
        }
        // A free port may be taken between its choice and its use.
        let mut last = io::Error::other("never tried");
        for _ in 0..3 {
            match Self::try_start(version) {
                Ok(cluster) => return Some(cluster),
                Err(e) => last = e,
            }
        }
        panic!("a cluster of Kafka {version} did not start: {last}");
    }

    fn try_start(version: &str) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let ports: [u16; 2 * NODES] = free_ports()?;
        let members: Vec<Member> = (1..=NODES)
            .zip(ports.chunks(2))
            .map(|(id, ports)| Member {
                port: ports[0],
                controller: ports[1],
                dir: dir.path().join(id.to_string()),
                process: Mutex::default(),
            })
            .collect();
        let cluster = Self { version: version.to_owned(), members, _dir: dir };
        cluster.start_all()?;
        cluster.wait_for_brokers(READY_WITHIN)?;
        Ok(cluster)
    }

    /// Side by side: none answers before it has the others' votes.
    fn start_all(&self) -> io::Result<()> {
        let voters: Vec<_> =
            (1..).zip(&self.members).map(|(id, m): (i32, _)| format!("{id}@127.0.0.1:{}", m.controller)).collect();
        let voters = format!("controller.quorum.voters={}", voters.join(","));
        std::thread::scope(|scope| {
            let start = |(id, member)| {
                let voters = &voters;
                scope.spawn(move || self.start_one(id, member, voters))
            };
            let starts: Vec<_> = (1..).zip(&self.members).map(start).collect();
            starts.into_iter().try_for_each(|start| start.join().expect("no panic"))
        })
    }

    fn start_one(&self, id: i32, member: &Member, voters: &str) -> io::Result<()> {
        std::fs::create_dir_all(&member.dir)?;
        let id = format!("node.id={id}");
        let properties: Vec<String> =
            PROPERTIES.iter().copied().chain([id.as_str(), voters]).map(str::to_owned).collect();
        let process = Process::first(&member.node(&self.version), &["--cluster-id", CLUSTER_ID], &properties)?;
        *member.process() = Some(process);
        Ok(())
    }

    fn wait_for_brokers(&self, within: Duration) -> io::Result<()> {
        let deadline = Instant::now() + within;
        for member in &self.members {
            wait_until_ready(member.address(), within)?;
            loop {
                match metadata(member.address(), &[]) {
                    Ok(answer) if answer.brokers.len() == self.members.len() => break,
                    _ if Instant::now() > deadline => {
                        return Err(io::Error::other(format!("not all brokers came:\n{}", self.logs())));
                    }
                    _ => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        }
        Ok(())
    }

    /// `host:port` of all brokers.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.members.iter().map(|m| m.address().to_string()).collect::<Vec<_>>().join(",")
    }

    /// Ids of the nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<i32> {
        (1..).take(self.members.len()).collect()
    }

    /// Kills a node with SIGKILL. One that is down already stays down.
    ///
    /// # Panics
    /// With an id that no node has.
    pub fn kill(&self, node: i32) {
        drop(self.member(node).process().take());
    }

    /// Stops a node with SIGTERM: it hands its leaders over first.
    ///
    /// # Errors
    /// It is down already, or does not stop (it is killed then).
    ///
    /// # Panics
    /// With an id that no node has.
    pub fn terminate(&self, node: i32) -> io::Result<()> {
        let process = self.member(node).process().take();
        process.ok_or_else(|| io::Error::other(format!("node {node} is down")))?.terminate(STOPPED_WITHIN)
    }

    /// Starts a node again on its data, and waits until it answers.
    ///
    /// # Errors
    /// It does not come up.
    ///
    /// # Panics
    /// With an id that no node has.
    pub fn restart(&self, node: i32) -> io::Result<()> {
        let member = self.member(node);
        let mut process = member.process();
        if process.is_none() {
            *process = Some(Process::again(&member.node(&self.version))?);
        }
        drop(process);
        wait_until_ready(member.address(), READY_WITHIN)
    }

    /// Waits until all replicas of all partitions of these topics are in sync, so that any one node may go.
    ///
    /// # Errors
    /// They are not within that time.
    pub fn wait_in_sync(&self, topics: &[&str], within: Duration) -> io::Result<()> {
        let deadline = Instant::now() + within;
        loop {
            let answer = self.metadata(topics);
            if let Ok(answer) = &answer
                && answer.topics.iter().all(|t| {
                    t.error_code.is_ok() && t.partitions.iter().all(|p| p.isr_nodes.len() == p.replica_nodes.len())
                })
            {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("not in sync: {answer:?}")));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Makes a node the leader of a partition. `false`: it is already, or it is not in sync.
    ///
    /// # Errors
    /// The cluster cannot be asked, or refuses.
    pub fn move_leader(&self, topic: &str, partition: i32, node: i32) -> io::Result<bool> {
        let mut connection = Raw::connect(self.any_address()?)?;
        let mut replicas = self.nodes();
        replicas.sort_by_key(|id| (*id != node, *id));
        // The first replica is the preferred leader.
        let one = peer::alter_partition_reassignments_request::ReassignablePartition::default()
            .with_partition_index(partition)
            .with_replicas(Some(replicas.into_iter().map(peer::BrokerId).collect()));
        let name = peer::TopicName(StrBytes::from_string(topic.to_owned()));
        let topics = peer::alter_partition_reassignments_request::ReassignableTopic::default()
            .with_name(name.clone())
            .with_partitions(vec![one]);
        let order =
            peer::AlterPartitionReassignmentsRequest::default().with_timeout_ms(10_000).with_topics(vec![topics]);
        let answer = connection.call_peer(&order, 0)?;
        let code = answer.responses.iter().flat_map(|t| &t.partitions).map(|p| p.error_code).find(|code| *code != 0);
        let code = code.map_or(answer.error_code, |code| code);
        if code != 0 {
            return Err(io::Error::other(format!("replicas of {topic}-{partition}: {}", ErrorCode(code))));
        }
        let partitions =
            peer::elect_leaders_request::TopicPartitions::default().with_topic(name).with_partitions(vec![partition]);
        let elect =
            peer::ElectLeadersRequest::default().with_timeout_ms(10_000).with_topic_partitions(Some(vec![partitions]));
        let answer = connection.call_peer(&elect, 2)?;
        let results = answer.replica_election_results.iter().flat_map(|t| &t.partition_result);
        let code = results.map(|p| p.error_code).find(|code| *code != 0).unwrap_or(answer.error_code);
        match ErrorCode(code) {
            ErrorCode::NONE => Ok(true),
            ErrorCode::ELECTION_NOT_NEEDED | ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE => Ok(false),
            code => Err(io::Error::other(format!("leader of {topic}-{partition}: {code}"))),
        }
    }

    /// Leader of each partition of a topic; -1 for none.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub fn leaders(&self, topic: &str) -> io::Result<Vec<i32>> {
        let answer = self.metadata(&[topic])?;
        let mut partitions: Vec<_> = answer.topics.iter().flat_map(|t| &t.partitions).collect();
        partitions.sort_by_key(|p| p.partition_index);
        Ok(partitions.iter().map(|p| p.leader_id).collect())
    }

    /// What the nodes have logged: warnings and errors only.
    #[must_use]
    pub fn logs(&self) -> String {
        let log = |(id, member): (i32, &Member)| {
            let text = std::fs::read_to_string(member.dir.join("broker.log")).unwrap_or_default();
            format!("node {id}:\n{text}")
        };
        (1..).zip(&self.members).map(log).collect()
    }

    fn metadata(&self, topics: &[&str]) -> io::Result<MetadataResponse> {
        metadata(self.any_address()?, topics)
    }

    fn any_address(&self) -> io::Result<SocketAddr> {
        let up = self.members.iter().find(|m| m.process.try_lock().is_ok_and(|p| p.is_some()));
        up.map(Member::address).ok_or_else(|| io::Error::other("no node is up"))
    }

    fn member(&self, node: i32) -> &Member {
        let at = usize::try_from(node - 1).ok();
        at.and_then(|at| self.members.get(at)).unwrap_or_else(|| panic!("no node has id {node}"))
    }
}

impl Drop for RealCluster {
    fn drop(&mut self) {
        // All at a time; then each is waited for.
        for member in &self.members {
            if let Some(process) = member.process().as_mut() {
                process.kill();
            }
        }
    }
}

/// Of these topics, and of all brokers.
fn metadata(address: SocketAddr, topics: &[&str]) -> io::Result<MetadataResponse> {
    let topics = topics
        .iter()
        .map(|name| MetadataRequestTopic { name: Some(Str::from(*name)), ..MetadataRequestTopic::default() });
    let request = MetadataRequest { topics: Some(topics.collect()), ..MetadataRequest::default() };
    Raw::connect(address)?.call(&request, 12)
}
