//! Credentials, region and endpoint, from the variables of the environment that other tools read as well.

use crate::location::Location;
use std::fmt;
use std::time::Duration;
use vervet_model::{Error, ErrorKind, Result};

/// The region of a bucket if no variable says one.
const REGION_DEFAULT: &str = "us-east-1";

/// A pair of keys, and the token of credentials that end.
#[derive(Clone)]
pub struct Credentials {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) session_token: Option<String>,
}

impl Credentials {
    /// # Errors
    /// Input: one of them is empty or has characters that no header has.
    pub fn new(access_key: &str, secret_key: &str, session_token: Option<&str>) -> Result<Self> {
        let all = [Some(access_key), Some(secret_key), session_token];
        let is_wrong = |text: &str| text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic());
        if all.into_iter().flatten().any(is_wrong) {
            return Err(Error::new(
                ErrorKind::Input,
                "the credentials of object storage have a wrong character",
            )
            .with_hint("set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN without blanks"));
        }
        let session_token = session_token.map(str::to_owned);
        Ok(Self { access_key: access_key.to_owned(), secret_key: secret_key.to_owned(), session_token })
    }

    /// A text of a server, which may repeat what it was sent, without them.
    pub(crate) fn redact(&self, text: &str) -> String {
        let secrets = [Some(&self.secret_key), self.session_token.as_ref(), Some(&self.access_key)];
        secrets.into_iter().flatten().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "…"))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// How to reach object storage.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Keys that sign requests.
    pub credentials: Credentials,
    /// Region of the bucket, which is part of signatures.
    pub region: String,
    /// Server in place of AWS, such as `https://minio.example.org:9000`. The bucket is then the first part
    /// of paths.
    pub endpoint: Option<String>,
    /// Certificates in PEM in place of those of public authorities.
    pub authorities: Option<Vec<u8>>,
    /// First pause before a request is repeated; later ones grow.
    pub retry_delay: Duration,
    /// Longest time without progress of a request.
    pub timeout: Duration,
    /// Bytes of the largest file that is stored in one request, and of the parts of others: 5 MiB at least
    /// for servers other than those of tests. Files that need more than 9,000 parts have larger ones.
    pub part_bytes: u64,
}

impl Settings {
    /// Settings with these credentials, for AWS.
    #[must_use]
    pub fn new(credentials: Credentials) -> Self {
        Self {
            credentials,
            region: REGION_DEFAULT.to_owned(),
            endpoint: None,
            authorities: None,
            retry_delay: Duration::from_millis(200),
            timeout: Duration::from_secs(60),
            part_bytes: 16 << 20,
        }
    }

    /// Settings from variables: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`,
    /// `AWS_REGION` or `AWS_DEFAULT_REGION`, `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, and
    /// `AWS_CA_BUNDLE`, the path of a file. `variable`: the value of the variable with a name.
    ///
    /// # Errors
    /// Input: there are no credentials, or a value is wrong. Io: the file cannot be read.
    pub fn from_variables(location: &Location, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let first =
            |names: &[&str]| names.iter().find_map(|name| variable(name)).map(|text| text.trim().to_owned());
        let set = |name: &str| first(&[name]).filter(|text| !text.is_empty());
        let missing: Vec<&str> = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
            .into_iter()
            .filter(|name| set(name).is_none())
            .collect();
        let (Some(access_key), Some(secret_key)) = (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY"))
        else {
            let what =
                format!("there are no credentials for {location}: {} is not set", missing.join(" and "));
            return Err(Error::new(ErrorKind::Input, what).with_hint(
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; those of a profile or a role: \
                 eval \"$(aws configure export-credentials --format env)\"",
            ));
        };
        let token = set("AWS_SESSION_TOKEN");
        let mut settings = Self::new(Credentials::new(&access_key, &secret_key, token.as_deref())?);
        if let Some(region) = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")) {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            if !region.bytes().all(is_plain) {
                return Err(Error::new(ErrorKind::Input, format!("AWS_REGION: {region:?} is no region"))
                    .with_hint("write for example eu-central-1"));
            }
            settings.region = region;
        }
        let endpoint = set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL"));
        settings.endpoint = endpoint.map(|text| endpoint_of(&text)).transpose()?;
        if let Some(path) = set("AWS_CA_BUNDLE") {
            let read = std::fs::read(&path);
            let read = read.map_err(|error| Error::io(format_args!("read AWS_CA_BUNDLE {path}"), &error));
            settings.authorities = Some(read?);
        }
        Ok(settings)
    }
}

