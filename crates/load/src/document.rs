//! Loader of Turtle, TriG, RDF/XML and JSON-LD: one thread parses a document into blocks (`document_parser`),
//! the calling thread merges them. These formats cannot be split.

use crate::document_parser::{Document, Parsed};
use crate::guard::STACK_BYTES;
use crate::merge::Merger;
use crate::source::Source;
use crate::target::Target;
use oxrdfio::RdfFormat;
use std::io::Read;
use std::sync::mpsc::sync_channel;
use vervet_model::{Error, Result};

/// Capacity of the channel from parser to merger, in blocks.
const BLOCKS_BETWEEN: usize = 4;

/// Parses and merges all of `input`. `library`: its format in terms of the library. `again`: a second source
/// of the same input, for line numbers.
pub(crate) fn load_document<T: Target + ?Sized>(
    name: &str,
    input: Box<dyn Read + Send>,
    again: Option<Source>,
    library: RdfFormat,
    merger: &mut Merger<'_, T>,
) -> Result<()> {
    let recursive = matches!(library, RdfFormat::JsonLd { .. });
    let mut document = Document::open(name, input, again, merger.format(), library, merger.options)?;
    if merger.options.threads <= 1 && !recursive {
        while let Some(parsed) = document.next() {
            take(merger, parsed)?;
        }
        return Ok(());
    }
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(BLOCKS_BETWEEN);
        let mut parser = std::thread::Builder::new();
        if recursive {
            parser = parser.stack_size(STACK_BYTES);
        }
        let parse = move || {
            while let Some(parsed) = document.next() {
                // The merger ends after an error, which it reports itself.
                if sender.send(parsed).is_err() {
                    return;
                }
            }
        };
        parser.spawn_scoped(scope, parse).map_err(|error| Error::io("start a parser", &error))?;
        // The receiver must be dropped before the scope waits for the parser.
        receiver.into_iter().try_for_each(|parsed| take(merger, parsed))
    })
}

fn take<T: Target + ?Sized>(merger: &mut Merger<'_, T>, parsed: Parsed) -> Result<()> {
    match parsed {
        Parsed::Block(block) => merger.merge(&block),
        Parsed::Malformed(malformed) => Err(merger.fatal(&malformed)),
        Parsed::Failed(error) => Err(error),
    }
}
