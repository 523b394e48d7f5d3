//! Signatures of requests, as in version 4 of AWS: the value of the header `Authorization`.

use crate::settings::Credentials;
use ring::{digest, hmac};
use time::OffsetDateTime;
use vervet_model::hex;

/// Hash of no content.
pub(crate) const EMPTY_HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// What is signed of a request.
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a str,
    /// Path, encoded.
    pub(crate) path: &'a str,
    /// Query, encoded, its parts in their order ([`query`]).
    pub(crate) query: &'a str,
    /// Names in lower case, in their order, with values.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// Hash of the content.
    pub(crate) content_hash: &'a str,
}

/// SHA-256 in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// The time in the form of a signature.
pub(crate) fn stamp(time: OffsetDateTime) -> String {
    let (date, clock) = (time.date(), time.time());
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second()
    )
}

/// Encodes all bytes of a text but letters, digits, `-`, `.`, `_`, `~` and those of `kept`.
pub(crate) fn encoded(text: &str, kept: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let character = char::from(byte);
        let is_plain = character.is_ascii_alphanumeric() || "-._~".contains(character);
        if is_plain || kept.contains(character) {
            encoded.push(character);
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The text of a query.
pub(crate) fn query(parts: &[(&str, &str)]) -> String {
    let mut parts: Vec<String> =
        parts.iter().map(|(name, value)| format!("{}={}", encoded(name, ""), encoded(value, ""))).collect();
    parts.sort();
    parts.join("&")
}

/// The value of the header. `stamp`: the header `x-amz-date`, which is among the signed ones.
pub(crate) fn authorization(
    credentials: &Credentials,
    region: &str,
    stamp: &str,
    signed: &Signed<'_>,
) -> String {
    let names: Vec<&str> = signed.headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let headers: String =
        signed.headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let request = format!(
        "{}\n{}\n{}\n{headers}\n{names}\n{}",
        signed.method, signed.path, signed.query, signed.content_hash
    );
    let date = stamp.get(..8).unwrap_or_default();
    let scope = format!("{date}/{region}/s3/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{}", hash(request.as_bytes()));
    let begin = format!("AWS4{}", credentials.secret_key).into_bytes();
    let key = [date, region, "s3", "aws4_request"].iter().fold(begin, |key, part| mac(&key, part));
    let signature = hex(&mac(&key, &text));
    let access_key = &credentials.access_key;
    format!("AWS4-HMAC-SHA256 Credential={access_key}/{scope},SignedHeaders={names},Signature={signature}")
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the documentation of AWS, "Signature Calculations for the Authorization Header".
    #[test]
    fn signatures_are_those_of_the_examples() {
        let credentials =
            Credentials::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None);
        let credentials = credentials.expect("keys");
        let host = ("host", "examplebucket.s3.amazonaws.com");
        let (date, empty) = (("x-amz-date", "20130524T000000Z"), ("x-amz-content-sha256", EMPTY_HASH));
        let content_hash = hash(b"Welcome to Amazon S3.");
        let put = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            host,
            ("x-amz-content-sha256", &content_hash),
            date,
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let list = query(&[("prefix", "J"), ("max-keys", "2")]);
        let cases = [
            (
                ("GET", "/test.txt", "", EMPTY_HASH),
                &[host, ("range", "bytes=0-9"), empty, date][..],
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                ("PUT", &format!("/{}", encoded("test$file.text", "/")), "", &content_hash),
                &put,
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            (
                ("GET", "/", "lifecycle=", EMPTY_HASH),
                &[host, empty, date],
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                ("GET", "/", &list, EMPTY_HASH),
                &[host, empty, date],
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ];
        for ((method, path, query, content_hash), headers, signature) in cases {
            let signed = Signed { method, path, query, headers, content_hash };
            let value = authorization(&credentials, "us-east-1", "20130524T000000Z", &signed);
            let scope = "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,";
            assert!(value.contains(scope) && value.ends_with(&format!("Signature={signature}")), "{value}");
        }
    }

    #[test]
    fn times_and_texts_are_encoded() {
        let time = OffsetDateTime::from_unix_timestamp(1_369_353_609).expect("a time");
        assert_eq!(stamp(time), "20130524T000009Z");
        assert_eq!(encoded("a b/ü~.txt", "/"), "a%20b/%C3%BC~.txt");
        assert_eq!(query(&[("uploads", ""), ("a", "b/c")]), "a=b%2Fc&uploads=");
        assert_eq!(hash(b""), EMPTY_HASH);
    }
}
