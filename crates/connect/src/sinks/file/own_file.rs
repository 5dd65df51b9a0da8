//! The file of a task: nobody else's, and with nothing in it but what the sink has written.

use serde_json::Value;
use std::fs::TryLockError;
use std::io::{self, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

/// How long a lock is waited for: a task that was cut off may have a write under way when the next one starts.
const WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
/// How much is read at a time.
const STEP: u64 = 64 << 10;
/// A first line that is longer is not looked at as a whole.
const LONGEST: u64 = 16 << 20;

/// Names in a line, and in their order what every line begins with.
pub(super) const NAMES: [&str; 7] = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"];
const BEGIN: &[u8] = b"{\"topic\":\"";

/// Why a file is not written to.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(
        "another task, connector or program writes to it and holds its lock: give each connector a file of its own, and run \
         each connector in one worker only"
    )]
    Locked,
    #[error("{0} is not what this sink writes: name a file that does not exist yet, or move this one away")]
    Foreign(&'static str),
}

/// Opens a file to append to, and locks it; half a line at its end is cut off.
pub(super) async fn open(path: &Path) -> Result<File, Refusal> {
    loop {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path).await?;
        // Pipes and devices have no end to look at, and whoever reads a device may share it.
        if file.metadata().await?.is_file() {
            file = lock(file).await?;
            if !is_at(&file, path).await? {
                // Who held the lock has moved it away meanwhile, and goes on with another of this name.
                continue;
            }
            mend_end(&mut file).await?;
        }
        return Ok(file);
    }
}

#[cfg(unix)]
async fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let own = file.metadata().await?;
    match tokio::fs::metadata(path).await {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
async fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    // A file that is open is not moved there.
    Ok(true)
}

