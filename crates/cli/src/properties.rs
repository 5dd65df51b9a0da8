//! Properties files as Java writes them, so that those of Kafka's clients can be used as they are.
//!
//! `name=value`, `name: value` or `name value`; `#` and `!` begin comments; a backslash at the end of a line goes on with the
//! next, and elsewhere takes a sign out of its meaning, or makes one of `\n`, `\t`, `\r`, `\f` and `\uXXXX`.

use crate::exit::Failure;
use std::path::Path;

/// Reads a properties file.
pub(crate) fn read_properties(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::usage(format_args!("{}: {e}", path.display())))?;
    parse(&text).map_err(|(line, why)| Failure::usage(format_args!("{}:{line}: {why}", path.display())))
}

/// Parses `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    match name.trim() {
        "" => Err("the name is missing".into()),
        name => Ok((name.to_owned(), value.trim().to_owned())),
    }
}

/// The properties in a text, or the number of a line and what is wrong with it.
fn parse(text: &str) -> Result<Vec<(String, String)>, (usize, &'static str)> {
    let mut properties = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.trim_end().is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        while goes_on(&line) {
            line.pop();
            let Some((_, next)) = lines.next() else { break };
            line.push_str(next.trim_start());
        }
        let (name, value) = split(&line).ok_or((number + 1, "name=value is expected"))?;
        let plain = |text: &str| unescape(text).ok_or((number + 1, "\\u needs four hexadecimal digits"));
        properties.push((plain(name)?, plain(trim_end(value))?));
    }
    Ok(properties)
}

/// Whether the line ends with a backslash that is not itself taken out of its meaning.
fn goes_on(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// Name and value, still escaped.
fn split(line: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = line.char_indices().find(|(_, c)| {
        let ends = !escaped && (matches!(c, '=' | ':') || c.is_whitespace());
        escaped = !escaped && *c == '\\';
        ends
    });
    let (name, rest) = line.split_at(end?.0);
    let rest = rest.trim_start();
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    // A name alone is a typing error more often than an empty value.
    if name.is_empty() || value.len() == rest.len() && rest.is_empty() {
        return None;
    }
    Some((name, value.trim_start()))
}

/// Without the blanks at the end, but for one that a backslash makes a part of the value.
fn trim_end(value: &str) -> &str {
    let trimmed = value.trim_end();
    let blank = if goes_on(trimmed) { value[trimmed.len()..].chars().next() } else { None };
    &value[..trimmed.len() + blank.map_or(0, char::len_utf8)]
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let sign = match (c, if c == '\\' { rest.next() } else { None }) {
            ('\\', Some('u')) => {
                let digits: String = rest.by_ref().take(4).collect();
                let unit = (digits.len() == 4).then(|| u16::from_str_radix(&digits, 16).ok()).flatten()?;
                // Halves of a sign beyond the first 65,536 come one after the other.
                units.push(unit);
                continue;
            }
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('r')) => '\r',
            ('\\', Some('f')) => '\u{c}',
            ('\\', Some(other)) => other,
            _ => c,
        };
        plain.push_str(&String::from_utf16_lossy(&std::mem::take(&mut units)));
        plain.push(sign);
    }
    plain.push_str(&String::from_utf16_lossy(&units));
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_java_reads_them() {
        let text = "# a comment\n! another\n\nbootstrap.servers = h:1\nclient.id: me\nacks all\nempty=\n  \
                    sasl.jaas.config=a.B required \\\n    username=\"alice\" \\\n    password=\"s\\\\ecr\\u0065t=\";\n\
                    path=C:\\\\x\\ty\nna\\=me=v\\:1\nsmile=\\ud83d\\ude00!\nblank=b\\  \nslash=b\\\\ \nlast=1";
        let expected = [
            ("bootstrap.servers", "h:1"),
            ("client.id", "me"),
            ("acks", "all"),
            ("empty", ""),
            ("sasl.jaas.config", "a.B required username=\"alice\" password=\"s\\ecret=\";"),
            ("path", "C:\\x\ty"),
            ("na=me", "v:1"),
            ("smile", "\u{1f600}!"),
            ("blank", "b "),
            ("slash", "b\\"),
            ("last", "1"),
        ];
        let expected: Vec<_> = expected.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse("a=1\nbroken\n").unwrap_err().0, 2);
        assert_eq!(parse("a=1\n=x\n").unwrap_err().0, 2);
        assert_eq!(parse("a=\\u12\n").unwrap_err().0, 1);
    }
}
