//! A client of object storage that has the interface of S3: AWS, MinIO, Ceph, Cloudflare R2, the
//! interoperable interface of Google Cloud Storage.
//!
//! # Shape
//! [`Location`] is `s3://bucket/prefix`. [`Settings`] are credentials, region and endpoint, from the usual
//! variables of the environment. [`Bucket`] has the operations on the objects below a location: list, read,
//! download, upload, replace under a condition, remove. `signature`: version 4 of the signatures of AWS.
//! `client`: one request, and its retries. `refusal`: errors. `xml`: the texts of answers.
//! # Invariants
//! 1. Every request is signed, with the hash of its content: the server verifies what it stores.
//! 2. Keys and tokens are in no message and in no `Debug` text.
//! 3. Transfers need the memory of a buffer, whatever the size of the object. Answers that are texts have
//!    limits: bytes of a page, number of pages, number of objects.
//! 4. A request that failed for a reason that may pass is repeated, with growing pauses. The limits of the
//!    thread ([`vervet_model::ThreadLimits`]) end transfers and pauses.
#![forbid(unsafe_code)]

mod bucket;
mod client;
mod location;
mod refusal;
mod settings;
mod signature;
mod upload;
mod xml;

pub use bucket::{Bucket, Object, Stored};
pub use location::Location;
pub use settings::{Credentials, Settings};
