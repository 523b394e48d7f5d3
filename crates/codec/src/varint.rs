//! LEB128 varints.

/// Longest LEB128 form of a `u64`.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value` as LEB128: seven bits in each byte, low ones first, the top bit says "more".
#[inline]
pub fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Decodes a LEB128 number and advances `bytes`; `None` if there is none.
#[inline]
pub fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    if let [second @ ..0x80, rest @ ..] = rest {
        *bytes = rest;
        return Some(u64::from(first & 0x7F) | u64::from(*second) << 7);
    }
    read_long_varint(bytes)
}

fn read_long_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (i, &byte) in bytes.iter().enumerate().take(VARINT_BYTES_MAX) {
        let bits = u64::from(byte & 0x7F);
        if i == VARINT_BYTES_MAX - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            write_varint(value, &mut bytes);
            bytes.push(7);
            let mut rest = bytes.as_slice();
            assert_eq!(read_varint(&mut rest), Some(value));
            assert_eq!(rest, [7]);
            let mut cut = &bytes[..bytes.len() - 2];
            assert_eq!(read_varint(&mut cut), None);
        }
        assert_eq!(read_varint(&mut [0xFF; 12].as_slice()), None);
        assert_eq!(
            read_varint(&mut [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2].as_slice()),
            None
        );
    }
}
