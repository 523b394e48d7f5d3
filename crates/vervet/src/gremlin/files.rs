//! Files of `io()`: allowed paths, reading and writing.
//!
//! # Shape
//! A script names a file below the folder that the caller allows
//! ([`GremlinOptions::files`](super::GremlinOptions::files)). No other file is reachable, neither by `..` nor
//! by links. GraphSON is read by `vervet-tinkerpop`, GraphML by the loader (`graphml` converts its
//! statements); both are written by `crate::export`.
//! # Invariants
//! A file has a temporary name until it is complete.

mod graphml;

use crate::export;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Component, Path, PathBuf};
use vervet_graph::Graph;
use vervet_gremlin::{Cardinality, Value};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::graph_file::{GraphEdge, GraphReader};
use vervet_tinkerpop::graphson::Dialect;
use vervet_traversal::{FileFormat, Host, Owner, literal};

/// Memory charge of a buffered edge that waits for its end vertices, in bytes.
const EDGE_BYTES: u64 = 256;

/// The path of an existing file below `root`.
pub(super) fn to_read(root: Option<&Path>, name: &str) -> Result<PathBuf> {
    let (root, path) = below(root, name)?;
    let found = path.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::new(ErrorKind::Input, format!("{name} does not exist")),
        _ => Error::io(format_args!("open {name}"), &error),
    })?;
    if found.starts_with(root) { Ok(found) } else { Err(forbidden(name)) }
}

/// The path of a file below `root`, in an existing folder.
pub(super) fn to_write(root: Option<&Path>, name: &str) -> Result<PathBuf> {
    let (root, path) = below(root, name)?;
    let (Some(folder), Some(file)) = (path.parent(), path.file_name()) else { return Err(forbidden(name)) };
    let folder = folder.canonicalize().map_err(|error| Error::io(format_args!("write {name}"), &error))?;
    if folder.starts_with(root) { Ok(folder.join(file)) } else { Err(forbidden(name)) }
}

/// The canonical folder (links resolved), and the path in it.
fn below(root: Option<&Path>, name: &str) -> Result<(PathBuf, PathBuf)> {
    let Some(root) = root else {
        return Err(Error::new(ErrorKind::Unsupported, "io() is turned off").with_hint(
            "name a folder that it may use (`GremlinOptions::files`), or load and export with other tools",
        ));
    };
    let climbs = Path::new(name).components().any(|part| part == Component::ParentDir);
    if climbs || name.contains('\0') {
        return Err(forbidden(name));
    }
    let root =
        root.canonicalize().map_err(|error| Error::io(format_args!("open {}", root.display()), &error))?;
    let path = root.join(name);
    Ok((root, path))
}

fn forbidden(name: &str) -> Error {
    Error::new(ErrorKind::Input, format!("io() may not use {name}"))
        .with_hint("name a file below the folder that it may use, without ..")
}

/// Adds the graph of a file to a transaction.
pub(super) fn read(host: &mut dyn Host, path: &Path, form: FileFormat, control: &Control<'_>) -> Result<()> {
    match form {
        FileFormat::GraphSon => read_graphson(host, path, control),
        FileFormat::GraphMl => graphml::read(host, path, control),
    }
}

fn read_graphson(host: &mut dyn Host, path: &Path, control: &Control<'_>) -> Result<()> {
    let file =
        File::open(path).map_err(|error| Error::io(format_args!("open {}", path.display()), &error))?;
    let mut edges: Vec<(GraphEdge, Value, Value)> = Vec::new();
    for vertex in GraphReader::new(BufReader::with_capacity(1 << 16, file)) {
        control.check()?;
        let vertex = vertex.map_err(|error| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Error::new(ErrorKind::Input, format!("{name} is not a GraphSON graph: {error}"))
        })?;
        let key = host.add_vertex(Some(&vertex.id), &vertex.label)?;
        for property in &vertex.properties {
            let several = vertex.properties.iter().filter(|other| other.label == property.label).count() > 1;
            let cardinality = if several { Cardinality::List } else { Cardinality::Single };
            let value = literal(&property.value)?;
            let mut owner =
                Owner::VertexProperty(host.put_vertex_property(key, &property.label, &value, cardinality)?);
            for own in property.detail.iter().flat_map(|detail| &detail.properties) {
                owner = host.put_property(owner, &own.key, &literal(&own.value)?)?;
            }
        }
        for (edge, source, target) in vertex.edges() {
            control.grow(EDGE_BYTES)?;
            edges.push((edge.clone(), source.clone(), target.clone()));
        }
    }
    let held = EDGE_BYTES * edges.len() as u64;
    for (edge, source, target) in edges {
        control.check()?;
        let [source, target] = [source, target].map(|id| find(host, &id));
        let id = Some(&edge.id).filter(|id| !matches!(id, Value::Null));
        let mut owner = Owner::Edge(host.add_edge(source?, &edge.label, target?, id)?);
        for own in &edge.properties {
            owner = host.put_property(owner, &own.key, &literal(&own.value)?)?;
        }
    }
    control.shrink(held);
    Ok(())
}

/// The vertex with this id.
fn find(host: &dyn Host, id: &Value) -> Result<u64> {
    let name = vervet_traversal::vertex_name(id)?;
    let mut found = None;
    host.read(&mut |snapshot| {
        found = Graph::new(snapshot).vertex(&name)?;
        Ok(())
    })?;
    let vertex = found.ok_or_else(|| {
        Error::new(
            ErrorKind::Input,
            format!("an edge of the file leads to the vertex {name}, which the file does not contain"),
        )
    })?;
    Ok(vertex.id().bits())
}

/// Writes a graph to a file.
pub(super) fn write(
    snapshot: &dyn Snapshot,
    path: &Path,
    form: FileFormat,
    control: &Control<'_>,
) -> Result<()> {
    let failed = |error: &std::io::Error| Error::io(format_args!("write {}", path.display()), error);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let file = File::create(&part).map_err(|error| failed(&error))?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    let written = match form {
        FileFormat::GraphSon => export::graphson::write(snapshot, Dialect::V3, control, &mut out),
        FileFormat::GraphMl => export::graphml::write(snapshot, control, &mut out),
    };
    let done = written.and_then(|_| {
        out.flush().and_then(|()| out.get_ref().sync_all()).map_err(|error| failed(&error))?;
        fs::rename(&part, path).map_err(|error| failed(&error))
    });
    if done.is_err() {
        let _ = fs::remove_file(&part);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folder_can_be_reached() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let root = folder.path().join("allowed");
        fs::create_dir(&root).expect("a folder can be made");
        fs::write(root.join("a.json"), "").expect("a file can be written");
        fs::write(folder.path().join("secret.json"), "").expect("a file can be written");
        std::os::unix::fs::symlink(folder.path(), root.join("up")).expect("a link can be made");
        let root = Some(root.as_path());
        assert!(to_read(root, "a.json").is_ok());
        let absolute = root.map(|root| root.join("a.json").display().to_string()).expect("it is there");
        assert!(to_read(root, &absolute).is_ok());
        for name in ["../secret.json", "up/secret.json", "/etc/passwd", "up/../a.json", "a\0.json", "."] {
            assert!(to_read(root, name).is_err() || name == ".", "{name}");
            assert!(to_write(root, name).is_err(), "{name}");
        }
        assert_eq!(to_read(root, "b.json").expect_err("it is not there").kind(), ErrorKind::Input);
        assert_eq!(to_read(None, "a.json").expect_err("nothing is allowed").kind(), ErrorKind::Unsupported);
        assert!(to_write(root, "b.json").is_ok());
    }
}
