//! Tasks as processes, killed and stopped by signal: at points that they tell, and at any moment.

use super::Plan;
use super::chaos::{ABORTED, AGAIN, DONE, Dice, HERE, MET, SOON, Strike};
use super::engine::Engine;
use super::input;
use super::member::MemberArgs;
use super::state::Progress;
use super::verify::Follower;
use crate::cluster_args::ClusterArgs;
use crate::exit::Failure;
use indicatif::ProgressBar;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinSet;

/// How often the output is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Input records that may be ahead of the output, in a run with a duration.
const AHEAD: usize = 4_000;
/// Input records that are added at a time.
const PORTION: usize = 500;
/// Stops, one of so many of which is longer than a ledger takes to forget and to be compacted: of those right after a poll,
/// and of the others.
const LONG_STOPS: (u64, u64) = (3, 25);
const LONG_STOP: Duration = Duration::from_secs(25);

/// What the supervisors share.
struct Shared {
    plan: Plan,
    words: ClusterArgs,
    progress: Arc<Progress>,
    lock: Duration,
    lives: AtomicU64,
    /// Transactional ids that were ever used.
    ids: Mutex<Vec<String>>,
    last_words: Mutex<Option<String>>,
}

/// Runs the members until all input is in the output; answers the transactional ids that were used.
pub(super) async fn run(
    engine: &Engine,
    (plan, words): (&Plan, &ClusterArgs),
    progress: &Arc<Progress>,
    (lock, lines, duration): (Duration, &[String], Option<Duration>),
    bar: &ProgressBar,
) -> Result<Vec<String>, Failure> {
    let shared = Arc::new(Shared {
        plan: plan.clone(),
        words: words.clone(),
        progress: Arc::clone(progress),
        lock,
        lives: AtomicU64::new(0),
        ids: Mutex::default(),
        last_words: Mutex::default(),
    });
    let mut members = JoinSet::new();
    for number in 0..plan.tasks {
        members.spawn(supervise(Arc::clone(&shared), number));
    }
    let ends = duration.map(|time| Instant::now() + time);
    let mut follower = Follower::new(plan.partitions);
    let result = loop {
        tokio::time::sleep(LOOK).await;
        // A broker may be away for a while; what counts is the end.
        if let Err(failure) = follower.follow(engine, plan, progress).await {
            tracing::info!(?failure, "the output cannot be read at the moment");
        }
        let more = ends.is_some_and(|ends| Instant::now() < ends);
        if more && progress.total() - progress.committed() < AHEAD {
            let first = progress.total();
            // Said first: a member may be faster than this.
            progress.add(PORTION);
            if let Err(failure) = input::load_from(engine, plan, lines, first, PORTION).await {
                break Err(failure);
            }
        }
        bar.set_length(progress.total() as u64);
        bar.set_position(progress.committed() as u64);
        let (kills, stops) = (progress.kills.load(Ordering::Relaxed), progress.stops.load(Ordering::Relaxed));
        bar.set_message(format!("{kills} killed, {stops} stopped"));
        if (progress.is_complete() && !more) || Instant::now() >= plan.deadline {
            break Ok(());
        }
    };
    progress.stop();
    // Dropped with their processes.
    members.shutdown().await;
    let last = shared.last_words.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(words) = last.filter(|_| !progress.is_complete()) {
        tracing::warn!(words, "the last words of a member");
    }
    result?;
    Ok(shared.ids.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Keeps a member alive by starting it anew.
async fn supervise(shared: Arc<Shared>, number: u16) {
    let mut dice = Dice::new(shared.plan.seed, 7_000_003 + u64::from(number));
    loop {
        let life = shared.lives.fetch_add(1, Ordering::Relaxed);
        // Some ids stay, so that the next life ends what the one before left open; the others' remains are ended by those
        // who wait for them.
        let id = match number % 2 {
            0 => shared.plan.transactional_id(number),
            _ => format!("{}-{life}", shared.plan.transactional_id(number)),
        };
        {
            let mut ids = shared.ids.lock().unwrap_or_else(PoisonError::into_inner);
            if !ids.contains(&id) {
                ids.push(id.clone());
            }
        }
        match live(&shared, &id, life, &mut dice).await {
            Ok(true) => drop(shared.progress.kills.fetch_add(1, Ordering::Relaxed)),
            Ok(false) => drop(shared.progress.deaths.fetch_add(1, Ordering::Relaxed)),
            Err(error) => {
                tracing::error!(%error, "a member does not start");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// One process from its start to its end; whether it was killed by this one.
async fn live(shared: &Shared, id: &str, life: u64, dice: &mut Dice) -> std::io::Result<bool> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(MemberArgs::words(&shared.words, &shared.plan, id, shared.lock, 9_000_011 + life));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // Ctrl-C is for the parent, whose end is theirs.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut input), Some(output), Some(errors)) = (input, output, errors) else {
        return Err(std::io::Error::other("a process without pipes"));
    };
    let (mut lines, mut errors) = (BufReader::new(output).lines(), BufReader::new(errors).lines());
    let mut moment = Box::pin(tokio::time::sleep(Duration::from_millis(500 + dice.below(12_000))));
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { break };
                let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
                let after_poll = rest == format!("{:?}", Strike::AfterPoll);
                let killed = match word {
                    HERE => strike(shared, &mut child, (Some(&mut input), after_poll), dice).await?,
                    SOON => {
                        tokio::time::sleep(Duration::from_micros(dice.below(4_000))).await;
                        strike(shared, &mut child, (None, false), dice).await?
                    }
                    _ => {
                        count(shared, &line);
                        false
                    }
                };
                if killed {
                    return Ok(true);
                }
            }
            error = errors.next_line() => {
                if let Ok(Some(error)) = error {
                    tracing::debug!(life, error, "a member");
                    *shared.last_words.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
            () = &mut moment => {
                moment.as_mut().reset(tokio::time::Instant::now() + Duration::from_millis(500 + dice.below(12_000)));
                if strike(shared, &mut child, (None, false), dice).await? {
                    return Ok(true);
                }
            }
        }
    }
    child.wait().await?;
    // Errors are told in the order that they come, and the last may be on its way.
    while let Ok(Some(error)) = errors.next_line().await {
        tracing::info!(life, error, "a member has ended");
        *shared.last_words.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
    Ok(false)
}

fn count(shared: &Shared, line: &str) {
    let mut words = line.split(' ');
    let word = words.next();
    let mut number = || words.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    let progress = &shared.progress;
    match word {
        Some(DONE) => {
            progress.commits.fetch_add(number(), Ordering::Relaxed);
            progress.redelivered.fetch_add(number(), Ordering::Relaxed);
        }
        Some(AGAIN) => {
            let (partition, offset, count) = (number(), number(), number());
            if let (Ok(p), Ok(o), Ok(n)) = (i32::try_from(partition), i64::try_from(offset), i16::try_from(count)) {
                progress.note_often((p, o), n);
            }
        }
        Some(MET) => {
            for counter in [&progress.fences, &progress.ledger_restarts, &progress.done_elsewhere] {
                counter.fetch_add(number(), Ordering::Relaxed);
            }
        }
        Some(ABORTED) => drop(progress.aborts.fetch_add(number(), Ordering::Relaxed)),
        _ => {}
    }
}

/// Kills the process, or stops it for longer than its locks hold and lets it go on. Answers whether it was killed.
async fn strike(
    shared: &Shared,
    child: &mut Child,
    (waiting, after_poll): (Option<&mut ChildStdin>, bool),
    dice: &mut Dice,
) -> std::io::Result<bool> {
    let progress = &shared.progress;
    progress.chaos.fetch_add(1, Ordering::Relaxed);
    if dice.one_in(2) {
        child.kill().await?;
        return Ok(true);
    }
    let Some(pid) = child.id() else { return Ok(false) };
    signal(pid, "STOP").await?;
    let long = dice.one_in(if after_poll { LONG_STOPS.0 } else { LONG_STOPS.1 });
    let pause = match long {
        true => shared.lock.max(LONG_STOP),
        false => shared.lock + shared.lock.mul_f64(0.1 + dice.below(100) as f64 / 200.0),
    };
    tokio::time::sleep(pause).await;
    signal(pid, "CONT").await?;
    progress.stops.fetch_add(1, Ordering::Relaxed);
    progress.long_stops.fetch_add(u64::from(long), Ordering::Relaxed);
    progress.long_stops_after_poll.fetch_add(u64::from(long && after_poll), Ordering::Relaxed);
    if let Some(input) = waiting {
        // It may have been ended by something else.
        let _ = input.write_all(b"\n").await;
    }
    Ok(false)
}

/// Sends a signal to a process that this one has started and not waited for yet, so that its id is its own.
async fn signal(pid: u32, name: &str) -> std::io::Result<()> {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().await?;
    match status.success() {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("kill -{name} {pid}: {status}"))),
    }
}
