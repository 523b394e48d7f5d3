//! Errors of requests: what happened, where, and what to do.

use crate::xml::element;
use vervet_model::{Error, ErrorKind};

/// Most characters of a reason that a server gives.
const REASON_CHARACTERS_MAX: usize = 300;

/// A request that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// HTTP status; 0: there is no answer.
    pub(crate) status: u16,
    /// The code of the answer, such as `NoSuchKey`.
    pub(crate) code: String,
    /// The same request may succeed later.
    pub(crate) is_transient: bool,
    /// How often it was sent.
    pub(crate) attempts: u32,
}

impl Failure {
    /// One that no retry helps.
    pub(crate) fn last(error: Error) -> Self {
        Self { error, status: 0, code: String::new(), is_transient: false, attempts: 1 }
    }

    /// One without a complete answer.
    pub(crate) fn transient(error: Error) -> Self {
        Self { is_transient: true, ..Self::last(error) }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let Failure { error, is_transient, attempts, .. } = failure;
        if !is_transient || attempts < 2 {
            return error;
        }
        let message = format!("{}, {attempts} times", error.message());
        let hint = error.hint().unwrap_or("run it again when the server is up").to_owned();
        Self::new(error.kind(), message).with_hint(hint)
    }
}

/// A request whose connection failed. `what`: the object.
pub(crate) fn unreachable(server: &str, what: &str, error: &ureq::Error) -> Failure {
    let message = format!("{what}: {server} does not answer: {error}");
    let (hint, is_transient) = match error {
        ureq::Error::HostNotFound => {
            ("check the network, and AWS_ENDPOINT_URL or, for AWS, AWS_REGION", true)
        }
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::Pem(_) => {
            ("AWS_CA_BUNDLE names a file with the certificate of the authority of a private server", false)
        }
        ureq::Error::Io(inner) if inner.kind() == std::io::ErrorKind::InvalidData => {
            ("AWS_CA_BUNDLE names a file with the certificate of the authority of a private server", false)
        }
        ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::ConnectionFailed => {
            ("check the network, and that AWS_ENDPOINT_URL names a server that runs", true)
        }
        ureq::Error::Protocol(_) => {
            ("check that AWS_ENDPOINT_URL names a server with the interface of S3", true)
        }
        _ => ("check AWS_ENDPOINT_URL and the variables of proxies", false),
    };
    let error = Error::new(ErrorKind::Unavailable, one_line(&message)).with_hint(hint);
    if is_transient { Failure::transient(error) } else { Failure::last(error) }
}

/// An answer that is no success.
pub(crate) struct Refused<'a> {
    /// The object, or the bucket.
    pub(crate) what: &'a str,
    pub(crate) method: &'a str,
    pub(crate) status: u16,
    /// The content of the answer, without credentials.
    pub(crate) text: &'a str,
    /// The time of the server.
    pub(crate) date: Option<&'a str>,
    /// Region of the bucket, if the answer says it, and the one of the signature.
    pub(crate) region: (Option<&'a str>, &'a str),
}

