//! The log of the writer as a follower reads it for its change feed.

use crate::following::{READ_LOG, read_answer};
use crate::peer_part::PeerPart;
use std::sync::Arc;
use vervet::{LogRecord, RecordSource};
use vervet_codec::{Damaged, write_u64};
use vervet_model::{Error, Result};
use vervet_partition::Remote;

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct WriterLog(pub(crate) Arc<PeerPart>);

impl RecordSource for WriterLog {
    fn records(&self, after: u64) -> Result<([u64; 2], Vec<LogRecord>)> {
        let mut request = vec![READ_LOG];
        write_u64(after, &mut request);
        // Without a wait for further records.
        write_u64(0, &mut request);
        let answer = self.0.send(&request)?.receive()?;
        let damaged = |damaged: Damaged| Error::corrupt("records of the writer", damaged.0);
        let (log, _, records) = read_answer(&answer).map_err(damaged)?;
        Ok((log, records))
    }
}
