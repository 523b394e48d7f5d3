//! How callees that collect ids let their callers count and end them.

use crate::Result;

/// Called with the number of ids that the callee has come to hold since the last call, at least once for
/// every [`METER_STEP`] of them or texts that it has read. Its error ends the work.
pub type Meter<'m> = dyn FnMut(usize) -> Result<()> + 'm;

/// See [`Meter`].
pub const METER_STEP: usize = 4096;

/// A [`Meter`] for work that nothing limits.
///
/// # Errors
/// None.
pub fn unmetered(_ids: usize) -> Result<()> {
    Ok(())
}
