//! Reasons why a strip does not run on the device.

use vervet_device::DeviceError;
use vervet_model::Error;

/// Why a strip ended.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The device failed.
    Device(DeviceError),
    /// Too many rows: fewer may fit.
    Rows,
    /// The windows of a step do not fit.
    Windows,
    /// A multiplicity above 2^64.
    Overflow,
    /// A row of an optional part or a union that ids do not decide.
    Undecided,
    /// An error of the query.
    Query(Error),
}

impl From<DeviceError> for Stop {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Query(error)
    }
}
