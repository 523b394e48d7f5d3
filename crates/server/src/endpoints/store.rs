//! SPARQL 1.1 Graph Store HTTP Protocol: get, put, add to and delete graphs.
//!
//! # Shape
//! `/store?default` and `/store?graph=IRI` name a graph; `/store/NAME` is itself the IRI of a graph, as the
//! client wrote it. `/store` alone means all graphs: it is read as quads and accepts quads; a document of
//! triples sent there becomes a new graph. Each change is one transaction of equivalent SPARQL 1.1 Update
//! operations (by the specification's own definitions): `DROP SILENT`, and `LOAD` of the body.
//! # Invariants
//! A graph exists if it has a statement: empty graphs are not stored.
//! # Not here
//! `PATCH`; use `/update`.

use crate::context::RequestContext;
use crate::endpoints::changes::{POSITION, has_feed};
use crate::endpoints::query;
use crate::endpoints::update;
use crate::http::content_negotiation::{AcceptHeader, DATASET_FORMATS, GRAPH_FORMATS};
use crate::http::encoding::Encoding;
use crate::http::multipart;
use crate::http::reply::{Failure, Outcome, empty, not_allowed, set};
use crate::http::request::{DOCUMENT_BYTES, MediaType, Parameters, address, iri, read_body};
use crate::options::Role;
use crate::security::auth;
use crate::state::State;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, LOCATION};
use hyper::{Method, StatusCode};
use std::io::{self, Cursor, Read};
use std::time::Instant;
use vervet::update::{Documents, UpdateOptions};
use vervet::{
    Answer, CancelToken, Error, ErrorKind, FeedPosition, Format, GraphSnapshot, NamedNode, OutputFormat,
    QueryOptions, Source, Transaction,
};

/// The graph of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Graph {
    Default,
    Named(NamedNode),
    /// All graphs.
    All,
}

impl Graph {
    fn named(&self) -> Option<&NamedNode> {
        match self {
            Self::Named(name) => Some(name),
            _ => None,
        }
    }

    /// A display name.
    fn label(&self) -> &str {
        match self {
            Self::Default => "the default graph",
            Self::Named(name) => name.as_str(),
            Self::All => "all graphs",
        }
    }
}

/// Handles a request.
pub(crate) async fn answer(context: &mut RequestContext<'_>, body: Incoming) -> Outcome {
    let parameters = Parameters::of_query(context.parts);
    let graph = graph(context, &parameters)?;
    match context.parts.method {
        Method::GET | Method::HEAD => get(context, graph).await,
        Method::PUT => change(context, graph, body, &parameters, true).await,
        Method::POST => change(context, graph, body, &parameters, false).await,
        Method::DELETE => delete(context, graph, &parameters).await,
        _ => Err(not_allowed("GET, HEAD, PUT, POST, DELETE, OPTIONS")),
    }
}

fn graph(context: &RequestContext<'_>, parameters: &Parameters) -> Outcome<Graph> {
    let path = context.parts.uri.path();
    let named = parameters.one("graph")?;
    let default = parameters.has("default");
    let direct = path.strip_prefix("/store").map(|rest| rest.trim_start_matches('/')).unwrap_or_default();
    match (named, default, direct) {
        (Some(name), false, "") => Ok(Graph::Named(iri("graph", name)?)),
        (None, true, "") => Ok(Graph::Default),
        (None, false, "") => Ok(Graph::All),
        (None, false, _) => match address(context.parts, context.tls, path) {
            Some(name) => Ok(Graph::Named(name)),
            None => {
                Err(Failure::bad("the address is not an IRI").hint("send a Host, or use /store?graph=IRI"))
            }
        },
        _ => Err(Failure::bad("the address names more than one graph")
            .hint("use one of /store?graph=IRI, /store?default, /store/NAME")),
    }
}

