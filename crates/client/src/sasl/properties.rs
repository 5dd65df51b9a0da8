//! The `sasl.` properties of Kafka's clients, and the mechanism that they describe together.

use super::jaas::LoginModule;
use super::token::{FileTokens, Refresh, TokenProvider, UnsecuredTokens};
use super::{SCRAM_256, SCRAM_512, Sasl};
use crate::config::millis;
use crate::secret::Secret;
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Of tokens without a signature, in seconds: a century.
const MAX_LIFETIME: u64 = 100 * 365 * 86_400;

const PACKAGE: &str = "org.apache.kafka.common.security.";
const PLAIN_MODULE: &str = "org.apache.kafka.common.security.plain.PlainLoginModule";
const SCRAM_MODULE: &str = "org.apache.kafka.common.security.scram.ScramLoginModule";
const OAUTH_MODULE: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule";
/// Of the same handler, in Kafka's releases from 4.0 on and before.
const OAUTH_HANDLERS: [&str; 2] = [
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
];

/// What was given by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SaslProperties {
    mechanism: Option<String>,
    jaas: Option<Secret>,
    refresh: Refresh,
    token_url: Option<String>,
    client_id: Option<String>,
    client_secret: Option<Secret>,
    scope: Option<String>,
    urlencode: bool,
    connect_timeout: Option<Duration>,
    read_timeout: Option<Duration>,
    /// Classes that cannot be loaded, by the names of their properties.
    foreign: BTreeMap<String, String>,
}

