//! The program that records go through: lines in, as many lines out, and its death.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A longer answer fits no request.
const MAX_LINE: u64 = 64 << 20;

/// A program and how it is asked.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Its name and arguments.
    pub(super) words: Vec<String>,
    /// Whether it is started for each batch and hears its end, or once for all.
    pub(super) per_batch: bool,
}

/// Why it did not answer as it must.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// It cannot be started at all.
    #[error("{0:?} does not start: {1}")]
    Start(String, io::Error),
    /// It ended, by itself or by somebody else's hand.
    #[error("{name:?} ended ({status}) after {lines} of {expected} lines")]
    Ended { name: String, status: String, lines: usize, expected: usize },
    /// It said more than it was asked for.
    #[error("{0:?} wrote more lines than it read: it must answer each line with one")]
    TooMany(String),
    #[error("{0:?} wrote a line of more than {MAX_LINE} bytes")]
    TooLong(String),
}

/// A program that runs.
#[derive(Debug)]
pub(super) struct Running {
    program: Program,
    child: Option<(Child, Option<ChildStdin>, BufReader<ChildStdout>)>,
}

impl Running {
    /// Nothing is started before the first batch.
    pub(super) fn new(program: Program) -> Self {
        Running { program, child: None }
    }

    fn name(&self) -> String {
        self.program.words.first().cloned().unwrap_or_default()
    }

    fn start(&mut self) -> Result<(), Unanswered> {
        if self.child.is_some() {
            return Ok(());
        }
        let mut command = Command::new(self.name());
        command.args(&self.program.words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C is for us: what is under way is ended first.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| Unanswered::Start(self.name(), error))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output =
            output.ok_or_else(|| Unanswered::Start(self.name(), io::Error::other("it has no standard output")))?;
        self.child = Some((child, input, BufReader::with_capacity(1 << 16, output)));
        Ok(())
    }

    /// Gives it lines and waits for as many. After an error, and after a call that was dropped, the next one starts it
    /// anew: what it still has to say would be taken for the answers to other lines.
    pub(super) async fn exchange(&mut self, lines: &[u8], count: usize) -> Result<Vec<Vec<u8>>, Unanswered> {
        let name = self.name();
        if let Some((_, _, output)) = &mut self.child {
            // Looked at, not waited for: what came since the last batch is the answer to nothing.
            let early = tokio::time::timeout(Duration::ZERO, output.fill_buf()).await.map(|read| read.map(<[u8]>::len));
            match early {
                Err(_) => {}
                Ok(Ok(1..)) => {
                    self.child = None;
                    return Err(Unanswered::TooMany(name));
                }
                // It has ended with nothing under way.
                Ok(Ok(0) | Err(_)) => self.child = None,
            }
        }
        self.start()?;
        // Put back only where all is in step.
        let Some((mut child, mut input, mut output)) = self.child.take() else { return Ok(Vec::new()) };
        let per_batch = self.program.per_batch;
        // Both at once: a program may answer before it has read all, and waits where nobody reads its answers.
        let writing = async {
            if let Some(open) = &mut input {
                // That it does not read shows in its answers.
                let _ = open.write_all(lines).await;
                let _ = open.flush().await;
            }
            if per_batch {
                input = None;
            }
        };
        let ((), answers) = tokio::join!(writing, read_lines(&mut output, &name, count));
        let answers = answers?;
        if answers.len() < count {
            let status = end_of(&mut child).await;
            return Err(Unanswered::Ended { name, status, lines: answers.len(), expected: count });
        }
        if per_batch {
            if !read_lines(&mut output, &name, 1).await?.is_empty() {
                return Err(Unanswered::TooMany(name));
            }
            let status = child.wait().await;
            if !status.as_ref().is_ok_and(ExitStatus::success) {
                let status = status.map_or_else(|e| e.to_string(), |s| s.to_string());
                return Err(Unanswered::Ended { name, status, lines: answers.len(), expected: count });
            }
        } else if output.buffer().is_empty() {
            self.child = Some((child, input, output));
        } else {
            return Err(Unanswered::TooMany(name));
        }
        Ok(answers)
    }
}

