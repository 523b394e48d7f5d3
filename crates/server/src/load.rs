//! `POST /load`: atomic bulk load of property-graph files or RDF documents.
//!
//! # Shape
//! The body is one file, whose `Content-Type` determines the format, or `multipart/form-data`, where file
//! extensions determine the formats as on the command line; so vertices and edges may be separate files. A
//! part named `….toml` is a column mapping. The load equals `vervet load`: it is atomic, readers continue,
//! and writers wait for it.
//! # Not here
//! Files larger than [`crate::Limits::document_bytes`], compressed files, skipping of errors: use `vervet
//! load`.

use crate::context::RequestContext;
use crate::endpoints::store::{TimedReader, is_compressed, rdf_extension};
use crate::http::multipart;
use crate::http::reply::{Failure, Outcome, full, not_allowed};
use crate::http::request::{DOCUMENT_BYTES, MediaType, Parameters, iri, read_body};
use crate::options::Role;
use crate::worker_threads;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Method, StatusCode};
use std::time::Instant;
use vervet::{Error, ErrorKind, Format, LoadOptions, Mapping, Source};

/// The parameters of the URL.
const PARAMETERS: [&str; 8] =
    ["graph", "names-from-files", "id", "row-ids", "label", "default-label", "both-directions", "timeout"];

/// Options of the command line in hints of the loader, and what a client sends instead. An option precedes
/// those with which its name begins.
const OPTIONS: [(&str, &str); 7] = [
    ("--print-mapping writes a mapping file to edit", "a part called mapping.toml describes the columns"),
    ("--names-from-files", "names-from-files=true"),
    ("--row-ids", "row-ids=true"),
    ("--default-label", "default-label=LABEL"),
    ("--both-directions", "both-directions=true"),
    ("--label", "label=KEY"),
    ("--id", "id=COLUMN"),
];

/// A file of the request.
struct File {
    /// The extension determines the format.
    name: String,
    content: Bytes,
}

/// Handles a request.
pub(crate) async fn answer(context: &mut RequestContext<'_>, body: Incoming) -> Outcome {
    if context.parts.method != Method::POST {
        return Err(not_allowed("POST, OPTIONS"));
    }
    context.allow(Role::Write).await?;
    let (state, parts) = (context.state, context.parts);
    let parameters = Parameters::of_query(parts);
    parameters.check_known(&PARAMETERS)?;
    let timeout = parameters.timeout(state.options.limits.timeout)?;
    let mut options = LoadOptions { blank_scope: "h".to_owned(), ..LoadOptions::default() };
    options.graph = parameters.one("graph")?.map(|value| iri("graph", value)).transpose()?;
    options.names_from_files = parameters.flag("names-from-files")?;
    options.id_column = parameters.one("id")?.map(str::to_owned);
    options.row_ids = parameters.flag("row-ids")?;
    if options.row_ids && options.id_column.is_some() {
        return Err(Failure::bad("id and row-ids exclude each other"));
    }
    options.label_keys = parameters.all("label").map(str::to_owned).collect();
    options.default_label = parameters.one("default-label")?.map(str::to_owned);
    if options.default_label.as_deref() == Some("") {
        return Err(Failure::bad("default-label is empty"));
    }
    options.both_directions = parameters.flag("both-directions")?;
    if let Some(threads) = state.options.limits.threads {
        options.threads = threads;
    }
    let media_type =
        MediaType::of(&parts.headers).ok_or_else(|| unsupported("the request has no Content-Type"))?;
    if media_type.name != "multipart/form-data" {
        extension(&media_type)?;
    }
    let body = read_body(context, body, DOCUMENT_BYTES).await?;
    let (files, mapping) = files(&media_type, body)?;
    options.mapping = mapping;
    let both_directions = options.both_directions;
    let mut running = state.acquire_permit(context.describe("files")).await?;
    state.acquire_heavy_permit(&mut running).await?;
    let mut guard = running.guard();
    let (database, memory_bytes) = (state.database.clone(), state.options.limits.memory_bytes);
    let done = worker_threads::heavy(&state.threads, move |sender| {
        // The timeout starts here, after waiting for the permit.
        let deadline = Instant::now() + timeout;
        let sources = files.into_iter().map(|file| {
            let reader = TimedReader::new(file.content, deadline, running.token.clone());
            Source::reader(file.name, reader)
        });
        let loaded =
            database.load_with_report(sources.collect(), &options, Some(memory_bytes), &mut std::io::sink());
        let loaded = loaded.map_err(|error| explain(error, deadline));
        drop(running);
        // The receiver may be gone.
        let _ = sender.send(loaded);
    })
    .await?;
    guard.disarm();
    let report = done?;
    let report = serde_json::json!({
        "statements": report.statements,
        "added": report.added,
        "merged_vertices": report.merged_vertices,
        "missing_vertices": report.missing_vertices,
        "undirected_edges": report.undirected_edges,
        "notes": report.remarks(both_directions, |number| number.to_string()),
    });
    Ok(full(StatusCode::OK, "application/json", report.to_string() + "\n"))
}

