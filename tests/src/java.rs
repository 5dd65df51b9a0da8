//! Builds and runs the Java programs under `java/`, or reports by name the tests that lack Java or Maven.
//!
//! A missing Java or Maven skips a test. `KAFKA_SHARE_REQUIRE_JAVA=1`, which CI sets, makes it a failure.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Environment variable that turns a skip into a failure when it is `1`.
pub const REQUIRE_JAVA: &str = "KAFKA_SHARE_REQUIRE_JAVA";

/// A built Java program of `tests/java/`.
#[derive(Debug, Clone)]
pub struct JavaProject {
    dir: PathBuf,
}

impl JavaProject {
    /// Builds `java/NAME` unless it is up to date.
    ///
    /// # Panics
    /// If the build fails; [`available`] says beforehand whether Java and Maven are there.
    #[must_use]
    pub fn build(name: &str) -> Self {
        let dir = crate_dir().join("java").join(name);
        build_once(&dir).unwrap_or_else(|e| panic!("cannot build {}: {e}", dir.display()));
        Self { dir }
    }

    /// A command that runs a main class of the program with the libraries it was built with; add its arguments.
    #[must_use]
    pub fn command(&self, main_class: &str) -> Command {
        self.command_with(&self.dir.join("target/lib"), main_class)
    }

    /// As [`JavaProject::command`], with the jars of another folder, such as those of an older Kafka.
    #[must_use]
    pub fn command_with(&self, libraries: &Path, main_class: &str) -> Command {
        let separator = if cfg!(windows) { ";" } else { ":" };
        let classes = self.dir.join("target/classes");
        let mut command = program();
        command.arg("-cp").arg(format!("{}{separator}{}", classes.display(), libraries.join("*").display()));
        command.arg(main_class);
        command
    }

    /// Runs a main class to its end.
    ///
    /// # Panics
    /// If it exits with another code than 0; its error output is in the message.
    pub fn run<A: AsRef<OsStr>>(&self, main_class: &str, args: impl IntoIterator<Item = A>) {
        succeed(self.command(main_class).args(args));
    }
}

/// The Java virtual machine, set up for short programs: most of their time goes into its start.
#[must_use]
pub fn program() -> Command {
    let mut command = Command::new("java");
    command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
    command
}

/// Runs a command to its end and returns what it printed.
///
/// # Panics
/// If it exits with another code than 0; its error output is in the message.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("java starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether Java and Maven can be run; if not, reports `test` as skipped.
///
/// # Panics
/// If one is missing and [`REQUIRE_JAVA`] is set.
#[must_use]
pub fn available(test: &str) -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    if *AVAILABLE.get_or_init(|| runs("java", "-version") && runs("mvn", "-version")) {
        return true;
    }
    assert!(
        std::env::var_os(REQUIRE_JAVA).is_none_or(|v| v != "1"),
        "{test} needs Java and Maven, and {REQUIRE_JAVA} forbids to skip it"
    );
    // Written past the test harness, which hides the output of passing tests.
    writeln!(io::stderr(), "SKIPPED: {test} (Java or Maven missing)").ok();
    false
}

/// The folder of this crate.
#[must_use]
pub fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn runs(program: &str, arg: &str) -> bool {
    Command::new(program)
        .arg(arg)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Test processes may run side by side: a lock file serialises them, a stamp of the sources spares all but the first.
fn build_once(dir: &Path) -> io::Result<()> {
    let target = dir.join("target");
    fs::create_dir_all(&target)?;
    let lock = File::create(target.join("build.lock"))?;
    lock.lock()?;
    let stamp = target.join("build.stamp");
    let sources = fingerprint(dir)?;
    if fs::read_to_string(&stamp).is_ok_and(|built| built == sources) {
        return Ok(());
    }
    let output = Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(dir.join("pom.xml"))
        .arg("compile")
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let report = String::from_utf8_lossy(&output.stdout);
        return Err(io::Error::other(report.into_owned()));
    }
    fs::write(stamp, sources)
}

fn fingerprint(dir: &Path) -> io::Result<String> {
    let mut files = vec![dir.join("pom.xml")];
    collect(&dir.join("src"), &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in &files {
        file.hash(&mut hasher);
        fs::read(file)?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