/// Up to `count` lines; fewer at the end of the output.
async fn read_lines(output: &mut BufReader<ChildStdout>, name: &str, count: usize) -> Result<Vec<Vec<u8>>, Unanswered> {
    let mut lines = Vec::new();
    while lines.len() < count {
        let mut line = Vec::new();
        let read = output.take(MAX_LINE).read_until(b'\n', &mut line).await;
        if line.len() as u64 >= MAX_LINE {
            return Err(Unanswered::TooLong(name.to_owned()));
        }
        // A line that was begun and not ended is no answer.
        if read.is_err() || line.pop() != Some(b'\n') {
            break;
        }
        lines.push(line);
    }
    Ok(lines)
}

/// How it ended; a program that has only closed its output is ended.
async fn end_of(child: &mut Child) -> String {
    let soon = tokio::time::timeout(Duration::from_secs(1), child.wait());
    match soon.await {
        Ok(Ok(status)) => status.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => {
            let _ = child.kill().await;
            "it closed its output".into()
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn running(words: &[&str], per_batch: bool) -> Running {
        Running::new(Program { words: words.iter().map(|w| (*w).to_owned()).collect(), per_batch })
    }

    #[tokio::test]
    async fn a_program_lives_on_from_batch_to_batch_or_not() {
        for per_batch in [false, true] {
            let mut shell = running(&["sh", "-c", "while read -r line; do echo \"$$ $line\"; done"], per_batch);
            let first = shell.exchange(b"a\nb\n", 2).await.unwrap();
            let second = shell.exchange(b"c\n", 1).await.unwrap();
            let pid = |line: &Vec<u8>| line.split(|b| *b == b' ').next().unwrap().to_vec();
            assert!(first[1].ends_with(b" b") && second[0].ends_with(b" c"));
            assert_eq!(pid(&first[0]), pid(&first[1]));
            assert_eq!(pid(&first[0]) == pid(&second[0]), !per_batch);
        }
    }

    #[tokio::test]
    async fn more_than_pipes_hold_goes_through_both_ways() {
        let mut cat = running(&["cat"], false);
        let line = vec![b'x'; 1000];
        let lines: Vec<u8> = (0..2000).flat_map(|_| [&line[..], b"\n"].concat()).collect();
        let answers = cat.exchange(&lines, 2000).await.unwrap();
        assert!(answers.len() == 2000 && answers.iter().all(|a| *a == line));
    }

    #[tokio::test]
    async fn what_ends_in_the_middle_is_told_and_started_again() {
        let mut shell = running(&["sh", "-c", "read -r line; echo $line; printf half; exit 3"], false);
        for _ in 0..2 {
            match shell.exchange(b"a\nb\n", 2).await {
                Err(Unanswered::Ended { lines: 1, expected: 2, status, .. }) => {
                    assert!(status.contains('3'), "{status}")
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_line_that_comes_late_is_no_answer_to_the_next_batch() {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        let script =
            "while read -r line; do echo \"$line\"; (until [ -e \"$0\" ]; do sleep 0.01; done; echo stray) & done";
        let mut late = running(&["sh", "-c", script, go.to_str().unwrap()], false);
        assert_eq!(late.exchange(b"a\n", 1).await.unwrap(), [b"a"]);
        std::fs::write(&go, "").unwrap();
        let (.., output) = late.child.as_mut().unwrap();
        assert_eq!(output.fill_buf().await.unwrap(), b"stray\n");
        assert!(matches!(late.exchange(b"b\n", 1).await, Err(Unanswered::TooMany(_))));
        // One that ended meanwhile is started anew.
        let mut once = running(&["sh", "-c", "read -r line; echo \"$line\""], false);
        for line in [b"a\n", b"b\n"] {
            assert_eq!(once.exchange(line, 1).await.unwrap(), [line[..1].to_vec()]);
            let (child, ..) = once.child.as_mut().unwrap();
            child.wait().await.unwrap();
        }
    }

    #[tokio::test]
    async fn programs_that_say_too_much_fail_or_do_not_start_are_told() {
        let mut chatty = running(&["sh", "-c", "while read -r line; do echo 1; echo 2; done"], true);
        assert!(matches!(chatty.exchange(b"a\n", 1).await, Err(Unanswered::TooMany(_))));
        let mut failing = running(&["sh", "-c", "cat; exit 1"], true);
        assert!(matches!(failing.exchange(b"a\n", 1).await, Err(Unanswered::Ended { .. })));
        let mut missing = running(&["no-such-program-here"], false);
        assert!(matches!(missing.exchange(b"a\n", 1).await, Err(Unanswered::Start(..))));
    }
}
