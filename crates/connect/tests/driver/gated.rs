//! A sink whose puts wait until they are let go.

use crate::common::text;
use async_trait::async_trait;
use kafka_share_connect::{ConnectError, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Which puts wait: of a task, with these records.
type Waits = dyn Fn(usize, &[SinkRecord]) -> bool + Send + Sync;

#[derive(Clone)]
pub(crate) struct Gated {
    waits: Arc<Waits>,
    open: Arc<watch::Sender<bool>>,
    /// Tasks that are in a put.
    pub(crate) inside: Arc<watch::Sender<Vec<usize>>>,
    /// Task and value of each record whose put has ended.
    pub(crate) done: Arc<Mutex<Vec<(usize, String)>>>,
    pub(crate) flushes: Arc<watch::Sender<Vec<usize>>>,
}

impl Gated {
    pub(crate) fn new(waits: impl Fn(usize, &[SinkRecord]) -> bool + Send + Sync + 'static) -> Self {
        Gated {
            waits: Arc::new(waits),
            open: Arc::new(watch::Sender::new(false)),
            inside: Arc::default(),
            done: Arc::default(),
            flushes: Arc::default(),
        }
    }

    /// Lets all go on, now and later.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) fn boxed(&self) -> Box<dyn SinkConnector> {
        Box::new(self.clone())
    }

    pub(crate) fn stored(&self) -> Vec<String> {
        let mut all: Vec<String> = self.done.lock().expect("done").iter().map(|(_, value)| value.clone()).collect();
        all.sort();
        all
    }
}

impl SinkConnector for Gated {
    fn start(&mut self, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(GatedTask { of: self.clone(), task: 0 })
    }
}

struct GatedTask {
    of: Gated,
    task: usize,
}

/// A task in a put, which it may leave by being cancelled.
struct Inside<'a>(&'a watch::Sender<Vec<usize>>, usize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|tasks| {
            let at = tasks.iter().position(|t| *t == self.1).expect("it is inside");
            tasks.swap_remove(at);
        });
    }
}

#[async_trait]
impl SinkTask for GatedTask {
    fn version(&self) -> &str {
        "1"
    }

    async fn start(&mut self, context: SinkTaskContext, _properties: &Properties) -> Result<(), ConnectError> {
        self.task = context.task();
        Ok(())
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
        self.of.inside.send_modify(|tasks| tasks.push(self.task));
        let inside = Inside(&self.of.inside, self.task);
        if (self.of.waits)(self.task, records) {
            let _ = self.of.open.subscribe().wait_for(|open| *open).await;
        }
        drop(inside);
        self.of.done.lock().expect("done").extend(records.iter().map(|r| (self.task, text(&r.value))));
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectError> {
        self.of.flushes.send_modify(|tasks| tasks.push(self.task));
        Ok(())
    }
}
