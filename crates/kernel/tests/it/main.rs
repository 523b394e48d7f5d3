//! Integration tests, one module for each subject, in one binary that is linked once.

mod contract;
mod sample;
mod steps;