impl SaslProperties {
    /// Sets one property by its Kafka name. Answers `false` for names that are not of this group.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        let value = value.trim();
        let text = || (!value.is_empty()).then(|| value.to_owned());
        self.foreign.remove(name);
        match name {
            "sasl.mechanism" => self.mechanism = text(),
            "sasl.jaas.config" => self.jaas = text().map(Secret::new),
            "sasl.login.refresh.window.factor" => self.refresh.factor = fraction(name, value, 0.5..=1.0)?,
            "sasl.login.refresh.window.jitter" => self.refresh.jitter = fraction(name, value, 0.0..=0.25)?,
            "sasl.login.refresh.min.period.seconds" => self.refresh.min_period = seconds(name, value, 900)?,
            "sasl.login.refresh.buffer.seconds" => self.refresh.buffer = seconds(name, value, 3600)?,
            "sasl.login.connect.timeout.ms" => self.connect_timeout = Some(millis(name, value)?),
            "sasl.login.read.timeout.ms" => self.read_timeout = Some(millis(name, value)?),
            "sasl.oauthbearer.token.endpoint.url" => self.token_url = text(),
            "sasl.oauthbearer.client.credentials.client.id" => self.client_id = text(),
            "sasl.oauthbearer.client.credentials.client.secret" => self.client_secret = text().map(Secret::new),
            "sasl.oauthbearer.scope" => self.scope = text(),
            "sasl.oauthbearer.header.urlencode" => self.urlencode = crate::config::boolean(name, value)?,
            "sasl.login.callback.handler.class" if value.is_empty() || OAUTH_HANDLERS.contains(&value) => {}
            "sasl.login.callback.handler.class"
            | "sasl.client.callback.handler.class"
            | "sasl.login.class"
            | "sasl.oauthbearer.jwt.retriever.class"
                if !value.is_empty() =>
            {
                self.foreign.insert(name.to_owned(), value.to_owned());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The mechanism that these make.
    ///
    /// # Errors
    /// Names the property that is missing or wrong.
    pub(crate) fn resolve(&self) -> Result<Sasl> {
        if let Some((name, value)) = self.foreign.first_key_value() {
            return Err(wrong(&format!(
                "{name}={value}: Java classes cannot be loaded; tokens come from sasl.oauthbearer.token.endpoint.url, or from the application (Sasl::oauth_bearer)"
            )));
        }
        let jaas = self.jaas.as_ref().ok_or_else(|| {
            wrong("sasl.jaas.config is missing: give the login module with its user name and password, or call ClientConfig::sasl")
        })?;
        let text = std::str::from_utf8(jaas.bytes()).unwrap_or_default();
        let module = LoginModule::parse(text).map_err(|why| wrong(&format!("sasl.jaas.config: {why}")))?;
        let mechanism = self.mechanism.as_deref().ok_or_else(|| {
            wrong("sasl.mechanism is missing: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER are supported; GSSAPI, Java's default, is not")
        })?;
        let expected = match mechanism {
            "PLAIN" => PLAIN_MODULE,
            SCRAM_256 | SCRAM_512 => SCRAM_MODULE,
            "OAUTHBEARER" => OAUTH_MODULE,
            other => {
                return Err(wrong(&format!(
                    "sasl.mechanism={other} is not supported: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER are"
                )));
            }
        };
        if module.class != expected {
            let known = [PLAIN_MODULE, SCRAM_MODULE, OAUTH_MODULE].contains(&module.class.as_str());
            let what = if known { "is of another mechanism" } else { "is not known" };
            return Err(wrong(&format!(
                "sasl.jaas.config: the login module {} {what}; sasl.mechanism={mechanism} needs {expected}",
                module.class
            )));
        }
        match mechanism {
            "PLAIN" => Ok(Sasl::plain(option(&module, "username")?, option(&module, "password")?)),
            "OAUTHBEARER" => Ok(Sasl::bearer(self.provider(&module)?, self.refresh)),
            _ if module.option("tokenauth").is_some_and(|v| v.eq_ignore_ascii_case("true")) => {
                Err(wrong("sasl.jaas.config: tokenauth=true: delegation tokens are not supported"))
            }
            SCRAM_256 => Ok(Sasl::scram_sha_256(option(&module, "username")?, option(&module, "password")?)),
            _ => Ok(Sasl::scram_sha_512(option(&module, "username")?, option(&module, "password")?)),
        }
    }

    fn provider(&self, module: &LoginModule) -> Result<Box<dyn TokenProvider>> {
        let Some(url) = &self.token_url else { return unsecured(module) };
        if let Some(path) = url.strip_prefix("file://") {
            return Ok(Box::new(FileTokens(PathBuf::from(path))));
        }
        let id = self.client_id.as_deref().or_else(|| module.option("clientId"));
        let secret = self.client_secret.clone().or_else(|| module.option("clientSecret").map(Secret::new));
        let scope = self.scope.as_deref().or_else(|| module.option("scope"));
        self.endpoint(url, id, secret, scope, extensions(module, "extension_"))
    }

    #[expect(clippy::unused_self, reason = "the timeouts are needed with the feature only")]
    fn endpoint(
        &self,
        url: &str,
        _id: Option<&str>,
        _secret: Option<Secret>,
        _scope: Option<&str>,
        _extensions: BTreeMap<String, String>,
    ) -> Result<Box<dyn TokenProvider>> {
        Err(wrong(&format!(
            "sasl.oauthbearer.token.endpoint.url={url}: only file:// is supported; bring tokens yourself with Sasl::oauth_bearer"
        )))
    }
}

/// Tokens without a signature, as the login module makes them where nothing else is told.
fn unsecured(module: &LoginModule) -> Result<Box<dyn TokenProvider>> {
    let mut claims = serde_json::Map::new();
    for (name, value) in module.options_of("unsecuredLoginStringClaim_") {
        claims.insert(name.to_owned(), value.into());
    }
    for (name, value) in module.options_of("unsecuredLoginNumberClaim_") {
        let number: f64 = value
            .parse()
            .map_err(|_| wrong(&format!("sasl.jaas.config: unsecuredLoginNumberClaim_{name} is not a number")))?;
        claims.insert(name.to_owned(), number.into());
    }
    for (name, value) in module.options_of("unsecuredLoginListClaim_") {
        // The first sign is what separates the values.
        let list: Vec<&str> = value.chars().next().map_or(Vec::new(), |mark| value.split(mark).skip(1).collect());
        claims.insert(name.to_owned(), list.into());
    }
    let principal = module.option("unsecuredLoginPrincipalClaimName").unwrap_or("sub");
    if !claims.contains_key(principal) {
        return Err(wrong(&format!(
            "sasl.jaas.config: where tokens come from is not told; set sasl.oauthbearer.token.endpoint.url (file://PATH for one in a file), bring them with Sasl::oauth_bearer, or, for tests, set unsecuredLoginStringClaim_{principal}"
        )));
    }
    let lifetime = module.option("unsecuredLoginLifetimeSeconds").unwrap_or("3600");
    let lifetime = lifetime.parse().ok().filter(|s| (1..=MAX_LIFETIME).contains(s)).map(Duration::from_secs);
    let lifetime =
        lifetime.ok_or_else(|| wrong("sasl.jaas.config: unsecuredLoginLifetimeSeconds is not a number of seconds"))?;
    let extensions = extensions(module, "unsecuredLoginExtension_");
    Ok(Box::new(UnsecuredTokens { claims, lifetime, extensions }))
}

fn extensions(module: &LoginModule, start: &str) -> BTreeMap<String, String> {
    module.options_of(start).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn option<'a>(module: &'a LoginModule, name: &str) -> Result<&'a str> {
    let class = module.class.trim_start_matches(PACKAGE);
    module
        .option(name)
        .filter(|v| !v.is_empty())
        .ok_or_else(|| wrong(&format!("sasl.jaas.config: {class} needs {name}=\"..\"")))
}

fn wrong(text: &str) -> Error {
    Error::new(ErrorKind::Config, text)
}

fn fraction(name: &str, value: &str, allowed: std::ops::RangeInclusive<f64>) -> Result<f64> {
    let number = value.parse().ok().filter(|n| allowed.contains(n));
    let (least, most) = (allowed.start(), allowed.end());
    number.ok_or_else(|| wrong(&format!("{name}={value}: a number from {least} to {most} is expected")))
}

fn seconds(name: &str, value: &str, most: u64) -> Result<Duration> {
    let number = value.parse().ok().filter(|n| *n <= most);
    number
        .map(Duration::from_secs)
        .ok_or_else(|| wrong(&format!("{name}={value}: a number of seconds from 0 to {most} is expected")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(pairs: &[(&str, &str)]) -> Result<Sasl> {
        let mut properties = SaslProperties::default();
        for (name, value) in pairs {
            assert!(properties.set(name, value)?, "{name}");
        }
        properties.resolve()
    }

    fn with(mechanism: &str, jaas: &str) -> Result<Sasl> {
        resolve(&[("sasl.mechanism", mechanism), ("sasl.jaas.config", jaas)])
    }

    #[test]
    fn mechanisms_come_out_of_their_modules() {
        let plain = format!("{PLAIN_MODULE} required username=\"u\" password=\"p\";");
        let scram = format!("{SCRAM_MODULE} required username=\"u\" password=\"p\";");
        assert_eq!(with("PLAIN", &plain).unwrap(), Sasl::plain("u", "p"));
        assert_eq!(with(SCRAM_256, &scram).unwrap(), Sasl::scram_sha_256("u", "p"));
        assert_eq!(with(SCRAM_512, &scram).unwrap(), Sasl::scram_sha_512("u", "p"));
        let oauth = format!("{OAUTH_MODULE} required unsecuredLoginStringClaim_sub=\"alice\";");
        assert_eq!(with("OAUTHBEARER", &oauth).unwrap().mechanism(), "OAUTHBEARER");
        let file = [
            ("sasl.mechanism", "OAUTHBEARER"),
            ("sasl.jaas.config", &format!("{OAUTH_MODULE} required;")),
            ("sasl.login.callback.handler.class", OAUTH_HANDLERS[0]),
            ("sasl.oauthbearer.token.endpoint.url", "file:///run/token"),
        ];
        assert_eq!(resolve(&file).unwrap().mechanism(), "OAUTHBEARER");
    }

    #[test]
    fn what_is_wrong_is_named_without_secrets() {
        let plain = format!("{PLAIN_MODULE} required username=\"u\" password=\"hunter2\";");
        for (mechanism, jaas, words) in [
            ("GSSAPI", plain.as_str(), "sasl.mechanism=GSSAPI is not supported"),
            (SCRAM_256, &plain, "is of another mechanism"),
            ("PLAIN", "com.example.Login required password=\"hunter2\";", "com.example.Login is not known"),
            (
                "PLAIN",
                &format!("{PLAIN_MODULE} required password=\"hunter2\";"),
                "plain.PlainLoginModule needs username",
            ),
            ("PLAIN", &format!("{PLAIN_MODULE} required username=\"u\";"), "needs password"),
            ("PLAIN", "", "sasl.jaas.config is missing"),
            ("", &plain, "sasl.mechanism is missing"),
            (
                SCRAM_512,
                &format!("{SCRAM_MODULE} required username=\"u\" password=\"p\" tokenauth=\"true\";"),
                "delegation",
            ),
            (
                "OAUTHBEARER",
                &format!(
                    "{OAUTH_MODULE} required unsecuredLoginStringClaim_sub=\"a\" unsecuredLoginLifetimeSeconds=\"{}\";",
                    u64::MAX
                ),
                "unsecuredLoginLifetimeSeconds",
            ),
            ("OAUTHBEARER", &format!("{OAUTH_MODULE} required;"), "sasl.oauthbearer.token.endpoint.url"),
        ] {
            let error = with(mechanism, jaas).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains(words) && !error.to_string().contains("hunter2"), "{error}");
        }
        for (name, value) in [
            ("sasl.login.refresh.window.factor", "2"),
            ("sasl.login.refresh.buffer.seconds", "-1"),
            ("sasl.login.callback.handler.class", "com.example.Handler"),
            ("sasl.login.class", "com.example.Login"),
        ] {
            let error = resolve(&[(name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}={value}: ")), "{error}");
        }
    }
}
