//! Numbers of voters.

const PLACE_BITS: u32 = 16;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;

/// The place of a voter among all servers: its number without that of its beginning. A voter that has lost
/// its log has forgotten its votes, so it begins anew with another number of the same place, and takes the
/// place of the one that it was ([`crate::Replica::join`]).
#[must_use]
pub fn place(voter: u64) -> u64 {
    voter & PLACE_MASK
}

/// The number of the voter at a place that has begun for the `beginning`-th time; 0 is the first time.
#[must_use]
pub fn number_at(place: u64, beginning: u32) -> u64 {
    place & PLACE_MASK | u64::from(beginning) << PLACE_BITS
}
