//! Content negotiation (RFC 9110, §12.5): the format of an answer from the `Accept` header.
//!
//! Qualities are in thousandths, so that they compare exactly. Among formats of equal quality, the first in
//! our lists wins. A range such as `text/*` applies to every type that it covers, unless a more specific
//! entry covers the type.

use crate::http::reply::Failure;
use hyper::header::ACCEPT;
use hyper::{HeaderMap, StatusCode};
use vervet::OutputFormat;

/// A media type that clients can request, its format, and the `Content-Type` of the answer.
pub(crate) type Offer<F = OutputFormat> = (&'static str, F, &'static str);

/// Formats of solutions.
pub(crate) const SOLUTION_FORMATS: &[Offer] = &[
    ("application/sparql-results+json", OutputFormat::Json, "application/sparql-results+json"),
    ("application/json", OutputFormat::Json, "application/json"),
    ("application/sparql-results+xml", OutputFormat::Xml, "application/sparql-results+xml"),
    ("application/xml", OutputFormat::Xml, "application/xml"),
    ("text/xml", OutputFormat::Xml, "text/xml; charset=utf-8"),
    ("text/csv", OutputFormat::Csv, "text/csv; charset=utf-8"),
    ("text/tab-separated-values", OutputFormat::Tsv, "text/tab-separated-values; charset=utf-8"),
    ("text/plain", OutputFormat::Table, "text/plain; charset=utf-8"),
    ("application/vnd.apache.arrow.stream", OutputFormat::Arrow, "application/vnd.apache.arrow.stream"),
];

/// Formats of graphs.
pub(crate) const GRAPH_FORMATS: &[Offer] = &[
    ("text/turtle", OutputFormat::Turtle, "text/turtle; charset=utf-8"),
    ("application/n-triples", OutputFormat::NTriples, "application/n-triples"),
    ("application/rdf+xml", OutputFormat::RdfXml, "application/rdf+xml"),
    ("application/ld+json", OutputFormat::JsonLd, "application/ld+json"),
    ("application/n-quads", OutputFormat::NQuads, "application/n-quads"),
    ("application/trig", OutputFormat::TriG, "application/trig"),
    ("application/json", OutputFormat::JsonLd, "application/json"),
    ("application/xml", OutputFormat::RdfXml, "application/xml"),
    ("text/xml", OutputFormat::RdfXml, "text/xml; charset=utf-8"),
    ("application/x-turtle", OutputFormat::Turtle, "text/turtle; charset=utf-8"),
    ("text/n3", OutputFormat::Turtle, "text/n3; charset=utf-8"),
    ("text/plain", OutputFormat::NTriples, "text/plain; charset=utf-8"),
];

/// Formats of whole datasets, where triples have graph names.
pub(crate) const DATASET_FORMATS: &[Offer] = &[
    ("application/n-quads", OutputFormat::NQuads, "application/n-quads"),
    ("application/trig", OutputFormat::TriG, "application/trig"),
    ("text/plain", OutputFormat::NQuads, "text/plain; charset=utf-8"),
];

/// The `Accept` header of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcceptHeader(Option<String>);

impl AcceptHeader {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values: Vec<&str> =
            headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        Self((!values.is_empty()).then(|| values.join(",")))
    }

    /// The offer with the highest quality.
    ///
    /// # Errors
    /// 406 with the list of offers.
    pub(crate) fn choose<F: Copy>(&self, offers: &[Offer<F>]) -> Result<(F, &'static str), Failure> {
        let Some(accept) = self.0.as_deref().filter(|accept| !accept.trim().is_empty()) else {
            let (_, format, content_type) = offers[0];
            return Ok((format, content_type));
        };
        let mut best: Option<(u32, &Offer<F>)> = None;
        for offer in offers {
            let quality = quality(accept, offer.0);
            if quality > best.map_or(0, |(quality, _)| quality) {
                best = Some((quality, offer));
            }
        }
        match best {
            Some((_, &(_, format, content_type))) => Ok((format, content_type)),
            None => {
                let types: Vec<&str> = offers.iter().map(|(name, ..)| *name).collect();
                let message = format!("none of the formats in Accept fits this answer: {accept}");
                Err(Failure::new(StatusCode::NOT_ACCEPTABLE, message)
                    .hint(format!("available types: {}", types.join(", "))))
            }
        }
    }

    /// Whether the client prefers errors as JSON to text.
    pub(crate) fn prefers_json(&self) -> bool {
        let Some(accept) = self.0.as_deref() else { return false };
        let of = |name| named_quality(accept, name);
        let json = ["application/json", "application/sparql-results+json", "application/ld+json"];
        let json = json.into_iter().map(of).max().unwrap_or(0);
        json > 0 && json > of("text/plain")
    }
}

