//! `io(file)` with `read()` or `write()`: import and export of the whole graph.
//!
//! The host decides on access to files.

use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::host::FileFormat;
use crate::modulated::Modulated;
use crate::step::{Input, Step};
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::Value;
use vervet_model::{Error, ErrorKind, Result};

pub(crate) fn build(step: &Modulated<'_>, first: bool, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let [Value::String(file)] = step.arguments() else {
        return Err(query_error("io() needs the name of a file"));
    };
    if file.is_empty() {
        return Err(query_error("file cannot be null or empty"));
    }
    if !first || compiler.is_nested() {
        return Err(query_error("io() can only begin a traversal"));
    }
    let (mut reads, mut form) = (None, [None, None]);
    for with in &step.withs {
        match (&*with.name, with.arguments.as_slice()) {
            ("read", _) => reads = Some(true),
            ("write", _) => reads = Some(false),
            (_, [Value::String(option), Value::String(value)]) if option.ends_with("io.reader") => {
                form[0] = Some(form_of(value)?);
            }
            (_, [Value::String(option), Value::String(value)]) if option.ends_with("io.writer") => {
                form[1] = Some(form_of(value)?);
            }
            (_, [Value::String(option), ..]) => {
                let message = format!("io() with the option {option} is not supported");
                return Err(Error::new(ErrorKind::Unsupported, message)
                    .with_hint("use IO.reader or IO.writer, with the name of a format"));
            }
            _ => return Err(query_error("with() does not take these arguments")),
        }
    }
    let Some(reads) = reads else {
        return Err(query_error("IO mode was not set to read() or write()"));
    };
    let form = match form[usize::from(!reads)] {
        Some(form) => form,
        None => form_of_name(file)?,
    };
    if reads {
        if compiler.strategies.read_only {
            let message = "The provided traversal has a mutating step and thus is not read only: io().read()";
            return Err(Error::new(ErrorKind::Query, message));
        }
        compiler.mutates = true;
    }
    Ok(Box::new(Io { file: file.clone(), form, reads, done: false }))
}

fn form_of(name: &str) -> Result<FileFormat> {
    match name {
        "graphson" => Ok(FileFormat::GraphSon),
        "graphml" => Ok(FileFormat::GraphMl),
        "gryo" => Err(gryo()),
        other => {
            Err(Error::new(ErrorKind::Unsupported, format!("the io() file format {other} is not supported"))
                .with_hint("use IO.graphson or IO.graphml"))
        }
    }
}

fn form_of_name(file: &str) -> Result<FileFormat> {
    let ends = |ending: &str| file.ends_with(ending);
    if ends(".json") {
        Ok(FileFormat::GraphSon)
    } else if ends(".xml") || ends(".graphml") {
        Ok(FileFormat::GraphMl)
    } else if ends(".kryo") {
        Err(gryo())
    } else {
        let message = "Could not detect the file format - specify the writer explicitly or rename file with a standard extension";
        Err(Error::new(ErrorKind::Query, message).with_hint("use .json or .xml"))
    }
}

fn gryo() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "Gryo is not supported: it is specific to Kryo, a serialization library for Java",
    )
    .with_hint("export the graph from its source as GraphSON or GraphML")
}

#[derive(Clone)]
struct Io {
    file: Arc<str>,
    form: FileFormat,
    reads: bool,
    done: bool,
}

impl Step for Io {
    /// Runs the import or export; no output.
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        while input.next(context)?.is_some() {}
        if !std::mem::replace(&mut self.done, true) {
            let control = context.control;
            if self.reads {
                context.host.read_file(&self.file, self.form, control)?;
            } else {
                context.host.write_file(&self.file, self.form, control)?;
            }
        }
        Ok(None)
    }

    fn reset(&mut self) {
        self.done = false;
    }

    fn moves(&self) -> bool {
        false
    }
}
