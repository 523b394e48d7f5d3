//! `vervet generate`: made data.

use crate::arguments::{GenerateArguments, GenerateKind};
use crate::interrupt;
use crate::output::{Outcome, Output};
use vervet_generate::{PowerLaw, generate_lubm, write_edges};

pub(crate) fn run(arguments: &GenerateArguments) -> Outcome {
    let _running = interrupt::start();
    match &arguments.kind {
        GenerateKind::Lubm { universities, seed, output } => {
            let mut out = Output::file(output.as_deref())?;
            generate_lubm(*universities, *seed, &mut out)?;
            out.finish()
        }
        &GenerateKind::PowerLaw { vertices, edges, exponent, seed, ref output } => {
            let mut out = Output::file(output.as_deref())?;
            write_edges(&PowerLaw { vertices, edges, exponent, seed }.generate(), &mut out)?;
            out.finish()
        }
    }
}
