//! Versions of the protocol, and the one on which both ends of a connection agree.

use std::fmt;

/// A version of everything that servers send to each other: frames, requests, answers.
///
/// docs/cluster-protocol.md has the rules of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Protocol(u32);

impl Protocol {
    /// The newest protocol of this program.
    pub const NEWEST: Self = Self(9);

    /// The oldest protocol of this program: that of the version before, or an earlier one.
    pub const OLDEST: Self = Self(7);

    /// The first protocol whose requests may say the build of the data that they are for, and with which
    /// servers say which files they have.
    pub const BUILDS: Self = Self(8);

    /// The first protocol of servers whose partitions can move.
    pub const LAYOUTS: Self = Self(9);

    /// The last protocol whose hello offers one protocol alone. Its servers refuse every other one.
    pub(crate) const LAST_WITHOUT_RANGE: Self = Self(7);

    /// The protocol with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The protocols of one server: consecutive ones, at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProtocolRange {
    oldest: Protocol,
    newest: Protocol,
}

impl ProtocolRange {
    /// The protocols of this program.
    pub const SUPPORTED: Self = Self { oldest: Protocol::OLDEST, newest: Protocol::NEWEST };

    /// From the oldest to the newest one; `None`: `oldest` is newer than `newest`.
    #[must_use]
    pub fn new(oldest: Protocol, newest: Protocol) -> Option<Self> {
        (oldest <= newest).then_some(Self { oldest, newest })
    }

    /// One protocol alone.
    #[must_use]
    pub const fn only(protocol: Protocol) -> Self {
        Self { oldest: protocol, newest: protocol }
    }

    /// The oldest one.
    #[must_use]
    pub const fn oldest(self) -> Protocol {
        self.oldest
    }

    /// The newest one.
    #[must_use]
    pub const fn newest(self) -> Protocol {
        self.newest
    }

    /// Whether `protocol` is one of them.
    #[must_use]
    pub fn contains(self, protocol: Protocol) -> bool {
        (self.oldest..=self.newest).contains(&protocol)
    }

    /// The newest protocol of both; `None`: they have none in common.
    #[must_use]
    pub fn agree(self, other: Self) -> Option<Protocol> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

impl fmt::Display for ProtocolRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "protocol {}", self.newest),
            false => write!(f, "protocols {} to {}", self.oldest, self.newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(oldest: u32, newest: u32) -> ProtocolRange {
        ProtocolRange::new(Protocol(oldest), Protocol(newest)).expect("a range")
    }

    #[test]
    fn both_ends_agree_on_the_newest_protocol_of_both() {
        for oldest in 1..6 {
            for newest in oldest..6 {
                for other_oldest in 1..6 {
                    for other_newest in other_oldest..6 {
                        let (one, other) = (range(oldest, newest), range(other_oldest, other_newest));
                        let common = (1..6).map(Protocol).filter(|p| one.contains(*p) && other.contains(*p));
                        assert_eq!(one.agree(other), common.max(), "{one} and {other}");
                        assert_eq!(one.agree(other), other.agree(one));
                    }
                }
            }
        }
        assert_eq!(ProtocolRange::new(Protocol(2), Protocol(1)), None);
        // Servers of the version before have a protocol in common with this one.
        assert!(ProtocolRange::SUPPORTED.contains(Protocol(Protocol::NEWEST.number() - 1)));
    }
}