async fn get(context: &mut RequestContext<'_>, graph: Graph) -> Outcome {
    context.allow(Role::Read).await?;
    let (state, headers) = (context.state, &context.parts.headers);
    let accepted = AcceptHeader::of(headers);
    if let Some(name) = graph.named()
        && !graph_exists(state, name)?
    {
        return Err(missing(name));
    }
    let offers = if graph == Graph::All { DATASET_FORMATS } else { GRAPH_FORMATS };
    let (format, content_type) = accepted.choose(offers)?;
    if context.parts.method == Method::HEAD {
        let mut reply = empty(StatusCode::OK);
        set(&mut reply, CONTENT_TYPE, content_type);
        return Ok(reply);
    }
    let encoding = Encoding::choose(headers);
    let parameters = Parameters::of_query(context.parts);
    let timeout = parameters.timeout(state.options.limits.export_timeout)?;
    let started = Instant::now();
    let deadline = started + timeout;
    let is_heavy = statements(state, &graph)? >= HEAVY_STATEMENTS;
    let mut options = query::options(state, &Parameters::default())?;
    (options.timeout, options.started) = (Some(timeout), Some(started));
    let exported = match &graph {
        Graph::All => feed_snapshot(context).await?,
        _ => None,
    };
    let position = exported.as_ref().map(|(position, _)| position.to_string());
    let name = match &graph {
        Graph::All => "all graphs".to_owned(),
        Graph::Default => "the default graph".to_owned(),
        Graph::Named(name) => name.as_str().to_owned(),
    };
    let mut reply = query::write(
        context,
        (&name, is_heavy),
        content_type,
        (encoding, deadline),
        move |state, running, out| {
            let mut options = options.with_cancel(&running.token);
            options.progress = Some(running.entry.progress.clone());
            let database = &state.database;
            let quads_format = if format == OutputFormat::TriG { Format::TriG } else { Format::NQuads };
            match &graph {
                Graph::All => {
                    let snapshot = match &exported {
                        Some((_, snapshot)) => snapshot.clone(),
                        None => database.snapshot(),
                    };
                    let exported = database.export_snapshot(&snapshot, quads_format, &options, out);
                    exported.map_err(|error| match error.kind() {
                        ErrorKind::Io if Instant::now() >= deadline => {
                            Error::new(ErrorKind::Deadline, "the export took too long")
                        }
                        _ => error,
                    })
                }
                Graph::Default => Ok(database.write_graph(None, &options, format, out)?.rows),
                Graph::Named(name) => Ok(database.write_graph(Some(name), &options, format, out)?.rows),
            }
        },
    )
    .await?;
    if let Some(position) = position {
        set(&mut reply, POSITION, &position);
    }
    Ok(reply)
}

/// The current graph with its position in the change feed; `None`: there is no feed, or its log cannot be
/// read.
async fn feed_snapshot(context: &RequestContext<'_>) -> Outcome<Option<(FeedPosition, GraphSnapshot)>> {
    let state = context.state;
    if !has_feed(state) || !state.database.has_feed() {
        return Ok(None);
    }
    update::work(state, context.describe("position"), |state, _| Ok(state.database.feed_snapshot().ok()))
        .await
}

/// From this many statements on, a response takes 1 ms or more, like a heavy query.
const HEAVY_STATEMENTS: u64 = 2000;

/// The number of statements of a graph.
fn statements(state: &State, graph: &Graph) -> Outcome<u64> {
    let snapshot = state.database.snapshot();
    let view = snapshot.as_snapshot();
    let named = || view.graphs().iter().map(|(_, count)| *count).sum::<u64>();
    Ok(match graph {
        Graph::All => view.statement_count(),
        Graph::Default => view.statement_count().saturating_sub(named()),
        Graph::Named(name) => {
            let id = view.lookup(name.as_ref().into())?;
            view.graphs().iter().find(|(graph, _)| Some(*graph) == id).map_or(0, |(_, count)| *count)
        }
    })
}

/// A document of a request.
#[derive(Clone)]
struct Document {
    extension: &'static str,
    bytes: Bytes,
}

impl Document {
    fn new(extension: &'static str, bytes: Bytes) -> Self {
        Self { extension, bytes }
    }

    fn has_quads(&self) -> bool {
        matches!(self.extension, "nq" | "trig")
    }
}

