//! Integration tests, one module for each subject, in one binary that is linked once.

mod common;
mod estimates;
mod lubm;
mod random;
mod rules;
