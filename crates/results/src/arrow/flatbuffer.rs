//! Flatbuffers, as far as the metadata of Arrow need them: tables, vectors and strings, front to back.
//!
//! A reference is the distance to something that stands behind it. So a table is written before what it
//! refers to, and its references are set later ([`Builder::refer`]). Source: "FlatBuffer Binary Format".

/// A member of a table.
#[derive(Clone, Copy)]
pub(crate) enum Member {
    /// Not there: the default.
    None,
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    /// Something else in the buffer.
    Reference,
}

impl Member {
    fn width(self) -> usize {
        match self {
            Self::None => 0,
            Self::Byte(_) => 1,
            Self::Short(_) => 2,
            Self::Int(_) | Self::Reference => 4,
            Self::Long(_) => 8,
        }
    }
}

/// The position of a reference.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Reference(usize);

/// Positions of the members of a table; that of an absent member has no meaning.
pub(crate) struct Table {
    members: Vec<usize>,
}

impl Table {
    /// The reference that is the member with this number.
    pub(crate) fn reference(&self, member: usize) -> Reference {
        Reference(self.members[member])
    }
}

pub(crate) struct Builder {
    bytes: Vec<u8>,
}

impl Builder {
    /// A buffer whose first table will be its root.
    pub(crate) fn new() -> (Self, Reference) {
        (Self { bytes: vec![0; 4] }, Reference(0))
    }

    /// Pads until the position is `remainder` modulo `alignment`.
    fn align(&mut self, alignment: usize, remainder: usize) {
        while self.bytes.len() % alignment != remainder {
            self.bytes.push(0);
        }
    }

    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.bytes[at..at + N].copy_from_slice(&bytes);
    }

    /// Sets a reference to a position behind it.
    fn refer(&mut self, reference: Reference, position: usize) {
        // Metadata are far below 4 GiB.
        let distance = u32::try_from(position - reference.0).unwrap_or(u32::MAX);
        self.put(reference.0, distance.to_le_bytes());
    }

    /// Writes a table to which `from` refers. Its layout precedes it.
    pub(crate) fn table(&mut self, from: Reference, members: &[Member]) -> Table {
        let layout = self.bytes.len();
        debug_assert!(layout.is_multiple_of(4));
        self.bytes.resize(layout + 4 + 2 * members.len(), 0);
        // The first member may need 8 bytes, and follows 4 bytes of the table.
        self.align(8, 4);
        let position = self.bytes.len();
        self.refer(from, position);
        let to_layout = i32::try_from(position - layout).unwrap_or(i32::MAX);
        self.bytes.extend_from_slice(&to_layout.to_le_bytes());
        let mut positions = vec![0; members.len()];
        // Wide members first, so that each is aligned to its width.
        for width in [8, 4, 2, 1] {
            for (number, member) in members.iter().enumerate().filter(|(_, member)| member.width() == width) {
                positions[number] = self.bytes.len();
                match *member {
                    Member::None => {}
                    Member::Byte(value) => self.bytes.push(value),
                    Member::Short(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                    Member::Int(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                    Member::Long(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                    Member::Reference => self.bytes.extend_from_slice(&[0; 4]),
                }
                let offset = u16::try_from(positions[number] - position).unwrap_or(u16::MAX);
                self.put(layout + 4 + 2 * number, offset.to_le_bytes());
            }
        }
        let length = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX).to_le_bytes();
        let table_bytes = self.bytes.len() - position;
        self.put(layout, length(4 + 2 * members.len()));
        self.put(layout + 2, length(table_bytes));
        self.align(4, 0);
        Table { members: positions }
    }

    /// Writes a vector of references.
    pub(crate) fn references(&mut self, from: Reference, count: usize) -> Vec<Reference> {
        self.vector(from, count, 4);
        let first = self.bytes.len();
        self.bytes.resize(first + 4 * count, 0);
        (0..count).map(|number| Reference(first + 4 * number)).collect()
    }

    /// Writes a vector of pairs of numbers.
    pub(crate) fn pairs(&mut self, from: Reference, pairs: &[(i64, i64)]) {
        self.vector(from, pairs.len(), 8);
        for (one, other) in pairs {
            self.bytes.extend_from_slice(&one.to_le_bytes());
            self.bytes.extend_from_slice(&other.to_le_bytes());
        }
    }

    /// Writes the length of a vector whose elements are aligned to `alignment`.
    fn vector(&mut self, from: Reference, count: usize, alignment: usize) {
        self.align(alignment, alignment - 4);
        let position = self.bytes.len();
        self.refer(from, position);
        self.bytes.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    }

    pub(crate) fn string(&mut self, from: Reference, text: &str) {
        self.vector(from, text.len(), 4);
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self.align(4, 0);
    }

    /// The buffer, padded to a multiple of 8 bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.align(8, 0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8], at: usize) -> usize {
        usize::try_from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
            .expect("32 bits")
    }

    /// Reads a table back by the rules of the format.
    #[test]
    fn members_stand_where_the_layout_says() {
        let (mut builder, root) = Builder::new();
        let members =
            [Member::Byte(7), Member::None, Member::Long(-2), Member::Reference, Member::Short(300)];
        let table = builder.table(root, &members);
        builder.string(table.reference(3), "abc");
        let bytes = builder.finish();
        let table = number(&bytes, 0);
        let layout = table - number(&bytes, table);
        let short = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        assert_eq!((short(layout), short(layout + 2)), (4 + 2 * 5, 4 + 8 + 4 + 2 + 1));
        let member = |number: usize| short(layout + 4 + 2 * number);
        assert_eq!((bytes[table + member(0)], member(1)), (7, 0));
        let long = table + member(2);
        assert!(long.is_multiple_of(8) && bytes[long..long + 8] == (-2_i64).to_le_bytes());
        assert_eq!(short(table + member(4)), 300);
        let text = table + member(3) + number(&bytes, table + member(3));
        assert_eq!((number(&bytes, text), &bytes[text + 4..text + 8]), (3, &b"abc\0"[..]));
        assert!(bytes.len().is_multiple_of(8));
    }
}
