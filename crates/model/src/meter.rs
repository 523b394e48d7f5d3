//! Metering: lets callers account for and cancel calls that collect ids.

use crate::Result;

/// Called with the number of ids that the callee has collected since the last call, at least once for every
/// [`METER_STEP`] ids collected or texts read. Its error ends the work.
pub type Meter<'m> = dyn FnMut(usize) -> Result<()> + 'm;

/// Maximum number of ids or texts between two calls of a [`Meter`].
pub const METER_STEP: usize = 4096;

/// A [`Meter`] without a limit.
///
/// # Errors
/// None.
pub fn unmetered(_ids: usize) -> Result<()> {
    Ok(())
}
