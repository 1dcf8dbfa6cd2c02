//! What a volume was made with: the volume context, which must be the same each time it is
//! asked for, and with which another CreateVolume of the same name must agree. Windows keeps
//! none of it in the VHDX, so a file beside it does: `<volume id>.context.json`. A volume
//! without parameters has none.

use std::collections::BTreeMap;

use csi_proxy::os::{At, Bytes, ReadFile, WriteFile};
use csi_proxy::{ErrorKind, Result};

use super::parameters::Parameters;
use super::pool::Pool;
use crate::driver::{Capability, none_if_missing};

/// No context is longer: CSI allows 4 KiB, which JSON may write as six times as much.
const LIMIT: u32 = 32 << 10;

/// A volume context.
pub(super) type Context = BTreeMap<String, String>;

impl Pool<'_> {
    /// The context of a volume.
    ///
    /// # Errors
    /// `FailedPrecondition` when the file is not what the driver writes.
    pub(super) fn context(&self, volume_id: &str) -> Result<Context> {
        let file = self.context_file(volume_id)?;
        let request = ReadFile {
            at: At::path(&file),
            limit: LIMIT,
        };
        let read = self.host.os().read_file(&request, self.deadline);
        let read = none_if_missing(read.map_err(|error| self.failed(&file, error)))?;
        let Some(bytes) = read else {
            return Ok(Context::new());
        };
        serde_json::from_slice(&bytes.0).map_err(|error| {
            let detail = format!("{file} does not hold its volume context: {error}");
            self.error(ErrorKind::FailedPrecondition, volume_id, detail)
        })
    }

    /// The parameters to use a volume by: those that it was made with, whether the caller gives
    /// them again or not, and without them the caller's.
    ///
    /// # Errors
    /// `FailedPrecondition` when the caller or the use names others.
    pub(super) fn parameters(
        &self,
        volume_id: &str,
        given: Parameters,
        capability: &Capability,
    ) -> Result<Parameters> {
        let context = self.context(volume_id)?;
        if context.is_empty() {
            return Ok(given);
        }
        let asked = given.for_uses(self.operation, std::slice::from_ref(capability))?;
        let made_with = Parameters::read_context(self.operation, &context)
            .map_err(|error| error.with_kind(ErrorKind::FailedPrecondition))?
            .decided();
        match made_with.contradiction(&asked) {
            Some((key, contradiction)) => {
                let detail = format!("{key} {contradiction}");
                Err(self.error(ErrorKind::FailedPrecondition, volume_id, detail))
            }
            None => Ok(made_with),
        }
    }

    /// Writes the context of a volume that is about to be made. It is there before the
    /// volume is, so that no cut leaves a volume with another one.
    pub(super) fn write_context(&self, volume_id: &str, context: &Context) -> Result<()> {
        let file = self.context_file(volume_id)?;
        if context.is_empty() {
            return self.remove(&file);
        }
        let contents = serde_json::to_vec(context)
            .map_err(|error| self.error(ErrorKind::Internal, volume_id, error))?;
        let request = WriteFile {
            at: At::path(&file),
            contents: Bytes(contents),
        };
        let written = self.host.os().write_file(&request, self.deadline);
        written.map_err(|error| self.failed(&file, error))
    }
}
