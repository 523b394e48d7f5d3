//! Free space of a file system.
#![cfg_attr(unix, expect(unsafe_code, reason = "one call of the C library"))]

use std::io;
use std::path::Path;

/// Number of bytes that an unprivileged process may still write to the file system of `dir`.
#[cfg(unix)]
pub(crate) fn available_bytes(dir: &Path) -> io::Result<Option<u64>> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    let dir = CString::new(dir.as_os_str().as_bytes())?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `dir` is a null-terminated string and `found` has the size of a `statvfs`; both live through
    // the call, which writes nothing else (statvfs(3)).
    let result = unsafe { libc::statvfs(dir.as_ptr(), found.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: statvfs returned 0 and has therefore filled the structure; all its fields are integers.
    let found = unsafe { found.assume_init() };
    #[allow(clippy::useless_conversion, reason = "the types of these fields differ between systems")]
    Ok(Some(u64::from(found.f_bavail).saturating_mul(u64::from(found.f_frsize))))
}

/// Unknown on this system.
#[cfg(not(unix))]
pub(crate) fn available_bytes(_dir: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}
