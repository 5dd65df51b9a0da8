//! Rust names for the names of the specs.

/// `ShareSessionEpoch` to `share_session_epoch`; keywords get a trailing underscore.
#[must_use]
pub fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, c) in chars.iter().enumerate() {
        if c.is_uppercase() && i > 0 {
            let after_lower = !chars[i - 1].is_uppercase();
            let before_lower = chars.get(i + 1).is_some_and(|n| n.is_lowercase());
            if after_lower || before_lower {
                out.push('_');
            }
        }
        out.extend(c.to_lowercase());
    }
    if matches!(out.as_str(), "type" | "match" | "self" | "move" | "ref" | "where" | "use" | "in") {
        out.push('_');
    }
    out
}

/// `ShareFetch` to `SHARE_FETCH`.
#[must_use]
pub fn constant(name: &str) -> String {
    snake(name).trim_end_matches('_').to_uppercase()
}

#[cfg(test)]
mod tests {
    #[test]
    fn snake_case() {
        for (from, to) in [
            ("TopicId", "topic_id"),
            ("timeoutMs", "timeout_ms"),
            ("V3AndBelowTopics", "v3_and_below_topics"),
            ("Enable2Pc", "enable2_pc"),
            ("LastKnownElr", "last_known_elr"),
            ("Type", "type_"),
        ] {
            assert_eq!(super::snake(from), to);
        }
    }
}
