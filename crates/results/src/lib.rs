//! Results of queries as text.
#![forbid(unsafe_code)]
