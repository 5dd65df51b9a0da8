//! What came out of a run.

mod html;
mod json;
mod junit;
mod text;

use crate::Case;
use std::time::Duration;

/// What came out of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every rule held.
    Passed,
    /// A rule was broken; the text says what was expected and what came.
    Failed(String),
    /// The cluster does not offer what the case needs; the text says what.
    NotSupported(String),
}

/// A case and what came out of it.
#[derive(Debug, Clone)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// What came out.
    pub verdict: Verdict,
    /// How long it took.
    pub time: Duration,
    /// Requests and answers, in order; kept for failed cases only.
    pub transcript: Vec<String>,
}

/// All results of a run, in the order of the cases.
#[derive(Debug, Clone)]
pub struct Report {
    /// The cluster, as bootstrap addresses.
    pub cluster: String,
    /// The results.
    pub results: Vec<CaseResult>,
    /// How long the run took.
    pub time: Duration,
}

impl Report {
    /// Number of cases that passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.count(|v| *v == Verdict::Passed)
    }

    /// Number of cases that failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count(|v| matches!(v, Verdict::Failed(_)))
    }

    /// Number of cases that the cluster does not support.
    #[must_use]
    pub fn not_supported(&self) -> usize {
        self.count(|v| matches!(v, Verdict::NotSupported(_)))
    }

    fn count(&self, which: impl Fn(&Verdict) -> bool) -> usize {
        self.results.iter().filter(|r| which(&r.verdict)).count()
    }

    /// For people: a line a case, details of failures, and a last line `N passed, N failed, N not supported`.
    #[must_use]
    pub fn text(&self) -> String {
        text::render(self)
    }

    /// For programs: one JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        json::render(self)
    }

    /// For people with a browser: one page that needs nothing else.
    #[must_use]
    pub fn html(&self) -> String {
        html::render(self)
    }

    /// For build servers: JUnit's XML.
    #[must_use]
    pub fn junit(&self) -> String {
        junit::render(self)
    }
}

#[cfg(test)]
mod tests;