/// `PUT` (replaces) and `POST` (adds).
async fn change(
    context: &mut RequestContext<'_>,
    graph: Graph,
    body: Incoming,
    parameters: &Parameters,
    replace: bool,
) -> Outcome {
    if let Err(failure) = context.allow(Role::Write).await {
        if failure.is_elsewhere() {
            // It is sent on with its body.
            read_body(context, body, DOCUMENT_BYTES).await?;
        }
        return Err(failure);
    }
    let (state, parts) = (context.state, context.parts);
    let media_type =
        MediaType::of(&parts.headers).ok_or_else(|| unsupported("the request has no Content-Type"))?;
    if media_type.name != "multipart/form-data" {
        extension(&media_type)?;
    }
    let options = query::options(state, parameters)?;
    let body = read_body(context, body, DOCUMENT_BYTES).await?;
    let documents = documents(&media_type, body)?;
    if documents.iter().any(|document| is_compressed(&document.bytes)) {
        let message = "compressed documents are not supported";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).hint("send it uncompressed"));
    }
    let mut location = None;
    let graph = match graph {
        Graph::All if replace => {
            return Err(Failure::bad("the address names no graph")
                .hint("use /store?graph=IRI, /store?default or /store/NAME"));
        }
        Graph::All if !documents.iter().any(Document::has_quads) => {
            let mut bytes = [0; 16];
            auth::random(&mut bytes)?;
            let path = format!("/store/{}", vervet_model::hex(&bytes));
            let name = address(parts, context.tls, &path)
                .ok_or_else(|| Failure::bad("the request has no usable Host to name a new graph by"))?;
            location = Some(name.as_str().to_owned());
            Graph::Named(name)
        }
        Graph::All => Graph::All,
        graph => {
            if documents.iter().any(Document::has_quads) {
                return Err(Failure::bad("a document of quads does not go into one graph")
                    .hint("POST it to /store, or send triples"));
            }
            graph
        }
    };
    let base = match &graph {
        Graph::Named(name) => Some(name.clone()),
        _ => address(parts, context.tls, parts.uri.path()),
    };
    let base = base.unwrap_or_else(|| NamedNode::new_unchecked("urn:vervet:body"));
    let description = context.describe(&format!("{} {}", parts.method, graph.label()));
    let created = update::work(state, description, move |state, token| {
        let deadline = Instant::now() + options.timeout.unwrap_or(state.options.limits.timeout);
        let options = options.with_cancel(token);
        let change = GraphChange {
            graph: &graph,
            base: &base,
            documents: &documents,
            replace,
            options: &options,
            deadline,
            token,
        };
        Ok(state.database.transact(|transaction| change.run(transaction))?)
    })
    .await?;
    let mut reply = empty(if created { StatusCode::CREATED } else { StatusCode::NO_CONTENT });
    if let Some(location) = location {
        *reply.status_mut() = StatusCode::CREATED;
        set(&mut reply, LOCATION, &location);
    }
    Ok(reply)
}

struct GraphChange<'a> {
    graph: &'a Graph,
    base: &'a NamedNode,
    documents: &'a [Document],
    replace: bool,
    options: &'a QueryOptions,
    deadline: Instant,
    token: &'a CancelToken,
}

/// A document reader with a deadline: parsers check no clock, and some are slow on deep nesting.
pub(crate) struct TimedReader {
    bytes: Cursor<Bytes>,
    deadline: Instant,
    token: CancelToken,
}

impl TimedReader {
    pub(crate) fn new(bytes: Bytes, deadline: Instant, token: CancelToken) -> Self {
        Self { bytes: Cursor::new(bytes), deadline, token }
    }
}

/// Whether a document is gzip or zstd, which the loader would decompress: a short document may expand without
/// limit.
pub(crate) fn is_compressed(document: &[u8]) -> bool {
    document.starts_with(&[0x1f, 0x8b]) || document.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
}

/// Bytes given to a parser at a time.
const READ_BYTES_MAX: usize = 8 << 10;

impl Read for TimedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.token.is_cancelled() || Instant::now() >= self.deadline {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the deadline has passed, or the request was cancelled",
            ));
        }
        let length = buffer.len().min(READ_BYTES_MAX);
        self.bytes.read(&mut buffer[..length])
    }
}

impl GraphChange<'_> {
    /// Runs the change; returns whether it created a graph.
    fn run(&self, transaction: &mut Transaction) -> vervet::Result<bool> {
        let (base, graph) = (self.base, self.graph);
        let existed = match graph {
            Graph::Named(name) => has_statements(transaction, name)?,
            _ => true,
        };
        let target = match graph {
            Graph::Named(name) => format!(" INTO GRAPH {name}"),
            _ => String::new(),
        };
        let mut text = match graph {
            Graph::Named(name) if self.replace => format!("DROP SILENT GRAPH {name} ;\n"),
            Graph::Default if self.replace => "DROP SILENT DEFAULT ;\n".to_owned(),
            _ => String::new(),
        };
        for _ in self.documents {
            text += &format!("LOAD {base}{target} ;\n");
        }
        let mut next = self.documents.iter();
        let open = move |_: &str| {
            // One `LOAD` for each document, in order.
            let document = next.next().ok_or_else(|| Error::internal("a document is missing"))?;
            let reader = TimedReader::new(document.bytes.clone(), self.deadline, self.token.clone());
            Ok(Source::reader(format!("body.{}", document.extension), reader))
        };
        let documents = Documents::new([base.as_str()], open);
        let mut options = UpdateOptions { query: self.options.clone(), documents: Some(documents) };
        match transaction.update_with(&text, &mut options) {
            // The parser only reports that reading failed.
            Err(error) if error.kind() == ErrorKind::Io && Instant::now() >= self.deadline => {
                Err(Error::new(ErrorKind::Deadline, "the document took too long to read"))
            }
            // The loader's own hints are about files.
            Err(error) if error.position().is_some() => {
                Err(error.with_hint("correct the document: nothing of the request was stored"))
            }
            done => {
                let report = done?;
                Ok(!existed && report.inserted > 0)
            }
        }
    }
}