/// Scheme, host and path of a URL, without `/` at its end.
fn endpoint_of(text: &str) -> Result<String> {
    let wrong = |what: &str| {
        // A URL may have a password.
        Error::new(ErrorKind::Input, format!("AWS_ENDPOINT_URL is no address of a server: {what}"))
            .with_hint("write https://HOST, or http://HOST:PORT for a connection that is not encrypted")
    };
    let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it does not begin with https://"))?;
    let scheme = scheme.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "https" => ":443",
        "http" => ":80",
        _ => return Err(wrong("it does not begin with https:// or http://")),
    };
    let rest = rest.trim_end_matches('/');
    let (host, path) =
        rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
    let is_host =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']' | b'_');
    if host.is_empty() || !host.bytes().all(is_host) {
        return Err(wrong("it has no host, or more than host and port"));
    }
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'~' | b'/');
    if !path.bytes().all(is_path) {
        return Err(wrong("its path has other characters than letters and digits"));
    }
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix(default_port).unwrap_or(&host);
    Ok(format!("{scheme}://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings> {
        let location = "s3://backups/x".parse()?;
        Settings::from_variables(&location, &|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "hidden")];

    #[test]
    fn settings_are_those_of_the_variables() {
        let found = settings(&KEYS).expect("settings");
        assert_eq!((found.region.as_str(), found.endpoint), ("us-east-1", None));
        let more = [
            ("AWS_DEFAULT_REGION", "eu-west-1"),
            ("AWS_ENDPOINT_URL", "http://other"),
            ("AWS_ENDPOINT_URL_S3", "HTTPS://Minio.Example.org:443/"),
            ("AWS_SESSION_TOKEN", "hidden-token"),
        ];
        let found = settings(&[&KEYS[..], &more[..]].concat()).expect("settings");
        assert_eq!(found.region, "eu-west-1");
        assert_eq!(found.endpoint.as_deref(), Some("https://minio.example.org"));
        assert!(!format!("{found:?}").contains("hidden"), "{found:?}");
        assert_eq!(found.credentials.redact("a hidden b hidden-token c AKID"), "a … b …-token c …");
        assert_eq!(endpoint_of("http://127.0.0.1:9000/a/").expect("one"), "http://127.0.0.1:9000/a");
        assert_eq!(endpoint_of("http://[::1]:80").expect("one"), "http://[::1]");
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (variables, message) in [
            (&KEYS[..1], "AWS_SECRET_ACCESS_KEY is not set"),
            (&[], "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is not set"),
        ] {
            let error = settings(variables).expect_err(message);
            assert!(error.message().contains(message) && error.hint().is_some(), "{error}");
            assert!(error.message().contains("s3://backups/x"), "{error}");
        }
        for wrong in ["minio:9000", "ftp://x", "https://", "https://user:hidden@x", "http://x/?hidden"] {
            let error = settings(&[&KEYS[..], &[("AWS_ENDPOINT_URL", wrong)]].concat()).expect_err(wrong);
            assert!(error.kind() == ErrorKind::Input && !error.message().contains("hidden"), "{error}");
        }
        for (name, value) in
            [("AWS_REGION", "eu west"), ("AWS_SESSION_TOKEN", "a\nb"), ("AWS_CA_BUNDLE", "/nowhere/at/all")]
        {
            assert!(settings(&[&KEYS[..], &[(name, value)]].concat()).is_err(), "{name}");
        }
    }
}
