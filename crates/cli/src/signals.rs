//! Ctrl-C and SIGTERM.

use crate::exit::Failure;
use tokio::sync::watch;

/// What ends a command from outside.
#[cfg(unix)]
pub(crate) struct Signals(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error| Failure::new(format!("signals cannot be waited for: {error}"));
        let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        Ok(Signals(interrupt, signal(SignalKind::terminate()).map_err(failed)?))
    }

    /// Waits for one of them.
    pub(crate) async fn any(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Signals)
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn any(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Whether the command was asked to end. The first signal asks; the second one ends the process where it stands, for
/// instance in a write to a pipe that nobody reads.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Starts to listen.
    pub(crate) fn new() -> Result<Self, Failure> {
        let mut signals = Signals::new()?;
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            signals.any().await;
            let _ = sender.send(true);
            signals.any().await;
            std::process::exit(1);
        });
        Ok(Interrupt(receiver))
    }

    /// Whether it has come.
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for it.
    pub(crate) async fn wait(&mut self) {
        if self.0.wait_for(|set| *set).await.is_err() {
            std::future::pending().await
        }
    }
}
