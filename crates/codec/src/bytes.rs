//! Little-endian loads that cannot fail, and a reader for metadata with checks.

/// Bytes that must follow every packed structure in its section.
pub const PADDING: usize = 8;

/// Error of inconsistent metadata, or metadata that does not fit its section, with a description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged(pub &'static str);

/// The 8 bytes at `at` as a little-endian number; 0 if they are not all inside.
#[inline(always)]
#[must_use]
pub fn load_u64(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => 0,
    }
}

/// Appends a number, little-endian.
pub fn write_u64(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Reads metadata sequentially.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// A reader of the metadata at the end of a section, followed by its length (8 bytes).
    ///
    /// # Errors
    /// The section is too short for its metadata.
    pub fn of_section(section: &'a [u8]) -> Result<Self, Damaged> {
        let end = section.len().checked_sub(8).ok_or(Damaged("section too short"))?;
        let length = usize::try_from(load_u64(section, end)).unwrap_or(usize::MAX);
        let start = end.checked_sub(length).ok_or(Damaged("metadata longer than its section"))?;
        Ok(Self::new(&section[start..end]))
    }

    /// The next number, in the encoding of [`write_u64`].
    ///
    /// # Errors
    /// The metadata ends before it.
    pub fn u64(&mut self) -> Result<u64, Damaged> {
        let (chunk, rest) = self.rest.split_first_chunk::<8>().ok_or(Damaged("metadata ends early"))?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*chunk))
    }

    /// The next number, as a length or an offset in memory.
    ///
    /// # Errors
    /// As [`Reader::u64`]; a number too large for `usize`.
    pub fn length(&mut self) -> Result<usize, Damaged> {
        usize::try_from(self.u64()?).map_err(|_| Damaged("length too large for this machine"))
    }

    /// The next number, as the length of a list whose elements take at least 8 bytes each.
    ///
    /// # Errors
    /// As [`Reader::u64`]; a list longer than the remaining bytes, so that a caller may allocate for it.
    pub fn list_length(&mut self) -> Result<usize, Damaged> {
        let length = self.length()?;
        if length > self.rest.len() / 8 {
            return Err(Damaged("list longer than its metadata"));
        }
        Ok(length)
    }

    /// Checks that all metadata was read.
    ///
    /// # Errors
    /// Bytes remain.
    pub fn finish(self) -> Result<(), Damaged> {
        if self.rest.is_empty() { Ok(()) } else { Err(Damaged("metadata longer than its content")) }
    }
}
