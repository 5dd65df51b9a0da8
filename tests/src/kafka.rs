//! Real Kafka brokers for tests, started by `kafka/kafka-up` on loopback and ended with the test.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_share_messages::frame::{decode_response, encode_request};
use kafka_share_messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_share_wire::Str;
use tempfile::TempDir;

use crate::java;
use crate::kafka_process::{Node, Process};

/// How long a started broker may take until it answers.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(180);

/// Ports of a broker beyond that of its first listener, for such as tests add.
const MORE_PORTS: usize = 6;

/// A one-node Kafka on a free loopback port. It is killed, and its data removed, when this is dropped.
#[derive(Debug)]
pub struct RealKafka {
    version: String,
    port: u16,
    controller: u16,
    more: [u16; MORE_PORTS],
    // Ends before its data goes.
    process: Process,
    dir: TempDir,
}

impl RealKafka {
    /// Starts a broker of a release. `None`: Java or Maven is missing, and `test` is reported as skipped.
    ///
    /// # Panics
    /// If the broker does not come up, or Java is missing where [`java::REQUIRE_JAVA`] is set.
    #[must_use]
    pub fn start(test: &str, version: &str) -> Option<Self> {
        Self::start_with(test, version, &[])
    }

    /// As [`RealKafka::start`], with further server properties (`name=value`); `{port}` and `{controller}` in them stand
    /// for the ports it gets, `{more0}` to `{more5}` for those of listeners that they add ([`RealKafka::more`]).
    ///
    /// # Panics
    /// As [`RealKafka::start`].
    #[must_use]
    pub fn start_with(test: &str, version: &str, properties: &[&str]) -> Option<Self> {
        Self::start_with_features(test, version, &[], properties)
    }

    /// As [`RealKafka::start_with`], with features at other levels than the release's own (`transaction.version=1`).
    ///
    /// # Panics
    /// As [`RealKafka::start`].
    #[must_use]
    pub fn start_with_features(test: &str, version: &str, features: &[&str], properties: &[&str]) -> Option<Self> {
        let options: Vec<&str> = features.iter().flat_map(|feature| ["--feature", feature]).collect();
        Self::start_with_options(test, version, &options, properties)
    }

    /// As [`RealKafka::start_with`], with options of `kafka-up`.
    ///
    /// # Panics
    /// As [`RealKafka::start`].
    #[must_use]
    pub fn start_with_options(test: &str, version: &str, options: &[&str], properties: &[&str]) -> Option<Self> {
        if !java::available(test) {
            return None;
        }
        // A free port may be taken between its choice and its use.
        let mut last = io::Error::other("never tried");
        for _ in 0..3 {
            match Self::try_start(version, options, properties) {
                Ok(kafka) => return Some(kafka),
                Err(e) => last = e,
            }
        }
        panic!("Kafka {version} did not start: {last}");
    }

