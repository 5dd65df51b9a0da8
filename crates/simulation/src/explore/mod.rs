//! An exhaustive search that keeps the graph, so that it can ask what stateright cannot: does an end stay within reach?
//!
//! stateright's `eventually` passes over a path that closes a cycle, and members that try again do close cycles. Here
//! every step is an edge, and after the search is done a backward search from the ends marks what can still reach one by
//! steps that are no faults. A state without the mark is one from which a fair run never ends: a deadlock or a livelock.
//! That every fair run ends then follows, because the graph is finite and a fair run takes each step that stays possible.

mod graph;
mod trace;

pub use trace::Trace;

use graph::Graph;
use stateright::{Model, Property};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::time::{Duration, Instant};

/// A model whose progress can be checked.
pub trait Checked: Model {
    /// Whether an action is a fault, or a step that a fair run need not take.
    fn is_fault(&self, state: &Self::State, action: &Self::Action) -> bool;
    /// Whether all is done.
    fn is_end(&self, state: &Self::State) -> bool;
    /// An action in words.
    fn describe(&self, state: &Self::State, action: &Self::Action) -> String;
    /// A state in one line.
    fn summary(&self, state: &Self::State) -> String;
}

/// How far a search goes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Different states; about 60 bytes each are kept, more at the search's front.
    pub states: usize,
}

/// What a search has found.
#[derive(Debug, Clone)]
pub struct Report {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: u64,
    /// Steps of the longest shortest path.
    pub depth: usize,
    /// States in which all is done.
    pub ends: usize,
    /// Whether every state was seen.
    pub complete: bool,
    /// The first broken property and the shortest way to it.
    pub broken: Option<(&'static str, Trace)>,
    /// States from which no end can be reached, and the shortest way to one.
    pub stuck: Option<(usize, Trace)>,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// Everything was seen, and nothing is wrong.
    pub fn holds(&self) -> bool {
        self.complete && self.broken.is_none() && self.stuck.is_none() && self.ends > 0
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { states, steps, depth, ends, took, .. } = self;
        write!(f, "{states} states, {steps} steps, depth {depth}, {ends} ends, {:.1} s", took.as_secs_f64())?;
        if !self.complete {
            write!(f, ", not all seen")?;
        }
        if let Some((name, trace)) = &self.broken {
            write!(f, "\nbroken: {name}\n{trace}")?;
        }
        if let Some((count, trace)) = &self.stuck {
            write!(f, "\n{count} states without a way to an end; the nearest:\n{trace}")?;
        }
        Ok(())
    }
}

/// Searches breadth first until a property breaks, everything is seen, or a limit is met. `progress` is called now and
/// then with the numbers of states seen and of states in waiting.
pub fn explore<M>(model: &M, limits: Limits, mut progress: impl FnMut(usize, usize)) -> Report
where
    M: Checked,
    M::State: Hash + Eq + Clone + Debug,
    M::Action: Debug + Clone,
{
    let started = Instant::now();
    let mut search = Search::new(model);
    let mut complete = true;
    while search.broken.is_none() && !search.front.is_empty() {
        if search.graph.len() >= limits.states {
            complete = false;
            break;
        }
        search.next_layer(limits.states, &mut progress);
    }
    let complete = complete && search.front.is_empty();
    let broken = search.broken.map(|(name, at)| (name, Trace::new(model, &search.graph.path(at))));
    let stuck = complete.then(|| search.graph.stuck()).flatten();
    let stuck = stuck.map(|(count, at)| (count, Trace::new(model, &search.graph.path(at))));
    Report {
        states: search.graph.len(),
        steps: search.steps,
        depth: search.depth,
        ends: search.graph.ends(),
        complete,
        broken,
        stuck,
        took: started.elapsed(),
    }
}

struct Search<'a, M: Checked> {
    model: &'a M,
    properties: Vec<Property<M>>,
    seen: HashMap<u64, u32, BuildHasherDefault<Identity>>,
    graph: Graph,
    /// States whose steps have not been taken, in the order in which they were found.
    front: Vec<(u32, M::State)>,
    broken: Option<(&'static str, u32)>,
    steps: u64,
    depth: usize,
}

impl<'a, M> Search<'a, M>
where
    M: Checked,
    M::State: Hash + Eq + Clone + Debug,
    M::Action: Debug + Clone,
{
    fn new(model: &'a M) -> Self {
        let mut search = Self {
            model,
            properties: model.properties(),
            seen: HashMap::default(),
            graph: Graph::default(),
            front: Vec::new(),
            broken: None,
            steps: 0,
            depth: 0,
        };
        for (at, state) in model.init_states().into_iter().enumerate() {
            search.find(state, None, at);
        }
        search
    }

    /// Takes every step of every state of the front.
    fn next_layer(&mut self, limit: usize, progress: &mut impl FnMut(usize, usize)) {
        let mut actions = Vec::new();
        let front = std::mem::take(&mut self.front);
        let waiting = front.len();
        for (done, (at, state)) in front.into_iter().enumerate() {
            if self.broken.is_some() || self.graph.len() >= limit {
                // What is left is not complete; the caller sees a front that is not empty.
                self.front.push((at, state));
                return;
            }
            self.model.actions(&state, &mut actions);
            self.graph.begin(at);
            for (index, action) in actions.drain(..).enumerate() {
                let fault = self.model.is_fault(&state, &action);
                if let Some(next) = self.model.next_state(&state, action) {
                    self.steps += 1;
                    let to = self.find(next, Some(at), index);
                    if !fault {
                        self.graph.edge(to);
                    }
                }
            }
            if done % 65_536 == 0 {
                progress(self.graph.len(), waiting - done);
            }
        }
        self.depth += usize::from(!self.front.is_empty());
    }

    fn find(&mut self, state: M::State, parent: Option<u32>, index: usize) -> u32 {
        // A hasher with fixed keys: the order of the search must not depend on the run.
        let hash = BuildHasherDefault::<Mix>::default().hash_one(&state);
        let vacant = match self.seen.entry(hash) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(vacant) => vacant,
        };
        let at = self.graph.add(parent, index, self.model.is_end(&state));
        vacant.insert(at);
        if self.broken.is_none()
            && let Some(property) = self.properties.iter().find(|p| !(p.condition)(self.model, &state))
        {
            self.broken = Some((property.name, at));
        }
        self.front.push((at, state));
        at
    }
}

/// For keys that are hashes already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are keys");
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// A fast hash of small fields: multiply and fold, 128 bits of state in 64.
#[derive(Default)]
struct Mix(u64);

impl Mix {
    fn add(&mut self, value: u64) {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        let wide = u128::from(self.0 ^ value ^ 0xD6E8_FEB8_6659_FD93) * u128::from(ODD);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64).rotate_left(29) ^ self.0.rotate_left(17);
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        let mut mixed = Self(self.0);
        mixed.add(0x5851_F42D_4C95_7F2D);
        mixed.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word) ^ (chunk.len() as u64) << 56);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.add(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.add(value as u64);
    }
}
