//! `sasl.jaas.config`: one login module with its options, as Kafka's clients take it.
//!
//! `MODULE FLAG NAME=VALUE ..;` where a value is a word or is quoted by `"` or `'`, with Java's backslash escapes in quotes, and
//! comments are `//`, `/* */`. An error never repeats what may be a piece of a password.

use crate::secret::Secret;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// A login module and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoginModule {
    /// The Java class.
    pub(super) class: String,
    options: BTreeMap<String, Secret>,
}

impl LoginModule {
    /// The value of an option.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).and_then(|value| std::str::from_utf8(value.bytes()).ok())
    }

    /// The options whose names begin with `start`, without it.
    pub(super) fn options_of<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.options.keys().filter_map(move |name| Some((name.strip_prefix(start)?, name)));
        all.filter_map(|(rest, name)| Some((rest, self.option(name)?)))
    }

    /// Parses the property's value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut words = Words { rest: text.chars().peekable() };
        let class = match words.next()? {
            Some(Token::Word(class)) => class,
            _ => return Err("a login module is expected first".into()),
        };
        match words.next()? {
            Some(Token::Word(flag))
                if ["required", "requisite", "sufficient", "optional"].contains(&flag.to_lowercase().as_str()) => {}
            _ => return Err(format!("after {class}, `required` is expected")),
        }
        let mut options = BTreeMap::new();
        loop {
            match words.next()? {
                Some(Token::Mark(';')) => break,
                Some(Token::Word(name)) => {
                    // What stands where a name should may be the rest of a password that is not quoted.
                    let at = options.len() + 1;
                    let Some(Token::Mark('=')) = words.next()? else {
                        return Err(format!(
                            "option {at} has no `=`; a value with spaces or other signs must be quoted: NAME=\"VALUE\""
                        ));
                    };
                    let (Some(Token::Word(value)) | Some(Token::Quoted(value))) = words.next()? else {
                        return Err(format!("option {at} has no value: NAME=\"VALUE\" is expected"));
                    };
                    options.insert(name, Secret::new(value));
                }
                None => return Err("there is no `;` at the end".into()),
                Some(_) => {
                    return Err(format!("option {} is not of the form NAME=\"VALUE\"", options.len() + 1));
                }
            }
        }
        match words.next()? {
            None => Ok(LoginModule { class, options }),
            Some(_) => Err("there is something after the `;`: one login module is expected".into()),
        }
    }
}

enum Token {
    Word(String),
    Quoted(String),
    Mark(char),
}

struct Words<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Words<'_> {
    fn next(&mut self) -> Result<Option<Token>, String> {
        loop {
            match self.rest.next() {
                None => return Ok(None),
                Some('/') => self.skip_comment()?,
                Some(quote @ ('"' | '\'')) => return self.quoted(quote).map(|text| Some(Token::Quoted(text))),
                Some(c) if is_word(c) => return Ok(Some(Token::Word(self.word(c)))),
                Some(c) if c.is_whitespace() => {}
                Some(mark) => return Ok(Some(Token::Mark(mark))),
            }
        }
    }

    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first);
        while let Some(c) = self.rest.next_if(|c| is_word(*c)) {
            word.push(c);
        }
        word
    }

    fn skip_comment(&mut self) -> Result<(), String> {
        if self.rest.next_if_eq(&'*').is_none() {
            while self.rest.next_if(|c| *c != '\n').is_some() {}
            return Ok(());
        }
        let mut star = false;
        for c in self.rest.by_ref() {
            if star && c == '/' {
                return Ok(());
            }
            star = c == '*';
        }
        Err("a comment has no end".into())
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some(c) if c == quote => return Ok(text),
                Some('\\') => {
                    let escaped = self.escape();
                    text.push(escaped.ok_or("a quoted value ends with a backslash")?);
                }
                Some('\n' | '\r') | None => return Err("a quoted value has no end".into()),
                Some(c) => text.push(c),
            }
        }
    }

    /// As Java's `StreamTokenizer` has them.
    fn escape(&mut self) -> Option<char> {
        Some(match self.rest.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            first @ '0'..='7' => {
                let mut code = first.to_digit(8)?;
                // Up to three digits, and no more than a byte.
                for _ in 0..if first <= '3' { 2 } else { 1 } {
                    let Some(digit) = self.rest.next_if(|c| c.is_digit(8)) else { break };
                    code = code * 8 + digit.to_digit(8)?;
                }
                char::from_u32(code)?
            }
            other => other,
        })
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-' | '.') || c >= '\u{a0}'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: &str = "org.apache.kafka.common.security.plain.PlainLoginModule";

    #[test]
    fn the_usual_forms() {
        for text in [
            format!("{PLAIN} required username=\"alice\" password=\"secret\";"),
            format!("{PLAIN} REQUIRED\n  username='alice'\n  password='secret' ;\n"),
            format!("// to the cluster\n{PLAIN} /* always */ required username=alice password=secret;"),
            format!("{PLAIN} required password=\"sec\\162et\" username=\"alice\" other=\"x\";"),
        ] {
            let module = LoginModule::parse(&text).unwrap();
            assert_eq!(module.class, PLAIN);
            assert_eq!(
                (module.option("username"), module.option("password")),
                (Some("alice"), Some("secret")),
                "{text}"
            );
        }
        let module = LoginModule::parse("a.B required p=\"a \\\"b\\\" \\\\ c;=d\" extension_x='1';").unwrap();
        assert_eq!(module.option("p"), Some("a \"b\" \\ c;=d"));
        assert_eq!(module.options_of("extension_").collect::<Vec<_>>(), [("x", "1")]);
    }

    #[test]
    fn what_is_wrong_is_said_without_secrets() {
        for (text, word) in [
            ("", "login module"),
            ("a.B", "required"),
            ("a.B maybe x=\"y\";", "required"),
            ("a.B required password=\"hunter2\"", "`;`"),
            ("a.B required password=hunter2 two;", "option 2"),
            ("a.B required password=\"hunter2;", "no end"),
            ("a.B required password=hun%ter2;", "option 2"),
            ("a.B required password=;", "option 1"),
            ("a.B required x=y; c.D required;", "after"),
        ] {
            let error = LoginModule::parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
            assert!(!error.contains("ter2"), "{error}");
        }
        let module = LoginModule::parse("a.B required password=\"hunter2\";").unwrap();
        assert!(!format!("{module:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn any_value_survives_quoting(value in "[^\\n\\r]{0,40}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let module = LoginModule::parse(&format!("a.B required v=\"{quoted}\";")).unwrap();
            prop_assert_eq!(module.option("v"), Some(value.as_str()));
        }

        #[test]
        fn nothing_panics(text in ".{0,80}") {
            let _ = LoginModule::parse(&text);
            let _ = LoginModule::parse(&format!("a.B required {text}"));
        }
    }
}