    fn try_start(version: &str, options: &[&str], properties: &[&str]) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let [port, controller, more @ ..]: [u16; 2 + MORE_PORTS] = free_ports()?;
        let named = |p: &&str| {
            let first = p.replace("{port}", &port.to_string()).replace("{controller}", &controller.to_string());
            more.iter().enumerate().fold(first, |p, (n, port)| p.replace(&format!("{{more{n}}}"), &port.to_string()))
        };
        let properties: Vec<String> = properties.iter().map(named).collect();
        let node = Node { version, port, controller, dir: dir.path(), heap: None };
        let process = Process::first(&node, options, &properties)?;
        let kafka = Self { version: version.to_owned(), port, controller, more, process, dir };
        kafka.wait_until_ready()?;
        Ok(kafka)
    }

    /// `host:port` of the broker.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.address().to_string()
    }

    /// Address of the broker.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Port of the listener number `n` of those that the properties added.
    ///
    /// # Panics
    /// From 6 on.
    #[must_use]
    pub fn more(&self, n: usize) -> u16 {
        self.more[n]
    }

    /// Its release.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What it has logged: warnings and errors only.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("broker.log")).unwrap_or_default()
    }

    /// The files that hold the records of a partition, in offset order.
    ///
    /// # Panics
    /// If the broker's data cannot be read.
    #[must_use]
    pub fn log_files(&self, topic: &str, partition: i32) -> Vec<PathBuf> {
        let dir = self.dir.path().join("data").join(format!("{topic}-{partition}"));
        let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "log")).collect();
        files.sort();
        files
    }

    /// Whether its process is there.
    ///
    /// # Errors
    /// The system's.
    pub fn is_running(&self) -> io::Result<bool> {
        self.process.is_running()
    }

    /// From now on no write of it goes beyond `bytes` in any file, as on a disk that is full: until it is started again.
    ///
    /// # Errors
    /// There is no `prlimit` (of util-linux), or it refuses.
    pub fn limit_file_size(&self, bytes: u64) -> io::Result<()> {
        let arguments = [format!("--pid={}", self.pid()), format!("--fsize={bytes}:{bytes}")];
        let status = Command::new("prlimit").args(arguments).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("prlimit: {status}"))) }
    }

    /// Starts it again on its data, where it has ended or not, and waits until it answers.
    ///
    /// # Errors
    /// It does not come up.
    pub fn restart(&mut self) -> io::Result<()> {
        self.process.kill();
        self.process.wait();
        let (version, dir) = (self.version.as_str(), self.dir.path());
        let node = Node { version, port: self.port, controller: self.controller, dir, heap: None };
        self.process = Process::again(&node)?;
        self.wait_until_ready()
    }

    /// A command that runs one of the release's own tools, such as `org.apache.kafka.tools.TopicCommand`.
    #[must_use]
    pub fn tool(&self, main_class: &str) -> Command {
        let mut command = java::program();
        command.arg("-cp").arg(jars(&self.version).expect("a started release has its jars").join("*")).arg(main_class);
        command
    }

    fn wait_until_ready(&self) -> io::Result<()> {
        wait_until_ready(self.address(), READY_WITHIN).map_err(|e| io::Error::other(format!("{e}\n{}", self.log())))
    }
}

/// An open port does not mean an answering broker.
pub(crate) fn wait_until_ready(address: SocketAddr, within: Duration) -> io::Result<()> {
    let deadline = Instant::now() + within;
    loop {
        match api_versions(address) {
            Ok(answer) if answer.error_code.is_ok() => return Ok(()),
            result if Instant::now() > deadline => {
                let code = result.map(|answer: ApiVersionsResponse| answer.error_code);
                return Err(io::Error::other(format!("no ApiVersions from {address}: {code:?}")));
            }
            _ => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Asks a broker for its RPCs and features, with v3 of the request.
///
/// # Errors
/// A broker that does not answer within ten seconds, or not with a valid response.
pub fn api_versions(address: SocketAddr) -> io::Result<ApiVersionsResponse> {
    let timeout = Duration::from_secs(10);
    let mut socket = TcpStream::connect_timeout(&address, timeout)?;
    socket.set_read_timeout(Some(timeout))?;
    let name = Str::from_static("kafka-share-tests");
    let request = ApiVersionsRequest {
        client_software_name: name.clone(),
        client_software_version: Str::from_static("0"),
        ..ApiVersionsRequest::default()
    };
    let frame = encode_request(&request, 3, 1, &name).map_err(io::Error::other)?;
    socket.write_all(&frame.to_vec())?;
    let mut size = [0; 4];
    socket.read_exact(&mut size)?;
    let size = u32::from_be_bytes(size);
    if size > 1 << 20 {
        return Err(io::Error::other(format!("a response of {size} bytes")));
    }
    let mut body = vec![0; size as usize];
    socket.read_exact(&mut body)?;
    let decoded = decode_response::<ApiVersionsRequest>(Bytes::from(body), 3);
    decoded.map(|(_, response)| response).map_err(io::Error::other)
}

/// All at a time, so that they differ.
pub(crate) fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut listeners = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

/// The folder with a release's jars (broker, clients and tools), fetched once.
///
/// # Errors
/// `kafka-up` cannot fetch them.
pub fn jars(version: &str) -> io::Result<PathBuf> {
    let output = Command::new("bash")
        .arg(java::crate_dir().join("kafka/kafka-up"))
        .args(["--jars", version])
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}
