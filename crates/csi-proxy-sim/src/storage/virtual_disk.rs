//! VHDX files on the port to the operating system.
//!
//! Source: <https://learn.microsoft.com/windows/win32/api/virtdisk/>

use csi_proxy::clock::Deadline;
use csi_proxy::os::{
    At, AttachVirtualDisk, CreateVirtualDisk, ExpandVirtualDisk, VirtualDiskInfo, VirtualDisks,
};
use csi_proxy::port::PortResult;
use csi_proxy::{DevicePath, DiskNumber, HostPath};
use serde::{Deserialize, Serialize};

use super::medium::Medium;
use super::{
    BusType, Disk, DiskId, Identifier, MediumId, detach, forget_medium, ids, physical_size,
};
use crate::ports::Ports;
use crate::state::State;
use crate::win32::{ERROR_INVALID_PARAMETER, ERROR_NOT_READY, ERROR_SHARING_VIOLATION, win32};

const MIB: u64 = 1 << 20;
/// A VHDX holds 3 MB to 64 TB.
///
/// Source: [MS-VHDX] 1.3, and `CREATE_VIRTUAL_DISK_PARAMETERS`.
const SIZES: std::ops::RangeInclusive<u64> = 3 * MIB..=64 << 40;

/// A VHDX file, besides what it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VirtualDisk {
    /// The identity in the file's header, a GUID; an attached disk's unique id follows from
    /// it.
    pub identity: String,
    /// The disk it is attached as.
    pub attached: Option<DiskId>,
}

impl VirtualDisk {
    /// The NAA identifier of an attached VHDX: Microsoft's organisation and the identity.
    fn unique_id(&self) -> String {
        let digits: String = self.identity.chars().filter(|one| *one != '-').collect();
        format!("60022480{}", &digits[..24.min(digits.len())])
    }
}

impl VirtualDisks for Ports<'_> {
    fn create_virtual_disk(&self, request: &CreateVirtualDisk, _: Deadline) -> PortResult<()> {
        let size = request.size;
        if !SIZES.contains(&size) || !size.is_multiple_of(MIB) {
            return Err(win32("CreateVirtualDisk", ERROR_INVALID_PARAMETER));
        }
        create(&mut self.model().state, request)
    }

    fn virtual_disk_info(&self, at: &At, _: Deadline) -> PortResult<VirtualDiskInfo> {
        let model = self.model();
        let state = &model.state;
        let (id, _) = crate::fs::virtual_disk_at(state, at, "OpenVirtualDisk")?;
        Ok(VirtualDiskInfo {
            virtual_size: state.storage.media.get(&id).map_or(0, |medium| medium.size),
            physical_size: physical_size(state, id),
            attached: state.storage.is_attached(id),
        })
    }

    fn attach_virtual_disk(&self, request: &AttachVirtualDisk, _: Deadline) -> PortResult<()> {
        let mut model = self.model();
        let state = &mut model.state;
        let (id, path) = crate::fs::virtual_disk_at(state, &request.at, "OpenVirtualDisk")?;
        match state.storage.is_attached(id) {
            true => Err(win32("AttachVirtualDisk", ERROR_SHARING_VIOLATION)),
            false => {
                attach(state, id, &path, request.read_only);
                Ok(())
            }
        }
    }

    fn detach_virtual_disk(&self, at: &At, _: Deadline) -> PortResult<()> {
        let mut model = self.model();
        let state = &mut model.state;
        let (id, _) = crate::fs::virtual_disk_at(state, at, "OpenVirtualDisk")?;
        let attached = (state.storage.virtual_disks.get(&id)).and_then(|disk| disk.attached);
        let disk = attached.ok_or_else(|| win32("DetachVirtualDisk", ERROR_NOT_READY))?;
        detach(state, disk);
        Ok(())
    }

    fn expand_virtual_disk(&self, request: &ExpandVirtualDisk, _: Deadline) -> PortResult<()> {
        const API: &str = "ExpandVirtualDisk";
        let mut model = self.model();
        let state = &mut model.state;
        let (id, _) = crate::fs::virtual_disk_at(state, &request.at, "OpenVirtualDisk")?;
        if state.storage.is_attached(id) {
            return Err(win32(API, ERROR_SHARING_VIOLATION));
        }
        let size = request.size;
        let medium = (state.storage.media.get_mut(&id))
            .filter(|medium| medium.size <= size)
            .filter(|_| SIZES.contains(&size) && size.is_multiple_of(MIB))
            .ok_or_else(|| win32(API, ERROR_INVALID_PARAMETER))?;
        medium.grow(size);
        Ok(())
    }

    fn virtual_disk_path(&self, at: &At, _: Deadline) -> PortResult<DevicePath> {
        let model = self.model();
        let storage = &model.state.storage;
        let (id, _) = crate::fs::virtual_disk_at(&model.state, at, "OpenVirtualDisk")?;
        let attached = (storage.virtual_disks.get(&id)).and_then(|disk| disk.attached);
        let disk = attached.and_then(|disk| storage.disks.get(&disk));
        // The code is assumed.
        disk.map(|disk| DevicePath::disk(DiskNumber(disk.number)))
            .ok_or_else(|| win32("GetVirtualDiskPhysicalPath", ERROR_NOT_READY))
    }
}

fn create(state: &mut State, request: &CreateVirtualDisk) -> PortResult<()> {
    let seed = state.storage.next_id();
    let id = MediumId(seed);
    state.storage.media.insert(id, Medium::empty(request.size));
    state.storage.virtual_disks.insert(
        id,
        VirtualDisk {
            identity: ids::guid(seed),
            attached: None,
        },
    );
    let made = crate::fs::create_virtual_disk_file(state, &request.at, id);
    if made.is_err() {
        forget_medium(state, id);
    }
    made
}

/// The disk is online at once, as disks that are not on a SAN are.
fn attach(state: &mut State, medium: MediumId, path: &HostPath, read_only: bool) {
    let id = DiskId(state.storage.next_id());
    let number = state.storage.free_number();
    let Some(file) = state.storage.virtual_disks.get_mut(&medium) else {
        return;
    };
    file.attached = Some(id);
    let unique_id = file.unique_id();
    let disk = Disk {
        number,
        medium,
        page83: Some(vec![Identifier::of_unique_id(&unique_id)]),
        unique_id,
        serial: None,
        location: Some(path.as_str().to_owned()),
        friendly_name: "Msft Virtual Disk".to_owned(),
        bus_type: BusType::FileBackedVirtual,
        offline: None,
        read_only,
        write_protected: read_only,
        boot: false,
        system: false,
        slow_online: 0,
    };
    state.storage.add_disk(id, disk);
}
