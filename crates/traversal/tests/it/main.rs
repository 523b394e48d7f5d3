//! Integration tests of the crate, one module per subject, linked into one program.

mod lazy;
mod modern;
