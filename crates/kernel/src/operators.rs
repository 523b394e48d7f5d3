//! Kernels, one file each, and their data structures.

pub(crate) mod automaton_search;
pub(crate) mod candidate_keys;
pub(crate) mod check;
pub(crate) mod claims;
pub(crate) mod condensed_search;
pub(crate) mod distinct;
pub(crate) mod exists;
pub(crate) mod expand;
pub(crate) mod filter;
pub(crate) mod frontier;
pub(crate) mod group;
pub(crate) mod intersect;
pub(crate) mod join;
pub(crate) mod matching;
pub(crate) mod optional;
pub(crate) mod order;
pub(crate) mod path;
pub(crate) mod scan;
pub(crate) mod search_graph;
pub(crate) mod seeded;
pub(crate) mod sorted_ids;
pub(crate) mod values;
pub(crate) mod volatile_barrier;
