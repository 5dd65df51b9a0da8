//! Real Kafka brokers for tests, started by `kafka/kafka-up` on loopback and ended with the test.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_share_messages::frame::{decode_response, encode_request};
use kafka_share_messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_share_wire::Str;
use tempfile::TempDir;

use crate::java;

/// How long a started broker may take until it answers.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A one-node Kafka on a free loopback port. It is killed, and its data removed, when this is dropped.
#[derive(Debug)]
pub struct RealKafka {
    version: String,
    port: u16,
    pid: u32,
    dir: TempDir,
    /// Kills the broker once its input closes, so that no way for a test process to end leaves a broker behind.
    watchdog: Child,
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
    /// for the ports it gets.
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
        if !java::available(test) {
            return None;
        }
        // A free port may be taken between its choice and its use.
        let mut last = io::Error::other("never tried");
        for _ in 0..3 {
            match Self::try_start(version, features, properties) {
                Ok(kafka) => return Some(kafka),
                Err(e) => last = e,
            }
        }
        panic!("Kafka {version} did not start: {last}");
    }

    fn try_start(version: &str, features: &[&str], properties: &[&str]) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let (port, controller) = two_free_ports()?;
        let named = |p: &&str| p.replace("{port}", &port.to_string()).replace("{controller}", &controller.to_string());
        let properties: Vec<String> = properties.iter().map(named).collect();
        let pid = kafka_up(version, port, controller, dir.path(), features, &properties)?;
        let watchdog = watch(pid)?;
        let kafka = Self { version: version.to_owned(), port, pid, dir, watchdog };
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

    /// Its release.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it has logged: warnings and errors only.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("broker.log")).unwrap_or_default()
    }

    /// A command that runs one of the release's own tools, such as `org.apache.kafka.tools.TopicCommand`.
    #[must_use]
    pub fn tool(&self, main_class: &str) -> Command {
        let mut command = Command::new("java");
        command.arg("-cp").arg(jars(&self.version).expect("a started release has its jars").join("*")).arg(main_class);
        command
    }

    /// An open port does not mean an answering broker.
    fn wait_until_ready(&self) -> io::Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            match api_versions(self.address()) {
                Ok(answer) if answer.error_code.is_ok() => return Ok(()),
                result if Instant::now() > deadline => {
                    let code = result.map(|answer: ApiVersionsResponse| answer.error_code);
                    return Err(io::Error::other(format!("no ApiVersions: {code:?}\n{}", self.log())));
                }
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

impl Drop for RealKafka {
    fn drop(&mut self) {
        // Its data goes away with it, so there is nothing that a gentle end would save.
        drop(self.watchdog.stdin.take());
        self.watchdog.wait().ok();
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

fn kafka_up(
    version: &str,
    port: u16,
    controller: u16,
    dir: &Path,
    features: &[&str],
    properties: &[String],
) -> io::Result<u32> {
    // The broker inherits the script's error output, so a pipe would stay open as long as the broker lives.
    let errors = dir.join("kafka-up.err");
    let output = Command::new("bash")
        .arg(java::crate_dir().join("kafka/kafka-up"))
        .args([version, &port.to_string()])
        .arg(dir)
        .args(features.iter().flat_map(|feature| ["--feature", feature]))
        .args(properties)
        .env("KAFKA_CONTROLLER_PORT", controller.to_string())
        .stdin(Stdio::null())
        .stderr(File::create(&errors)?)
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    match printed.trim().parse() {
        Ok(pid) if output.status.success() => Ok(pid),
        _ => Err(io::Error::other(std::fs::read_to_string(errors)?)),
    }
}

fn watch(pid: u32) -> io::Result<Child> {
    let script = format!("cat > /dev/null; kill -9 {pid}; while kill -0 {pid} 2> /dev/null; do sleep 0.05; done");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // In a group of its own it outlives a Ctrl-C in the terminal, to do its work afterwards.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

fn two_free_ports() -> io::Result<(u16, u16)> {
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let second = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok((first.local_addr()?.port(), second.local_addr()?.port()))
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
