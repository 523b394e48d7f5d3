//! Benchmark of each format, per cell: `cargo run --release -p vervet-results --example result_speed`.

use std::io::sink;
use std::time::Instant;
use vervet_model::{Id, Result, TermParts};
use vervet_results::{Format, RowWriter, TermSource};

/// IRIs like those of LUBM, concatenated as in a dictionary.
struct Iris;

const NAMESPACE: &str = "http://www.Department14.University0.edu/GraduateStudent";

impl TermSource for Iris {
    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        for id in ids {
            out.push(b'<');
            out.extend_from_slice(NAMESPACE.as_bytes());
            out.push(b'0' + id.payload().to_le_bytes()[0] % 10);
            out.push(b'>');
            ends.push(out.len());
        }
        Ok(())
    }

    fn read_term(&self, _id: Id, _scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        read(TermParts::Iri { namespace: NAMESPACE, local: "7" });
        Ok(())
    }
}

fn main() -> Result<()> {
    const BATCHES: u64 = 1_000;
    const ROWS: u64 = 1_024;
    let ids: Vec<Id> = (1..=ROWS).map(Id::vertex).collect();
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for _ in 0..BATCHES * 3 {
        bytes.clear();
        ends.clear();
        Iris.write_terms(&ids, &mut bytes, &mut ends)?;
    }
    let cells = BATCHES as f64 * ROWS as f64 * 3.0;
    let decoding = start.elapsed().as_nanos() as f64 / cells;
    println!("terms alone: {decoding:.1} ns a cell");
    for format in [Format::Tsv, Format::Csv, Format::Json, Format::Xml, Format::Table] {
        let mut writer = RowWriter::new(format, &["x", "y", "z"], sink())?;
        let start = Instant::now();
        for _ in 0..BATCHES {
            writer.batch(&[&ids, &ids, &ids], ids.len(), &Iris)?;
        }
        writer.finish()?;
        println!("{format}: {:.1} ns a cell, terms included", start.elapsed().as_nanos() as f64 / cells);
    }
    Ok(())
}
