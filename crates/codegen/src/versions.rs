//! Version ranges as the specs write them: `3+`, `0-4`, `7`, `none`.

/// A closed range of versions; empty where `min > max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// First version.
    pub min: i16,
    /// Last version; `i16::MAX` for open ranges.
    pub max: i16,
}

impl Versions {
    /// No version at all.
    pub const NONE: Versions = Versions { min: 0, max: -1 };

    /// Parses a range.
    ///
    /// # Errors
    /// The text where it is no range.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = |t: &str| t.trim().parse::<i16>().map_err(|_| format!("bad version range {text:?}"));
        match text.trim() {
            "none" | "" => Ok(Self::NONE),
            t if t.ends_with('+') => Ok(Versions { min: number(&t[..t.len() - 1])?, max: i16::MAX }),
            t => match t.split_once('-') {
                Some((a, b)) => Ok(Versions { min: number(a)?, max: number(b)? }),
                None => number(t).map(|v| Versions { min: v, max: v }),
            },
        }
    }

    /// Whether no version is in the range.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.min > self.max
    }

    /// Versions in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let both = Versions { min: self.min.max(other.min), max: self.max.min(other.max) };
        if both.is_empty() { Self::NONE } else { both }
    }

    /// Whether all of `other` is in this range.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        other.is_empty() || (self.min <= other.min && other.max <= self.max)
    }

    /// Whether `version` is in this range.
    #[must_use]
    pub fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// A Rust condition that holds for the versions of `self`, given that the version is in `valid`; `None` where it
    /// always holds.
    #[must_use]
    pub fn condition(self, valid: Self) -> Option<String> {
        let both = self.and(valid);
        if both.is_empty() {
            return Some("false".into());
        }
        match (both.min > valid.min, both.max < valid.max) {
            (false, false) => None,
            (true, false) => Some(format!("version >= {}", both.min)),
            (false, true) => Some(format!("version <= {}", both.max)),
            (true, true) if both.min == both.max => Some(format!("version == {}", both.min)),
            (true, true) => Some(format!("({}..={}).contains(&version)", both.min, both.max)),
        }
    }

    /// As in a spec.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            v if v.is_empty() => "none".into(),
            v if v.max == i16::MAX => format!("{}+", v.min),
            v if v.min == v.max => v.min.to_string(),
            v => format!("{}-{}", v.min, v.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        let valid = Versions::parse("1-6").unwrap();
        let cond = |t: &str| Versions::parse(t).unwrap().condition(valid);
        assert_eq!(cond("0+"), None);
        assert_eq!(cond("3+").unwrap(), "version >= 3");
        assert_eq!(cond("0-2").unwrap(), "version <= 2");
        assert_eq!(cond("2-4").unwrap(), "(2..=4).contains(&version)");
        assert_eq!(cond("7+").unwrap(), "false");
        assert!(Versions::parse("x+").is_err());
    }
}
