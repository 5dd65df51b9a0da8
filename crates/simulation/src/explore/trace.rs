//! A way through a model, in words.

use super::Checked;

/// The steps from an initial state, each with the state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// What happened, in words.
    pub steps: Vec<String>,
    /// The state after each step.
    pub states: Vec<String>,
}

impl Trace {
    /// Takes the steps again that a search has noted by their indices.
    pub(super) fn new<M: Checked>(model: &M, path: &[usize]) -> Self
    where
        M::State: Clone,
        M::Action: Clone,
    {
        let mut trace = Self { steps: Vec::new(), states: Vec::new() };
        let Some((first, rest)) = path.split_first() else { return trace };
        let mut state = model.init_states().swap_remove(*first);
        let mut actions = Vec::new();
        for index in rest {
            actions.clear();
            model.actions(&state, &mut actions);
            let action = actions[*index].clone();
            trace.steps.push(model.describe(&state, &action));
            state = model.next_state(&state, action).expect("a step that was taken before");
            trace.states.push(model.summary(&state));
        }
        trace
    }

    /// The trace of a path that stateright has found.
    pub fn of_path<M: Checked>(model: &M, path: stateright::Path<M::State, M::Action>) -> Self
    where
        M::State: Clone,
        M::Action: Clone,
    {
        let mut trace = Self { steps: Vec::new(), states: Vec::new() };
        let mut steps = path.into_vec().into_iter().peekable();
        while let Some((state, Some(action))) = steps.next() {
            trace.steps.push(model.describe(&state, &action));
            trace.states.extend(steps.peek().map(|(after, _)| model.summary(after)));
        }
        trace
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (step, state)) in self.steps.iter().zip(&self.states).enumerate() {
            writeln!(f, "{:3}. {step}\n       {state}", at + 1)?;
        }
        Ok(())
    }
}
