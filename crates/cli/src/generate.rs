//! `vervet generate`: generated data.

use crate::arguments::{GenerateArguments, GenerateKind};
use crate::interrupt;
use crate::output::{Outcome, Output};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use vervet::Error;
use vervet_generate::{PowerLaw, generate_lubm, generate_snb, write_edges};

/// Buffer size of each file of a network.
const FILE_BUFFER_BYTES: usize = 1 << 16;

pub(crate) fn run(arguments: &GenerateArguments) -> Outcome {
    let _running = interrupt::start();
    match &arguments.kind {
        GenerateKind::Lubm { universities, seed, output } => {
            let mut out = Output::file(output.as_deref())?;
            generate_lubm(*universities, *seed, &mut out)?;
            out.finish()
        }
        GenerateKind::SnbLike { persons, seed, directory } => {
            let failed = |what: &str, path: &Path, error: &io::Error| {
                Error::io(format!("{what} {}", path.display()), error)
            };
            fs::create_dir_all(directory).map_err(|error| failed("create", directory, &error))?;
            let made = generate_snb(*persons, *seed, &mut |name| {
                let path = directory.join(name);
                Ok(Box::new(BufWriter::with_capacity(FILE_BUFFER_BYTES, File::create(path)?)))
            });
            let made = made.map_err(|error| failed("write into", directory, &error))?;
            let mut out = Output::standard();
            writeln!(
                out,
                "{persons} persons, {} pairs of friends, {} forums with {} members, {} posts, {} comments, {} likes",
                made.knows, made.forums, made.members, made.posts, made.comments, made.likes
            )?;
            out.finish()
        }
        &GenerateKind::PowerLaw { vertices, edges, exponent, seed, ref output } => {
            let mut out = Output::file(output.as_deref())?;
            write_edges(&PowerLaw { vertices, edges, exponent, seed }.generate(), &mut out)?;
            out.finish()
        }
    }
}
