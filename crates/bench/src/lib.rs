//! Vervet, its peers and hand-written loops on the same data and the same queries, in one process.
//!
//! | module | |
//! | --- | --- |
//! | [`engine`] | the engine interface |
//! | [`mod@ours`] | Vervet behind that interface |
//! | [`peer`] | Oxigraph behind that interface |
//! | [`loops`] | the same queries as loops over plain arrays: the machine's limit |
//! | [`measure`], [`compare`], [`digest`] | times and memory; one query in all engines; equality of results |
//! | [`outside`] | benchmarks that others designed: gMark, SP2Bench, WatDiv, BSBM, Sparqloscope |
//! | [`lubm`], [`light`], [`patterns`], [`features`], [`self_check`] | the comparisons |
//! | [`all`] | everything kept with the project |
//! | [`processes`] | loads and starts in subprocesses |
//! | [`transactions`] | the cost of transactions |
//! | [`snb`] | the social network in Gremlin and SPARQL, and TinkerGraph on the same |
//! | [`wire`] | Gremlin through the server, with TinkerPop's driver |
//! | [`estimates`] | estimated and actual rows of all plans |
//! | [`cluster_mixes`] | mixes of the social network over several servers |
//! | [`cluster_sheet`] | the queries of LUBM over several servers |
//! | [`cluster_transactions`] | small transactions at servers that elect a leader |
//! | [`targets`] | performance targets |
//! | [`report`], [`sections`], [`table`], [`data`] | output and input |
//!
//! Every comparison checks values before it measures times.
#![forbid(unsafe_code)]

pub mod all;
pub mod cluster_mixes;
pub mod cluster_sheet;
pub mod cluster_transactions;
pub mod compare;
pub mod data;
pub mod digest;
pub mod engine;
pub mod estimates;
pub mod features;
pub mod gpu;
pub mod light;
mod loopback;
pub mod loops;
pub mod lubm;
pub mod measure;
pub mod ours;
pub mod outside;
pub mod patterns;
pub mod peer;
pub mod processes;
pub mod report;
pub mod sections;
pub mod self_check;
pub mod snb;
pub mod table;
pub mod target;
pub mod targets;
pub mod transactions;
mod update_client;
pub mod wire;

/// Our engine, with these numbers of threads for loading and for each query.
#[must_use]
pub fn ours(threads: usize, query_threads: usize) -> Option<Box<dyn engine::Engine>> {
    Some(Box::new(ours::Vervet::new(threads).with_query_threads(query_threads)))
}
