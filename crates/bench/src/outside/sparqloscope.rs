//! Sparqloscope: one query for each feature of SPARQL, on the data of BSBM.
//!
//! # Shape
//! Families: counts, joins of large and small relations, stars, `OPTIONAL`, `MINUS`, `EXISTS`, `UNION`,
//! grouping and each aggregate, `DISTINCT`, `ORDER BY`, filters, functions of strings, numbers and dates,
//! paths, results of each form. A query over a whole relation reduces its rows by a count or another
//! aggregate, so that functions and joins are measured rather than serialization; `export-…` are the
//! exception.
//! # Source
//! Bast et al., "Sparqloscope: A generic benchmark for the comprehensive and concise performance evaluation
//! of SPARQL engines", ISWC 2025. The families and most features follow the publication; the texts are our
//! own, and there are 126 of them instead of 105.

use super::data_set::{Benchmark, DataOptions, DataSet, OutsideQuery, with_prefixes};
use super::{bsbm, sparqloscope_queries::QUERIES};
use vervet_generate::BSBM_PREFIXES;
use vervet_model::Result;

/// Passes the data set to `each`.
///
/// # Errors
/// The data cannot be written; as `each`.
pub(super) fn data_sets(options: &DataOptions, each: &mut dyn FnMut(DataSet) -> Result<()>) -> Result<()> {
    let (file, sizes) = bsbm::data(options)?;
    let queries = QUERIES.iter().map(|&(name, text, compare)| OutsideQuery {
        name: name.to_owned(),
        text: with_prefixes(BSBM_PREFIXES, text),
        compare,
    });
    each(DataSet {
        benchmark: Benchmark::Sparqloscope,
        name: format!("BSBM, {} products", sizes.products),
        file,
        queries: queries.collect(),
        reference: None,
    })
}
