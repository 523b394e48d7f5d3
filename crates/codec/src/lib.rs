//! Encodings of a base segment: packed and framed arrays, code tables and key sets.
//!
//! # Shape
//! Every structure is bytes in a *section* and a small descriptor that holds offsets into it, never
//! pointers; so the same bytes may lie on the heap, in a mapped file or in the memory of a peer. A
//! descriptor is written to and read from the metadata of the section; a *view* is a descriptor and the
//! bytes together, made once for a batch of accesses.
//! # Invariants
//! 1. Reading a descriptor checks that all its bytes lie inside the section and that [`PADDING`] more
//!    bytes follow, so that an 8-byte load of any element stays inside.
//! 2. No access panics, whatever the bytes are: an access out of range gives 0 (or no position).
//!    Contents are guarded by the checksum of the section, not here.
//! # Not here
//! Ids, files, checksums. Elias-Fano codes for a cold tier.
#![forbid(unsafe_code)]

mod array;
mod bitmap;
mod bytes;
mod codes;
mod framed;
mod keys;
mod locate;
mod packed;
mod sparse;
mod stride;
mod tiered;
mod varint;

pub use array::{Array, ArrayView};
pub use bitmap::{Bitmap, BitmapView};
pub use bytes::{Damaged, PADDING, Reader, load_u64, write_u64};
pub use codes::{Codes, CodesView, PackedCodes};
pub use framed::{Framed, FramedPairs, FramedView};
pub use keys::{KeyPart, KeySet, KeySetView, OffsetPart, PartsView, RangeView};
pub use locate::{Locate, NONE};
pub use packed::{Packed, PackedView};
pub use sparse::{Sparse, SparseView};
pub use stride::Stride;
pub use tiered::{Tiered, TieredView};
pub use varint::{VARINT_BYTES_MAX, read_varint, write_varint};
