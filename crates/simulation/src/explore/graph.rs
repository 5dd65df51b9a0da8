//! The explored graph: for each state how it was found and where its faultless steps lead.

/// States are numbered in the order in which a breadth-first search finds them.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Who found it (itself, for an initial state) and by which of its actions.
    parents: Vec<(u32, u8)>,
    ends: Vec<u32>,
    /// Where the steps of each state begin in `to`; states whose steps were taken, in their order.
    first: Vec<u64>,
    to: Vec<u32>,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    pub(super) fn ends(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn add(&mut self, parent: Option<u32>, index: usize, end: bool) -> u32 {
        let at = u32::try_from(self.parents.len()).expect("fewer than 2^32 states");
        self.parents.push((parent.unwrap_or(at), u8::try_from(index).expect("fewer than 256 actions")));
        if end {
            self.ends.push(at);
        }
        at
    }

    /// The steps of this state follow; states come in order.
    pub(super) fn begin(&mut self, at: u32) {
        debug_assert_eq!(at as usize, self.first.len(), "a breadth-first search takes states in order");
        self.first.push(self.to.len() as u64);
    }

    pub(super) fn edge(&mut self, to: u32) {
        self.to.push(to);
    }

    /// The indices of the initial state and of the actions that lead to a state.
    pub(super) fn path(&self, mut at: u32) -> Vec<usize> {
        let mut path = Vec::new();
        loop {
            let (parent, index) = self.parents[at as usize];
            path.push(usize::from(index));
            if parent == at {
                break;
            }
            at = parent;
        }
        path.reverse();
        path
    }

    /// States from which no end can be reached: how many, and the first. Backward from the ends, over all edges.
    pub(super) fn stuck(&self) -> Option<(usize, u32)> {
        let mut reaches = vec![false; self.len()];
        self.ends.iter().for_each(|end| reaches[*end as usize] = true);
        // Most edges lead to a higher number, so that going down settles nearly all in one pass; what closes a cycle
        // takes further passes, until one changes nothing.
        let mut changed = true;
        while changed {
            changed = false;
            for at in (0..self.first.len()).rev().filter(|at| !reaches[*at]).collect::<Vec<_>>() {
                if self.steps(at).iter().any(|to| reaches[*to as usize]) {
                    reaches[at] = true;
                    changed = true;
                }
            }
        }
        let count = reaches.iter().filter(|reaches| !**reaches).count();
        let first = reaches.iter().position(|reaches| !reaches)?;
        Some((count, first as u32))
    }

    fn steps(&self, at: usize) -> &[u32] {
        let end = self.first.get(at + 1).map_or(self.to.len(), |end| *end as usize);
        &self.to[self.first[at] as usize..end]
    }
}
