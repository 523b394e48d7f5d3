//! Integration tests, one module for each subject, in one binary that is linked once.

mod common;
mod lubm;
mod random;
mod rules;
