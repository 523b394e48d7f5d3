//! Dialects of GraphSON output.

/// Version and typing of GraphSON output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialect {
    /// 2 or 3.
    pub(super) version: u8,
    pub(super) typed: bool,
}

impl Dialect {
    /// GraphSON 3 with types.
    pub const V3: Self = Self { version: 3, typed: true };
    /// GraphSON 3 without types.
    pub const V3_UNTYPED: Self = Self { version: 3, typed: false };
    /// GraphSON 2: lists, sets and maps are plain JSON, bags are expanded.
    pub const V2: Self = Self { version: 2, typed: true };
    /// GraphSON 2 without types.
    pub const V2_UNTYPED: Self = Self { version: 2, typed: false };
}
