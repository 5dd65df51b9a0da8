//! Names of topics, which every record has a copy of.

use kafka_share::Str;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// Names that a process keeps for good. Connectors name their topics, so that there are few; more are counted.
const MAX_KEPT: usize = 10_000;

static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Name of a topic; reads as a `str`. Cheap to clone: names of the topics that connectors read are kept as long as the process,
/// and copies of them count no references.
#[derive(Clone)]
pub struct TopicName(Name);

#[derive(Clone)]
enum Name {
    Kept(&'static str),
    Counted(Str),
}

impl TopicName {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Name::Kept(name) => name,
            Name::Counted(name) => name.as_str(),
        }
    }

    /// A name that many records have.
    fn kept(name: &str) -> Self {
        let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(name) {
            return TopicName(Name::Kept(known));
        }
        if all.len() >= MAX_KEPT {
            return TopicName::from(name);
        }
        let known: &'static str = Box::leak(Box::from(name));
        all.insert(known);
        TopicName(Name::Kept(known))
    }
}

impl Deref for TopicName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for TopicName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for TopicName {
    fn from(name: &str) -> Self {
        TopicName(Name::Counted(Str::from(name)))
    }
}

impl From<String> for TopicName {
    fn from(name: String) -> Self {
        TopicName(Name::Counted(Str::from(name)))
    }
}

impl From<Str> for TopicName {
    fn from(name: Str) -> Self {
        TopicName(Name::Counted(name))
    }
}

impl PartialEq for TopicName {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for TopicName {}

impl PartialEq<str> for TopicName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for TopicName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The names of the topics that a task reads.
#[derive(Debug, Default)]
pub(crate) struct Topics(Vec<TopicName>);

impl Topics {
    pub(crate) fn of(&mut self, name: &str) -> TopicName {
        if let Some(known) = self.0.iter().find(|known| ***known == *name) {
            return known.clone();
        }
        let kept = TopicName::kept(name);
        self.0.push(kept.clone());
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_kept_is_the_same_wherever_it_comes_from() {
        let (mut one, mut two) = (Topics::default(), Topics::default());
        let first = one.of("orders-of-a-test");
        assert!(
            matches!((&first.0, &two.of("orders-of-a-test").0), (Name::Kept(a), Name::Kept(b)) if std::ptr::eq(*a, *b))
        );
        assert_eq!(first, TopicName::from("orders-of-a-test".to_owned()));
        assert_eq!(
            (first.to_string().as_str(), format!("{first:?}").as_str()),
            ("orders-of-a-test", "\"orders-of-a-test\"")
        );
        assert!(first == "orders-of-a-test" && one.of("others") == *"others" && one.0.len() == 2);
    }
}