async fn lock(file: File) -> Result<File, Refusal> {
    let file = file.into_std().await;
    let until = Instant::now() + WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(File::from_std(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            Err(TryLockError::WouldBlock) => return Err(Refusal::Locked),
            // Some file systems have no locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                tracing::warn!(%error, "the file cannot be locked: nothing keeps a second writer from it");
                return Ok(File::from_std(file));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}

/// Cuts off half a line at the end, which a process left that died while it wrote: none of its records was acknowledged. A
/// whole line that lacks its end gets it.
async fn mend_end(file: &mut File) -> Result<(), Refusal> {
    let len = file.metadata().await?.len();
    check_first(file, len).await?;
    let (tail, whole) = read_tail(file, len).await?;
    if whole.is_some_and(|line| !is_line(&line)) {
        return Err(Refusal::Foreign("its last whole line"));
    }
    if tail.is_empty() {
        return Ok(());
    }
    if is_line(&tail) {
        file.write_all(b"\n").await?;
        return Ok(file.flush().await?);
    }
    if !is_torn(&tail) {
        return Err(Refusal::Foreign("its end"));
    }
    tracing::warn!(bytes = tail.len(), "half a line at the end of the file is cut off");
    Ok(file.set_len(len - tail.len() as u64).await?)
}

/// The first line, where it is whole.
async fn check_first(file: &mut File, len: u64) -> Result<(), Refusal> {
    file.seek(SeekFrom::Start(0)).await?;
    let mut first = Vec::new();
    while (first.len() as u64) < len.min(LONGEST) {
        let mut part = vec![0; usize::try_from(STEP.min(len - first.len() as u64)).unwrap_or(0)];
        file.read_exact(&mut part).await?;
        let end = part.iter().position(|b| *b == b'\n');
        first.extend_from_slice(&part[..end.unwrap_or(part.len())]);
        if end.is_some() {
            return if is_line(&first) { Ok(()) } else { Err(Refusal::Foreign("its first line")) };
        }
    }
    // All of it is the end, which is looked at next; or it is too long, and begins at least as it must.
    if first.is_empty() || is_torn(&first) { Ok(()) } else { Err(Refusal::Foreign("its beginning")) }
}

/// What is behind the last end of a line, and the line before that.
async fn read_tail(file: &mut File, len: u64) -> io::Result<(Vec<u8>, Option<Vec<u8>>)> {
    let (mut read, mut start) = (Vec::new(), len);
    while start > 0 && read.iter().filter(|b| **b == b'\n').count() < 2 && len - start < LONGEST {
        let from = start.saturating_sub(STEP);
        let mut part = vec![0; usize::try_from(start - from).unwrap_or(0)];
        file.seek(SeekFrom::Start(from)).await?;
        file.read_exact(&mut part).await?;
        part.append(&mut read);
        (read, start) = (part, from);
    }
    let Some(last) = read.iter().rposition(|b| *b == b'\n') else { return Ok((read, None)) };
    let before = read[..last].iter().rposition(|b| *b == b'\n');
    let line = match before {
        Some(at) => Some(read[at + 1..last].to_vec()),
        None if start == 0 => Some(read[..last].to_vec()),
        // Too long to be looked at.
        None => None,
    };
    Ok((read.split_off(last + 1), line))
}

fn is_line(line: &[u8]) -> bool {
    let Ok(Value::Object(line)) = serde_json::from_slice(line) else { return false };
    line.len() == NAMES.len() && NAMES.iter().all(|name| line.contains_key(*name))
}

/// Whether it may be the beginning of a line. A machine that lost its power may have left zeros for what was not written.
fn is_torn(text: &[u8]) -> bool {
    let written = text.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    let text = &text[..written];
    if text.len() < BEGIN.len() { BEGIN.starts_with(text) } else { text.starts_with(BEGIN) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"topic":"t","partition":0,"offset":0,"timestamp":0,"key":null,"value":1,"headers":[]}"#;

    async fn opened(text: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, text).unwrap();
        let result = open(&path).await.map_err(|error| error.to_string());
        let left = std::fs::read_to_string(&path).unwrap();
        match result {
            Ok(_) => Ok(left),
            Err(error) => {
                assert_eq!(left, text, "what is refused is not touched");
                Err(error)
            }
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_that_was_moved_away_while_its_lock_was_waited_for_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("f"), folder.path().join("f.000001"));
        let first = open(&path).await.unwrap();
        let mut waiting = Box::pin(open(&path));
        // It has the old file open, and waits for its lock.
        let early = tokio::time::timeout(2 * PAUSE, &mut waiting).await;
        assert!(early.is_err(), "there is a lock");
        std::fs::rename(&path, &moved).unwrap();
        drop(first);
        let second = waiting.await.unwrap();
        assert!(is_at(&second, &path).await.unwrap());
    }

    #[tokio::test]
    async fn half_a_line_is_cut_off_and_a_whole_one_gets_its_end() {
        let long = LINE.replace(":1,", &format!(":\"{}\",", "x".repeat(200_000)));
        for (text, left) in [
            (String::new(), String::new()),
            ("{\"to".into(), String::new()),
            (LINE.into(), format!("{LINE}\n")),
            (format!("{LINE}\n"), format!("{LINE}\n")),
            (format!("{LINE}\n{}", &LINE[..20]), format!("{LINE}\n")),
            (format!("{LINE}\n{}\0\0\0", &LINE[..20]), format!("{LINE}\n")),
            (format!("{LINE}\n{}", &long[..199_999]), format!("{LINE}\n")),
            (format!("{long}\n{LINE}\n{long}"), format!("{long}\n{LINE}\n{long}\n")),
            (format!("{long}\n{long}\n{{"), format!("{long}\n{long}\n")),
        ] {
            assert_eq!(opened(&text).await.as_deref(), Ok(left.as_str()), "{:.80}", text);
        }
    }

    #[tokio::test]
    async fn what_others_have_written_is_refused_and_not_touched() {
        for (text, what) in [
            ("my notes, without an end of the line", "its beginning"),
            ("my notes\n", "its first line"),
            ("{\"a\":1}\n", "its first line"),
            ("{\"a\":1}", "its beginning"),
            (&format!("{LINE}\nmy notes\n"), "its last whole line"),
            (&format!("{LINE}\nmy notes"), "its end"),
            (&format!("my notes\n{LINE}\n"), "its first line"),
        ] {
            let error = opened(text).await.unwrap_err();
            assert!(error.starts_with(what) && error.contains("move this one away"), "{text}: {error}");
        }
    }

    #[tokio::test]
    async fn a_file_has_one_writer_and_the_next_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let first = open(&path).await.unwrap();
        let second = open(&path).await.unwrap_err();
        assert!(matches!(second, Refusal::Locked), "{second}");
        let third = tokio::spawn({
            let path = path.clone();
            async move { open(&path).await.map(drop) }
        });
        drop(first);
        third.await.unwrap().unwrap();
    }
}