impl Refused<'_> {
    pub(crate) fn failure(&self) -> Failure {
        let &Self { what, method, status, text, date, region } = self;
        let code = element(text, "Error/Code").unwrap_or_default();
        let reason = element(text, "Error/Message").unwrap_or_default();
        let verb = match method {
            "GET" | "HEAD" => "reading",
            "DELETE" => "removing",
            _ => "writing",
        };
        let names = [code.as_str(), reason.as_str()].into_iter().filter(|text| !text.is_empty());
        let names: Vec<&str> = names.collect();
        let reason = if names.is_empty() { String::new() } else { format!(": {}", names.join(": ")) };
        let message = one_line(&format!("{what}: {verb} was refused with HTTP {status}{reason}"));
        let is_transient = matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
            || matches!(
                code.as_str(),
                "RequestTimeout"
                    | "SlowDown"
                    | "ConditionalRequestConflict"
                    | "InternalError"
                    | "ServiceUnavailable"
            );
        let other_region = region.0.filter(|other| *other != region.1);
        let (kind, hint) = match (code.as_str(), status) {
            _ if is_transient => {
                (ErrorKind::Unavailable, "the server is busy or has failed: run it again later".to_owned())
            }
            ("RequestTimeTooSkewed" | "RequestExpired", _) => {
                let at = date.map(|date| format!(": for the server it is {date}")).unwrap_or_default();
                (ErrorKind::Input, format!("set the clock of this machine{at}"))
            }
            ("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired", _) => {
                let hint = "the credentials have ended or are wrong: get new ones, with AWS_SESSION_TOKEN";
                (ErrorKind::Input, hint.to_owned())
            }
            ("InvalidAccessKeyId" | "SignatureDoesNotMatch" | "UnauthorizedAccess", _) | (_, 401) => {
                let hint = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION";
                (ErrorKind::Input, hint.to_owned())
            }
            ("NoSuchBucket", _) => {
                (ErrorKind::Input, "make the bucket, or check its name and AWS_ENDPOINT_URL".to_owned())
            }
            ("AuthorizationHeaderMalformed" | "PermanentRedirect" | "TemporaryRedirect", _)
            | (_, 301 | 307) => {
                let value = other_region.map(|other| format!("={other}")).unwrap_or_default();
                (ErrorKind::Input, format!("set AWS_REGION{value} to the region of the bucket"))
            }
            (_, 400) if other_region.is_some() => {
                let value = other_region.unwrap_or_default();
                (ErrorKind::Input, format!("set AWS_REGION={value}, the region of the bucket"))
            }
            (_, 403) => {
                let hint = "the credentials need s3:ListBucket for the bucket, and s3:GetObject, s3:PutObject, \
                            s3:AbortMultipartUpload and s3:DeleteObject for its objects";
                (ErrorKind::Input, hint.to_owned())
            }
            (_, 507) => (ErrorKind::Unavailable, "the server has no space left".to_owned()),
            _ => {
                let hint = "check that AWS_ENDPOINT_URL names a server with the interface of S3";
                (ErrorKind::Unavailable, hint.to_owned())
            }
        };
        let error = Error::new(kind, message).with_hint(one_line(&hint));
        Failure { error, status, code, is_transient, attempts: 1 }
    }
}

/// A text of a server as a part of a line.
pub(crate) fn one_line(text: &str) -> String {
    let mut line: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(2 * REASON_CHARACTERS_MAX)
        .collect();
    line.truncate(line.trim_end().trim_end_matches('.').len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, code: &str, region: Option<&str>) -> Failure {
        let text =
            format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>It\nis so.</Message></Error>");
        Refused {
            what: "s3://b/x",
            method: "GET",
            status,
            text: &text,
            date: Some("Tue, 01 Dec 2026 00:00:00 GMT"),
            region: (region, "us-east-1"),
        }
        .failure()
    }

    #[test]
    fn refusals_say_what_to_do() {
        let cases = [
            (403, "AccessDenied", None, "s3:PutObject"),
            (403, "SignatureDoesNotMatch", None, "AWS_SECRET_ACCESS_KEY"),
            (403, "RequestTimeTooSkewed", None, "set the clock of this machine: for the server it is Tue"),
            (400, "ExpiredToken", None, "AWS_SESSION_TOKEN"),
            (404, "NoSuchBucket", None, "make the bucket"),
            (301, "PermanentRedirect", Some("eu-west-1"), "set AWS_REGION=eu-west-1 "),
            (400, "AuthorizationHeaderMalformed", None, "set AWS_REGION "),
            (400, "Other", Some("eu-west-1"), "AWS_REGION=eu-west-1,"),
            (418, "Other", None, "AWS_ENDPOINT_URL"),
        ];
        for (status, code, region, hint) in cases {
            let failure = failure(status, code, region);
            assert!(!failure.is_transient && failure.code == code);
            let found = failure.error.hint().expect("a hint");
            assert!(found.contains(hint), "{found}");
            let message = format!("s3://b/x: reading was refused with HTTP {status}: {code}: It is so");
            assert_eq!(failure.error.message(), message);
        }
        for (status, code) in [(503, "SlowDown"), (500, "InternalError"), (400, "RequestTimeout"), (502, "")]
        {
            assert!(failure(status, code, None).is_transient, "{status}");
        }
        let mut busy = failure(503, "SlowDown", None);
        busy.attempts = 6;
        assert!(Error::from(busy).message().ends_with(": It is so, 6 times"));
        let hostile = "<Error><Code>".repeat(10_000);
        let refused = Refused {
            what: "x",
            method: "PUT",
            status: 400,
            text: &hostile,
            date: None,
            region: (None, "x"),
        };
        assert_eq!(refused.failure().error.message(), "x: writing was refused with HTTP 400");
        assert_eq!(one_line(&"a\n".repeat(1_000)).len(), 599);
    }
}
