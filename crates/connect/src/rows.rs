//! Rows of a batch: most often all of them are alike, and then nothing is kept for each.

use crate::SinkRecord;
use std::ops::Range;

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fate {
    #[default]
    Undecided,
    Accept,
    Release,
    Reject,
    /// A transaction has acknowledged it.
    Done,
}

/// Fates of the rows of a batch.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    len: usize,
    /// Of all of them, unless there is one for each.
    all: Fate,
    each: Vec<Fate>,
}

impl Fates {
    /// The same room for so many rows that nothing is known of.
    pub(crate) fn undecided(mut self, len: usize) -> Self {
        self.each.clear();
        Fates { len, all: Fate::Undecided, each: self.each }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn of(&self, row: usize) -> Fate {
        self.each.get(row).copied().unwrap_or(self.all)
    }

    /// The fate of all of them, where they are known to have the same.
    pub(crate) fn all(&self) -> Option<Fate> {
        let alike = self.each.first().is_none_or(|first| self.each.iter().all(|fate| fate == first));
        alike.then(|| self.of(0))
    }

    /// Whether a row has this fate.
    pub(crate) fn has(&self, fate: Fate) -> bool {
        if self.each.is_empty() { self.len > 0 && self.all == fate } else { self.each.contains(&fate) }
    }

    pub(crate) fn set(&mut self, row: usize, fate: Fate) {
        if self.each.is_empty() {
            if self.all == fate {
                return;
            }
            self.each.resize(self.len, self.all);
        }
        self.each[row] = fate;
    }

    /// All rows with one fate get another.
    pub(crate) fn turn(&mut self, from: Fate, to: Fate) {
        let fates = self.each.iter_mut().chain([&mut self.all]);
        fates.filter(|fate| **fate == from).for_each(|fate| *fate = to);
    }

    pub(crate) fn decide(&mut self, rows: Rows<'_>, fate: Fate) {
        if rows.len() == self.len {
            self.each.clear();
            self.all = fate;
        } else {
            rows.into_iter().for_each(|row| self.set(row, fate));
        }
    }
}

/// What is put of a batch: records after converters and transforms, and their rows.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    pub(crate) records: Vec<SinkRecord>,
    /// Rows of the records, unless each is at the place of its row.
    rows: Vec<usize>,
    listed: bool,
}

impl Converted {
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.rows.clear();
        self.listed = false;
    }

    /// The record of a row, which is behind those before.
    #[inline]
    pub(crate) fn push(&mut self, row: usize, record: SinkRecord) {
        if row != self.records.len() || self.listed {
            self.list(row);
        }
        self.records.push(record);
    }

    /// Records of the rows behind those before, one of each.
    pub(crate) fn extend(&mut self, records: impl Iterator<Item = SinkRecord>) {
        debug_assert!(!self.listed, "no row is without its record");
        self.records.extend(records);
    }

    #[cold]
    fn list(&mut self, row: usize) {
        if !self.listed {
            self.listed = true;
            self.rows.extend(0..self.records.len());
        }
        self.rows.push(row);
    }

    pub(crate) fn row(&self, at: usize) -> usize {
        if self.listed { self.rows[at] } else { at }
    }

    pub(crate) fn part(&self, range: Range<usize>) -> Part<'_> {
        let rows = match self.listed {
            true => Rows::Listed(&self.rows[range.clone()]),
            false => Rows::Run(range.start, range.end),
        };
        Part { records: &self.records[range], rows }
    }
}

/// A part of it that is put at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) records: &'a [SinkRecord],
    pub(crate) rows: Rows<'a>,
}

/// Some rows of a batch, ascending, each once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// From one up to before another.
    Run(usize, usize),
    Listed(&'a [usize]),
}

impl Rows<'_> {
    pub(crate) const NONE: Rows<'static> = Rows::Run(0, 0);

    pub(crate) fn len(&self) -> usize {
        match self {
            Rows::Run(start, end) => end - start,
            Rows::Listed(rows) => rows.len(),
        }
    }

    pub(crate) fn first(&self) -> Option<usize> {
        match self {
            Rows::Run(start, end) => (start < end).then_some(*start),
            Rows::Listed(rows) => rows.first().copied(),
        }
    }
}

impl<'a> IntoIterator for Rows<'a> {
    type Item = usize;
    type IntoIter = std::iter::Chain<Range<usize>, std::iter::Copied<std::slice::Iter<'a, usize>>>;

    fn into_iter(self) -> Self::IntoIter {
        match self {
            Rows::Run(start, end) => (start..end).chain([].iter().copied()),
            Rows::Listed(rows) => (0..0).chain(rows.iter().copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_kept_one_by_one_only_where_they_differ() {
        let mut fates = Fates::default().undecided(4);
        assert_eq!((fates.all(), fates.has(Fate::Accept)), (Some(Fate::Undecided), false));
        fates.decide(Rows::Run(0, 4), Fate::Accept);
        assert_eq!((fates.all(), fates.each.len()), (Some(Fate::Accept), 0));
        fates.set(2, Fate::Accept);
        assert_eq!(fates.each.len(), 0);
        fates.decide(Rows::Listed(&[1, 3]), Fate::Reject);
        let each: Vec<Fate> = (0..4).map(|row| fates.of(row)).collect();
        assert_eq!(each, [Fate::Accept, Fate::Reject, Fate::Accept, Fate::Reject]);
        assert_eq!((fates.all(), fates.has(Fate::Reject), fates.has(Fate::Done)), (None, true, false));
        fates.decide(Rows::Run(1, 2), Fate::Accept);
        fates.decide(Rows::Run(3, 4), Fate::Accept);
        assert_eq!(fates.all(), Some(Fate::Accept));
        fates.decide(Rows::Run(0, 4), Fate::Done);
        assert_eq!((fates.all(), fates.each.len()), (Some(Fate::Done), 0));
        let fates = fates.undecided(0);
        assert!(!fates.has(Fate::Undecided));
    }

    #[test]
    fn rows_are_listed_from_the_first_that_is_missing_on() {
        let mut converted = Converted::default();
        for row in [0, 1, 3, 6] {
            converted.push(row, crate::record::test_record("t", 0, row as i64));
        }
        let part = converted.part(1..4);
        assert_eq!((part.rows.into_iter().collect::<Vec<_>>(), part.rows.first()), (vec![1, 3, 6], Some(1)));
        assert_eq!((part.records.len(), part.rows.len(), converted.row(2)), (3, 3, 3));
        converted.clear();
        converted.push(0, crate::record::test_record("t", 0, 0));
        assert_eq!((converted.row(0), converted.listed), (0, false));
        assert_eq!(converted.part(0..1).rows.into_iter().collect::<Vec<_>>(), [0]);
        assert_eq!(converted.part(1..1).rows.first(), None);
    }
}