async fn delete(context: &mut RequestContext<'_>, graph: Graph, parameters: &Parameters) -> Outcome {
    context.allow(Role::Write).await?;
    let options = query::options(context.state, parameters)?;
    let description = context.describe(&format!("DELETE {}", graph.label()));
    update::work(context.state, description, move |state, token| {
        let options = options.with_cancel(token);
        let existed = state.database.transact(|transaction| {
            let (existed, text) = match &graph {
                Graph::Named(name) => {
                    (has_statements(transaction, name)?, format!("DROP SILENT GRAPH {name}"))
                }
                Graph::Default => (true, "DROP SILENT DEFAULT".to_owned()),
                Graph::All => return Ok(None),
            };
            if existed {
                let mut options = UpdateOptions { query: options.clone(), documents: None };
                transaction.update_with(&text, &mut options)?;
            }
            Ok(Some(existed))
        })?;
        match (existed, graph) {
            (Some(false), Graph::Named(name)) => Err(missing(&name)),
            (None, _) => Err(Failure::bad("the address names no graph")
                .hint("to delete everything, send DROP ALL to /update")),
            _ => Ok(()),
        }
    })
    .await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

fn has_statements(transaction: &Transaction, name: &NamedNode) -> vervet::Result<bool> {
    let answer = transaction.query(&format!("ASK {{ GRAPH {name} {{ ?s ?p ?o }} }}"))?;
    Ok(matches!(answer, Answer::Boolean(true)))
}

fn graph_exists(state: &State, name: &NamedNode) -> Outcome<bool> {
    let snapshot = state.database.snapshot();
    let view = snapshot.as_snapshot();
    let Some(id) = view.lookup(name.as_ref().into())? else { return Ok(false) };
    Ok(view.graphs().iter().any(|(graph, count)| *graph == id && *count > 0))
}

fn missing(name: &NamedNode) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("there is no graph {name}"))
        .hint("a graph is there as long as it has statements")
}

fn unsupported(message: &str) -> Failure {
    Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).hint(
        "use Content-Type: text/turtle, application/n-triples, application/rdf+xml, application/ld+json, \
         application/n-quads, application/trig or multipart/form-data",
    )
}

/// The file extension that selects the format for the loader.
fn extension(media_type: &MediaType) -> Outcome<&'static str> {
    media_type.check_charset()?;
    let name = &media_type.name;
    rdf_extension(name).ok_or_else(|| unsupported(&format!("{name} is not a known type of RDF document")))
}

/// The extension of RDF documents of a media type.
pub(crate) fn rdf_extension(media_type: &str) -> Option<&'static str> {
    Some(match media_type {
        "text/turtle" | "application/x-turtle" | "text/n3" => "ttl",
        "application/n-triples" | "text/plain" => "nt",
        "application/rdf+xml" | "application/xml" | "text/xml" => "rdf",
        "application/ld+json" => "jsonld",
        "application/n-quads" => "nq",
        "application/trig" => "trig",
        _ => return None,
    })
}

fn documents(media_type: &MediaType, body: Bytes) -> Outcome<Vec<Document>> {
    if media_type.name != "multipart/form-data" {
        return Ok(vec![Document::new(extension(media_type)?, body)]);
    }
    let boundary =
        media_type.boundary.as_deref().ok_or_else(|| Failure::bad("multipart without boundary"))?;
    let parts = multipart::parts(&body, boundary)
        .map_err(|error| Failure::bad(format!("the multipart body is malformed: {error}")))?;
    parts
        .into_iter()
        .map(|part| {
            let by_name = part.file_name.as_deref().and_then(extension_of_name);
            let extension = match (&part.media_type, by_name) {
                // Browsers and curl do not know the media types of most of our extensions.
                (Some(media_type), Some(by_name)) if media_type.name == "application/octet-stream" => by_name,
                (Some(media_type), _) => extension(media_type)?,
                (None, Some(by_name)) => by_name,
                (None, None) => return Err(unsupported("a part has no type")),
            };
            Ok(Document::new(extension, part.content))
        })
        .collect()
}

fn extension_of_name(name: &str) -> Option<&'static str> {
    let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
    ["ttl", "nt", "rdf", "jsonld", "nq", "trig"].into_iter().find(|known| *known == extension)
}
