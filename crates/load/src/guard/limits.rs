//! Limits of documents.

/// Maximum nesting depth of JSON-LD, of RDF/XML, and of triple terms and reified triples in the other
/// formats. Realistic documents have less than a tenth of it.
pub const DEPTH_MAX: usize = 256;

/// Maximum number of keys in one context of JSON-LD, including nested contexts. The largest vocabularies have
/// half of it.
pub const CONTEXT_KEYS_MAX: usize = 16 << 10;

/// Stack size for recursion over [`CONTEXT_KEYS_MAX`] terms: 2 to 3 kB for each.
pub(crate) const STACK_BYTES: usize = 128 << 20;

/// Maximum number of attributes of one element of RDF/XML; the parser compares all pairs.
pub const ATTRIBUTES_MAX: usize = 1 << 10;

/// Maximum size of the document type (`<!DOCTYPE`) of RDF/XML, in bytes. Those of ontologies have less than
/// 10 kB.
pub const DOCTYPE_BYTES_MAX: usize = 64 << 10;

/// Maximum expanded size of one entity of RDF/XML, in bytes. Most entities are namespaces.
pub const ENTITY_BYTES_MAX: u64 = 64 << 10;

/// Constant part of the maximum total expanded size of the entities of one RDF/XML document, in bytes; the
/// other part is [`ENTITIES_TIMES_MAX`] times its length.
pub const ENTITIES_BYTES_MIN: u64 = 16 << 20;
/// See [`ENTITIES_BYTES_MIN`].
pub const ENTITIES_TIMES_MAX: u64 = 8;

/// The message for a document that exceeds [`DEPTH_MAX`].
pub(super) fn too_deep() -> String {
    format!("the document is nested more than {DEPTH_MAX} levels deep (DEPTH_MAX)")
}
