//! `sasl.jaas.config`: a login module, `required`, and options, as Java writes them.

/// One login module with its options.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Login {
    /// The class, with its package.
    pub(super) module: String,
    /// Options in their order.
    pub(super) options: Vec<(String, String)>,
}

/// Reads one login module. What is wrong is told without any value, which may be a password.
pub(super) fn parse(text: &str) -> Result<Login, String> {
    let text = text.trim().strip_suffix(';').ok_or("it must end with `;`")?;
    let (module, rest) = text.trim().split_once(char::is_whitespace).ok_or("it must be `CLASS required OPTIONS;`")?;
    let rest = rest.trim_start();
    let (flag, mut rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !["required", "requisite", "sufficient", "optional"].contains(&flag.to_ascii_lowercase().as_str()) {
        return Err("`required` must follow the class".into());
    }
    let mut options = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(Login { module: module.to_owned(), options });
        }
        let (name, after) = rest.split_once('=').ok_or("options must be NAME=\"VALUE\"")?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) || name.contains('"') {
            return Err("options must be NAME=\"VALUE\", with a space between them".into());
        }
        let (value, after) = value(after.trim_start()).ok_or_else(|| format!("the value of {name} does not end"))?;
        options.push((name.to_owned(), value));
        rest = after;
    }
}

/// A value in quotes, in which a backslash takes the next character as it is, or up to the next space.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(chars.next()?.1),
            c if c == quote => return Some((value, &text[at + c.len_utf8()..])),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_options() {
        let login = parse(r#"a.PlainLoginModule required user_alice="a \"b\" c" user_bob='x;y' n=1 ;"#).unwrap();
        assert_eq!(login.module, "a.PlainLoginModule");
        let options = [("user_alice", "a \"b\" c"), ("user_bob", "x;y"), ("n", "1")];
        assert_eq!(login.options, options.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(parse("M required;").unwrap().options, []);
    }

    #[test]
    fn what_is_wrong_is_told_without_values() {
        for text in ["", "M required user_a=\"secret\"", "M;", "M user_a=\"secret\";", "M required user_a=\"secret;"] {
            let why = parse(text).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
