//! The certificate of a server.

use crate::files::failed;
use crate::init::{AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE};
use crate::map::ClusterMap;
use std::path::Path;
use vervet_model::Result;
use vervet_peer::Identity;

/// The certificate of a server, which must be that of its map.
pub(crate) fn open_identity(directory: &Path, map: &ClusterMap) -> Result<Identity> {
    let read = |name: &str| {
        let path = directory.join(name);
        std::fs::read(&path).map_err(failed("read", &path))
    };
    let (authority, own) = (read(AUTHORITY_FILE)?, map.own()?);
    let identity = Identity::from_pem(&authority, &read(CERTIFICATE_FILE)?, &read(KEY_FILE)?)?;
    identity.check(&own.name)?;
    map.check_authority(&authority)?;
    Ok(identity)
}