/// The quality of `name`, a media type or an encoding, in thousandths; 0: not acceptable.
pub(crate) fn quality(accept: &str, name: &str) -> u32 {
    let kind = name.split_once('/').map(|(kind, _)| kind);
    let mut best = (0, 0);
    for (range, quality) in entries(accept) {
        let specific = if range.eq_ignore_ascii_case(name) {
            3
        } else if kind.is_some_and(|kind| {
            range.strip_suffix("/*").is_some_and(|range| range.eq_ignore_ascii_case(kind))
        }) {
            2
        } else if range == "*/*" || range == "*" {
            1
        } else {
            continue;
        };
        if specific > best.0 {
            best = (specific, quality);
        }
    }
    best.1
}

/// [`quality`] by an exact entry.
fn named_quality(accept: &str, name: &str) -> u32 {
    entries(accept).find(|(range, _)| range.eq_ignore_ascii_case(name)).map_or(0, |(_, quality)| quality)
}

/// The entries of a list with their qualities; parameters other than `q` are ignored.
fn entries(accept: &str) -> impl Iterator<Item = (&str, u32)> {
    accept.split(',').map(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let range = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| thousandths(value.trim()))
        });
        (range, quality.unwrap_or(1000))
    })
}

/// Parses `1`, `0.8`, `0.125`; anything else is 0.
fn thousandths(text: &str) -> u32 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{fraction:0<3}");
    match (whole, digits.get(..3).and_then(|digits| digits.parse::<u32>().ok())) {
        ("1", _) => 1000,
        ("0" | "", Some(fraction)) => fraction,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(offers: &[Offer], accept: &str, expected: Option<OutputFormat>) {
        let chosen = AcceptHeader(Some(accept.to_owned())).choose(offers);
        assert_eq!(chosen.ok().map(|(format, _)| format), expected, "{accept}");
    }

    #[test]
    fn the_best_offer_wins() {
        check(SOLUTION_FORMATS, "*/*", Some(OutputFormat::Json));
        check(SOLUTION_FORMATS, "", Some(OutputFormat::Json));
        check(SOLUTION_FORMATS, "text/*;q=0.3, text/csv;q=0.2", Some(OutputFormat::Xml));
        check(SOLUTION_FORMATS, "text/csv;q=0.9, text/tab-separated-values", Some(OutputFormat::Tsv));
        check(
            SOLUTION_FORMATS,
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            Some(OutputFormat::Xml),
        );
        check(SOLUTION_FORMATS, "text/html", None);
        check(SOLUTION_FORMATS, "application/sparql-results+json;q=0, */*;q=0.1", Some(OutputFormat::Json));
        check(SOLUTION_FORMATS, "APPLICATION/SPARQL-RESULTS+XML ; Q=1.0", Some(OutputFormat::Xml));
        check(SOLUTION_FORMATS, "text/csv;q=2, text/plain;q=nonsense", None);
        check(
            GRAPH_FORMATS,
            "application/ld+json;profile=\"x\", text/turtle;q=0.5",
            Some(OutputFormat::JsonLd),
        );
        check(
            GRAPH_FORMATS,
            "application/rdf+xml;q=0.5,application/n-triples;q=0.55",
            Some(OutputFormat::NTriples),
        );
    }

    #[test]
    fn clients_that_accept_json_get_json_errors() {
        let json = |accept: &str| AcceptHeader(Some(accept.to_owned())).prefers_json();
        assert!(json("application/sparql-results+json"));
        assert!(json("application/json, */*;q=0.1"));
        assert!(!json("*/*"));
        assert!(!json("text/plain, application/json;q=0.5"));
        assert!(!AcceptHeader(None).prefers_json());
    }
}
