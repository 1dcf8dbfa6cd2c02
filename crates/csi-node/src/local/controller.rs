//! Making, growing and deleting the VHDX files.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, CreateVirtualDisk, ExpandVirtualDisk, Rename, VirtualDiskInfo};
use csi_proxy::{ErrorKind, HostPath, Result};

use super::context::Context;
use super::parameters::Parameters;
use super::pool::{Pool, says_no_vhdx, says_unreadable};
use super::{LocalDriver, id, size};
use crate::driver::{
    Access, Capability, Capacity, Condition, ControllerDriver, Create, Listing, Page, SizeRange,
    Uses, Volume, none_if_missing,
};
use crate::validate::Fields;

impl ControllerDriver for LocalDriver {
    fn volume_id(&self, name: &str) -> String {
        id::of_name(name)
    }

    fn check_parameters(
        &self,
        parameters: &BTreeMap<String, String>,
        capabilities: &[Capability],
    ) -> Result<()> {
        const OPERATION: &str = "local parameters";
        Parameters::read(OPERATION, parameters)?.check(OPERATION, capabilities)
    }

    /// A volume for which no file system was named is an NTFS volume.
    fn check_uses(&self, volume: &Volume, asked: &Uses) -> Result<()> {
        const OPERATION: &str = "local check volume";
        let made_with = Parameters::read_context(OPERATION, &volume.context)?.decided();
        let context = Parameters::read_context(OPERATION, &asked.context)?;
        let parameters = Parameters::read(OPERATION, &asked.parameters)?;
        for (field, asked) in [("volume_context", context), ("parameters", parameters)] {
            asked.check(OPERATION, &[])?;
            if let Some((key, detail)) = made_with.contradiction(&asked) {
                return Err(Fields(OPERATION).wrong(&format!("{field}.{key}"), detail));
            }
        }
        made_with.check(OPERATION, &asked.capabilities)
    }

    /// The file is made under another name and renamed when it is whole, so that a cut
    /// leaves either a volume or a file that the next creation removes.
    fn create(&self, request: &Create, deadline: Deadline) -> Result<Volume> {
        let pool = self.pool("local create volume", deadline);
        let volume_id = id::of_name(&request.name);
        let parameters = Parameters::read(pool.operation, &request.parameters)?
            .for_uses(pool.operation, &request.capabilities)?;
        let context = parameters.to_context();
        let file = pool.file(&volume_id)?;
        pool.locked(&volume_id, || {
            let info = match pool.find(&file)? {
                Some(info) => existing(&pool, &volume_id, request.range, &context, info)?,
                None if is_for_readers_only(&request.capabilities) => {
                    let detail = "are for reading only, but a new volume is empty and is formatted \
                                  when it is staged for writing, expected SINGLE_NODE_WRITER too";
                    return Err(Fields(pool.operation).wrong("volume_capabilities", detail));
                }
                None => {
                    let file_system = parameters.file_system();
                    let size = size::choose(pool.operation, request.range, file_system)?;
                    self.make(&pool, &volume_id, &file, size, &context)?
                }
            };
            Ok(volume(volume_id.clone(), &info, context))
        })
    }

    fn delete(&self, volume_id: &str, deadline: Deadline) -> Result<()> {
        let pool = self.pool("local delete volume", deadline);
        let Some(file) = none_if_missing(pool.file(volume_id))? else {
            return Ok(());
        };
        pool.locked(volume_id, || {
            match pool.find(&file) {
                Ok(Some(info)) if info.attached => {
                    let detail = "is in use on this node; unstage it first";
                    return Err(pool.error(ErrorKind::FailedPrecondition, volume_id, detail));
                }
                Ok(None) => {}
                // Windows does not remove a file that is attached, readable or not.
                Ok(Some(_)) => pool.remove(&file)?,
                Err(error) if says_no_vhdx(&error) => pool.remove(&file)?,
                Err(error) => return Err(error),
            }
            pool.forget_records(volume_id)?;
            pool.remove(&pool.context_file(volume_id)?)?;
            pool.remove(&pool.unfinished(volume_id)?)
        })
    }

