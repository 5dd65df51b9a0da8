//! What was sent and what came back, as text of bounded size.

use std::collections::VecDeque;
use std::time::Instant;

/// Lines kept; older ones go.
const LINES: usize = 60;
/// Characters kept of a line.
const LENGTH: usize = 1200;

/// The last lines of a conversation, each with the milliseconds since its start.
#[derive(Debug)]
pub(crate) struct Transcript {
    start: Instant,
    lines: VecDeque<String>,
    dropped: usize,
}

impl Default for Transcript {
    fn default() -> Self {
        Transcript { start: Instant::now(), lines: VecDeque::new(), dropped: 0 }
    }
}

impl Transcript {
    /// Adds a line.
    pub(crate) fn note(&mut self, text: String) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
            self.dropped += 1;
        }
        // Tagged fields are nearly always empty, and say nothing then.
        let mut text = text.replace(", tagged: TaggedFields([])", "");
        if let Some((end, _)) = text.char_indices().nth(LENGTH) {
            text.truncate(end);
            text.push_str(" ..");
        }
        self.lines.push_back(format!("{:>6} ms {text}", self.start.elapsed().as_millis()));
    }

    /// All lines kept.
    pub(crate) fn lines(&self) -> Vec<String> {
        let note = (self.dropped > 0).then(|| format!("({} earlier lines left out)", self.dropped));
        note.into_iter().chain(self.lines.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_bounded() {
        let mut transcript = Transcript::default();
        for i in 0..LINES + 5 {
            transcript.note(format!("line {i} {}", "é".repeat(2 * LENGTH)));
        }
        let lines = transcript.lines();
        assert_eq!(lines.len(), LINES + 1);
        assert_eq!(lines[0], "(5 earlier lines left out)");
        assert!(lines[1].contains("line 5 ") && lines[1].chars().count() < LENGTH + 20, "{}", lines[1].len());
    }
}