/// Adds a hint that fits a request.
fn explain(error: Error, deadline: Instant) -> Error {
    match error.kind() {
        ErrorKind::Io if Instant::now() >= deadline => {
            Error::new(ErrorKind::Deadline, "the files took too long to read")
        }
        ErrorKind::Input if error.position().is_some() => {
            error.with_hint("correct the file: nothing of the request was stored")
        }
        _ => match error.hint().filter(|hint| hint.contains("--")).map(request_hint) {
            Some(hint) => error.with_hint(hint),
            None => error,
        },
    }
}

/// A hint for the command line in the words of a request.
fn request_hint(hint: &str) -> String {
    let mut hint = hint.to_owned();
    for (option, parameter) in OPTIONS {
        hint = hint.replace(option, parameter);
    }
    match hint.contains("--") {
        // It has no form in a request.
        true => {
            "the header must name the columns, such as id, label, name, or from, to, label; a part called \
                 mapping.toml can describe other columns"
                .to_owned()
        }
        false => hint,
    }
}

fn unsupported(message: &str) -> Failure {
    Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).hint(
        "use Content-Type: multipart/form-data with files called .csv, .graphml, .graphson, .parquet or as RDF documents are; or \
         text/csv, application/graphml+xml, application/vnd.gremlin-v3.0+json, application/vnd.apache.parquet",
    )
}

/// The file extension of the format.
fn extension(media_type: &MediaType) -> Outcome<&'static str> {
    Ok(match media_type.name.as_str() {
        "text/csv" => {
            media_type.check_charset()?;
            "csv"
        }
        "application/graphml+xml" => "graphml",
        "application/json" | "application/vnd.gremlin-v2.0+json" | "application/vnd.gremlin-v3.0+json" => {
            "graphson"
        }
        "application/vnd.apache.parquet" => "parquet",
        other => {
            media_type.check_charset()?;
            rdf_extension(other)
                .ok_or_else(|| unsupported(&format!("files of the type {other} cannot be loaded")))?
        }
    })
}

fn files(media_type: &MediaType, body: Bytes) -> Outcome<(Vec<File>, Option<Mapping>)> {
    let mut mapping = None;
    let mut files = Vec::new();
    if media_type.name == "multipart/form-data" {
        let boundary =
            media_type.boundary.as_deref().ok_or_else(|| Failure::bad("multipart without boundary"))?;
        let parts = multipart::parts(&body, boundary)
            .map_err(|error| Failure::bad(format!("the multipart body is malformed: {error}")))?;
        for part in parts {
            // The base name only: the rest is a path of the client.
            let name = part.file_name.as_deref().and_then(|name| name.rsplit(['/', '\\']).next());
            match name {
                Some(name) if name.to_ascii_lowercase().ends_with(".toml") => {
                    let text = std::str::from_utf8(&part.content)
                        .map_err(|_| Failure::bad(format!("{name} is not UTF-8")))?;
                    if mapping.replace(Mapping::parse(text).map_err(|error| error.context(name))?).is_some() {
                        return Err(Failure::bad("the request has two mappings"));
                    }
                }
                Some(name) if Format::from_file_name(name).is_some() => {
                    files.push(File { name: name.to_owned(), content: part.content });
                }
                Some(name) if name.to_ascii_lowercase().ends_with(".cypher") => {
                    return Err(unsupported(&format!("{name} is a script in Cypher, which has no data")).hint(
                        "send the CSV or Parquet files with a mapping (a part called mapping.toml), or run vervet load with \
                         the folder of the export",
                    ));
                }
                _ => match &part.media_type {
                    Some(media_type) => {
                        let name = format!("part-{}.{}", files.len() + 1, extension(media_type)?);
                        files.push(File { name, content: part.content });
                    }
                    None => return Err(unsupported("a part has neither a file name nor a type")),
                },
            }
        }
    } else {
        files.push(File { name: format!("body.{}", extension(media_type)?), content: body });
    }
    match files.iter().find(|file| is_compressed(&file.content)) {
        Some(file) => {
            let message = format!("{} is compressed", file.name);
            Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).hint("send it uncompressed"))
        }
        None if files.is_empty() => Err(Failure::bad("the request has no file")),
        None => Ok((files, mapping)),
    }
}