    /// Source: `ExpandVirtualDisk` works on a detached file only.
    fn grow(&self, volume_id: &str, range: SizeRange, deadline: Deadline) -> Result<u64> {
        let pool = self.pool("local expand volume", deadline);
        let file = pool.file(volume_id)?;
        pool.locked(volume_id, || {
            let info = pool.info(volume_id)?;
            let size = size::grown(pool.operation, range, info.virtual_size)?;
            if size == info.virtual_size {
                return Ok(size);
            }
            if info.attached {
                let detail = "is in use on this node; a VHDX file is expanded only while it is \
                              detached, so stop its pods first";
                return Err(pool.error(ErrorKind::FailedPrecondition, volume_id, detail));
            }
            let _others = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            pool.locked_whole(|| {
                let more = size - info.virtual_size;
                let room = self.room(&pool)?;
                if more > room {
                    let detail = format!("{more} bytes more are needed and {room} are left");
                    return Err(pool.error(self.no_room_for(size), volume_id, detail));
                }
                let request = ExpandVirtualDisk {
                    at: At::path(&file),
                    size,
                };
                let expanded = self.host.os().expand_virtual_disk(&request, deadline);
                expanded.map_err(|error| pool.failed(&file, error))?;
                Ok(size)
            })
        })
    }

    fn get(&self, volume_id: &str, deadline: Deadline) -> Result<Volume> {
        let pool = self.pool("local get volume", deadline);
        let info = pool.info(volume_id)?;
        Ok(volume(
            volume_id.to_owned(),
            &info,
            pool.context(volume_id)?,
        ))
    }

    fn list(&self, page: &Page, deadline: Deadline) -> Result<Listing> {
        let pool = self.pool("local list volumes", deadline);
        let mut ids: Vec<_> = pool.contents()?.files.into_keys().collect();
        if let Some(after) = &page.after {
            ids.retain(|id| id > after);
        }
        let count = page.limit.unwrap_or(ids.len());
        let more = ids.len() > count;
        ids.truncate(count);
        let volumes = ids
            .into_iter()
            .map(|id| listed(&pool, id))
            .collect::<Result<Vec<_>>>()?;
        Ok(Listing {
            volumes: volumes.into_iter().flatten().collect(),
            more,
        })
    }

    fn capacity(
        &self,
        parameters: &BTreeMap<String, String>,
        capabilities: &[Capability],
        deadline: Deadline,
    ) -> Result<Capacity> {
        let pool = self.pool("local capacity", deadline);
        let parameters =
            Parameters::read(pool.operation, parameters)?.for_uses(pool.operation, capabilities)?;
        self.make_directories(&pool)?;
        let room = self.room(&pool)?;
        let available = match is_for_readers_only(capabilities) {
            true => 0,
            false => room,
        };
        Ok(Capacity {
            available,
            maximum: available.min(size::MAXIMUM),
            minimum: size::minimum(parameters.file_system()),
        })
    }
}

impl LocalDriver {
    fn make(
        &self,
        pool: &Pool<'_>,
        volume_id: &str,
        file: &HostPath,
        size: u64,
        context: &Context,
    ) -> Result<VirtualDiskInfo> {
        let _others = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        self.make_directories(pool)?;
        pool.locked_whole(|| {
            // Nobody else makes a volume now, so whatever is unfinished was left behind.
            for left_behind in pool.contents()?.unfinished {
                pool.remove(&left_behind)?;
            }
            let room = self.room(pool)?;
            if size > room {
                let detail = format!("{size} bytes are needed and {room} are left");
                return Err(pool.error(self.no_room_for(size), volume_id, detail));
            }
            pool.write_context(volume_id, context)?;
            let unfinished = pool.unfinished(volume_id)?;
            let create = CreateVirtualDisk {
                at: At::path(&unfinished),
                size,
            };
            let created = self.host.os().create_virtual_disk(&create, pool.deadline);
            created.map_err(|error| pool.failed(&unfinished, error))?;
            let rename = Rename {
                at: At::path(&unfinished),
                to: file.clone(),
            };
            let renamed = self.host.os().rename(&rename, pool.deadline);
            renamed.map_err(|error| pool.failed(&unfinished, error))?;
            pool.info(volume_id)
        })
    }

