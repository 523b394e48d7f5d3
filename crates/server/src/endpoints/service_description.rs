//! The service description (SPARQL 1.1 Service Description, W3C 2013): the features of an endpoint, as RDF.
//!
//! The description is an ordinary graph: a small in-memory database holds it and writes it in the requested
//! format.

use crate::context::RequestContext;
use crate::endpoints::query;
use crate::http::content_negotiation::{AcceptHeader, GRAPH_FORMATS};
use crate::http::encoding::Encoding;
use crate::http::reply::{Outcome, full};
use crate::http::request::address;
use hyper::StatusCode;
use hyper::header::VARY;
use std::fmt::Write;
use vervet::{Database, Format};

const FORMATS: [(&str, &str); 10] = [
    ("result", "SPARQL_Results_JSON"),
    ("result", "SPARQL_Results_XML"),
    ("result", "SPARQL_Results_CSV"),
    ("result", "SPARQL_Results_TSV"),
    ("both", "Turtle"),
    ("both", "N-Triples"),
    ("both", "RDF_XML"),
    ("both", "JSON-LD"),
    ("both", "N-Quads"),
    ("both", "TriG"),
];

/// Handles a request without a query. `takes_updates`: the endpoint also takes updates.
pub(crate) async fn answer(context: &RequestContext<'_>, takes_updates: bool) -> Outcome {
    let (format, content_type) = AcceptHeader::of(&context.parts.headers).choose(GRAPH_FORMATS)?;
    let path = context.parts.uri.path();
    let text = description(address(context.parts, context.tls, path).as_ref(), takes_updates, context);
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text)?;
    let options = query::options(context.state, &crate::http::request::Parameters::default())?;
    let mut bytes = Vec::new();
    database.write_graph(None, &options, format, &mut bytes)?;
    let mut reply = full(StatusCode::OK, content_type, bytes);
    crate::http::reply::set(&mut reply, VARY, "Accept");
    debug_assert!(Encoding::Identity.name().is_none(), "it is too short to be compressed");
    Ok(reply)
}

fn description(
    address: Option<&vervet::NamedNode>,
    takes_updates: bool,
    context: &RequestContext<'_>,
) -> String {
    let address = address.map_or_else(|| "<urn:vervet:service>".to_owned(), ToString::to_string);
    let mut text = format!(
        "@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .\n\
         @prefix formats: <http://www.w3.org/ns/formats/> .\n\
         @prefix void: <http://rdfs.org/ns/void#> .\n\
         [] a sd:Service ; sd:endpoint {address} ; sd:supportedLanguage sd:SPARQL11Query"
    );
    if takes_updates && !context.state.options.refuses_changes() {
        text += ", sd:SPARQL11Update";
    }
    for (kind, name) in FORMATS {
        if kind == "both" {
            let _ = write!(text, " ; sd:inputFormat formats:{name}");
        }
        let _ = write!(text, " ; sd:resultFormat formats:{name}");
    }
    let snapshot = context.state.database.snapshot();
    let _ = write!(
        text,
        " ;\n sd:defaultDataset [ a sd:Dataset ; sd:defaultGraph [ a sd:Graph ] ; void:triples {} ] .\n",
        snapshot.statement_count()
    );
    text
}