    /// What it means that there is no room for a volume of this size, made or grown to it.
    /// CSI 1.12 has OUT_OF_RANGE for a size that the caller must change before it tries again:
    /// one that this pool can never have. RESOURCE_EXHAUSTED leaves the size as it is: others
    /// must make room, or another node be tried.
    fn no_room_for(&self, size: u64) -> ErrorKind {
        match size > self.limit {
            true => ErrorKind::OutOfRange,
            false => ErrorKind::ResourceExhausted,
        }
    }

    /// How many bytes can still be promised, in steps of a MiB. What was promised to the
    /// volumes and is not written yet counts as used: a pod must not meet a full disk
    /// because of another volume. A file that is no VHDX counts with its own size.
    fn room(&self, pool: &Pool<'_>) -> Result<u64> {
        let at = At::path(&self.directory);
        let space = self.host.os().space(&at, pool.deadline);
        let space = space.map_err(|error| pool.failed(&self.directory, error))?;
        let (mut promised, mut unwritten) = (0_u64, 0_u64);
        for (id, bytes) in pool.contents()?.files {
            match pool.find(&pool.file(&id)?) {
                Ok(Some(info)) => {
                    promised = promised.saturating_add(info.virtual_size);
                    let rest = info.virtual_size.saturating_sub(info.physical_size);
                    unwritten = unwritten.saturating_add(rest);
                }
                Ok(None) => {}
                Err(error) if says_no_vhdx(&error) => {
                    tracing::warn!(
                        "volume {id} counts with the {bytes} bytes of its file: {error}"
                    );
                    promised = promised.saturating_add(bytes);
                }
                Err(error) => return Err(error),
            }
        }
        let by_space = space.available.saturating_sub(unwritten);
        let by_limit = self.limit.saturating_sub(promised);
        let room = by_space.min(by_limit);
        Ok(room - room % size::MIB)
    }
}

/// Whether nobody is going to write, so that a new volume would stay without a file system.
fn is_for_readers_only(capabilities: &[Capability]) -> bool {
    let reads = |capability: &Capability| capability.access == Access::ReadOnly;
    !capabilities.is_empty() && capabilities.iter().all(reads)
}

/// A volume that is there already, if it is the one that is asked for.
fn existing(
    pool: &Pool<'_>,
    volume_id: &str,
    range: SizeRange,
    context: &Context,
    info: VirtualDiskInfo,
) -> Result<VirtualDiskInfo> {
    let refused = |detail| Err(pool.error(ErrorKind::AlreadyExists, volume_id, detail));
    if !size::fits(range, info.virtual_size) {
        let size = info.virtual_size;
        return refused(format!(
            "exists with {size} bytes, which is not what is asked for: {range}"
        ));
    }
    let made_with = pool.context(volume_id)?;
    match made_with == *context {
        true => Ok(info),
        false => refused(format!(
            "exists with the parameters {made_with:?}, and {context:?} are asked for"
        )),
    }
}

/// A volume for a list. One that went meanwhile is left out; one that cannot be read is
/// shown as such, so that it does not hide the others.
fn listed(pool: &Pool<'_>, volume_id: String) -> Result<Option<Volume>> {
    let read = pool
        .info(&volume_id)
        .and_then(|info| Ok((info, pool.context(&volume_id)?)));
    match read {
        Ok((info, context)) => Ok(Some(volume(volume_id, &info, context))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if says_unreadable(&error) => Ok(Some(Volume {
            id: volume_id,
            size: 0,
            context: Context::new(),
            in_use: false,
            condition: Condition::abnormal(error.to_string()),
        })),
        Err(error) => Err(error),
    }
}

fn volume(id: String, info: &VirtualDiskInfo, context: Context) -> Volume {
    Volume {
        id,
        size: info.virtual_size,
        context,
        in_use: info.attached,
        condition: Condition::healthy(),
    }
}
