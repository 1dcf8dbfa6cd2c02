//! The library's operations, group by group, on a node that has something for each: what
//! goes well, and what Windows refuses. Test and example share this file.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use csi_proxy::clock::Deadline::Never;
use csi_proxy::disk::DiskState;
use csi_proxy::iscsi::{Authentication, ChapSecret};
use csi_proxy::os::At;
use csi_proxy::staging::StageRequest;
use csi_proxy::trace::{Header, NodeKind, Output, Secrets, Snapshot, Start};
use csi_proxy::volume::{FormatOptions, NewSize};
use csi_proxy::{Credentials, DiskNumber, Host, HostPath, NodeAddress, Portal, Secret, SharePath};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::iscsi::SimTarget;
use csi_proxy_sim::services::Service;
use csi_proxy_sim::smb::{Server, Share};
use csi_proxy_sim::storage::{Content, SimDisk};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// No trace may hold any of these.
pub(crate) const PASSWORD: &str = r"canary:pass\word-5e7c";
pub(crate) const WRONG_PASSWORD: &str = "canary-wrong-7a10";
pub(crate) const CHAP_SECRET: &str = "canary-chap-5e7";
pub(crate) const MUTUAL_SECRET: &str = "canary-mutual-1";

const GUARDED: &str = "iqn.1991-05.com.example:guarded";

/// A group of operations.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Host),
}

/// All groups, in the order in which they can follow each other on one node.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "disk-volume",
        run: disks_and_volumes,
    },
    Group {
        name: "filesystem",
        run: files,
    },
    Group {
        name: "smb",
        run: shares,
    },
    Group {
        name: "iscsi",
        run: targets,
    },
    Group {
        name: "system",
        run: services,
    },
];

/// A node that has what the groups need.
pub(crate) fn node() -> SimNode {
    let server = Server::new()
        .account(r"DOM\user", PASSWORD)
        .share("share", Share::new(GIB).writer(r"DOM\user"));
    let target = SimTarget::at("10.0.0.4", 3260)
        .lun(SimDisk::raw(GIB))
        .chap("initiator", CHAP_SECRET)
        .mutual_chap(MUTUAL_SECRET);
    let location = "PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 4";
    let node = SimNode::builder()
        .disk(SimDisk::raw(10 * GIB).serial("vol0123").location(location))
        .disk(SimDisk::raw(GIB).content(Content::Ext4))
        .disk(SimDisk::ntfs(GIB).offline())
        .disk(SimDisk::gpt(GIB).read_only())
        .smb_server("files", server)
        .iscsi_target(GUARDED, target)
        .service(Service::new("base", "Base").running())
        .service(Service::new("above", "Above").depends_on("base").running())
        .build();
    node.change(|state| {
        state.put_directory(r"\\files\share\data").unwrap();
        state.put_file(r"C:\file", b"canary of a file").unwrap();
    });
    node
}

fn path(text: &str) -> HostPath {
    HostPath::from_kubelet(text).unwrap()
}

fn disks_and_volumes(host: &Host) {
    let host = &host.clone().with_state_dir(path(r"C:\state"));
    let (disk, volume) = (host.disk(), host.volume());
    disk.list_locations(Never).unwrap();
    disk.list_ids(Never).unwrap();
    disk.rescan(Never).unwrap();
    let data = disk.find(&"lun=4".parse().unwrap(), Never).unwrap();
    disk.stats(data.number, Never).unwrap();
    disk.partition(data.number, Never).unwrap();
    let ids = volume.list_on_disk(data.number, None, Never).unwrap();
    let id = &ids[0];
    assert!(!volume.is_formatted(id, Never).unwrap());
    volume.format(id, &FormatOptions::default(), Never).unwrap();
    volume.stats(id, Never).unwrap();
    volume.health(id, Never).unwrap();
    volume.disk_number(id, Never).unwrap();
    let mount = path(r"C:\var\lib\kubelet\plugins\mount");
    host.filesystem().mkdir(&mount, Never).unwrap();
    volume.mount(id, &mount, Never).unwrap();
    volume.id_from_target_path(&mount, Never).unwrap();
    let below = path(r"C:\var\lib\kubelet\plugins\mount\below");
    host.filesystem().mkdir(&below, Never).unwrap();
    volume.closest_id_from_target_path(&below, Never).unwrap();
    volume.write_cache(id, Never).unwrap();
    volume.resize(id, NewSize::Largest, Never).unwrap();
    volume.resize(id, NewSize::Bytes(MIB), Never).unwrap();
    volume
        .resize(id, NewSize::Bytes(100 * GIB), Never)
        .unwrap_err();
    volume.unmount(id, &mount, Never).unwrap();
    stage(host, &data.unique_id).unwrap();
    host.staging().unstage(&staged(), None, Never).unwrap();

    // The ext4 of another.
    disk.partition(DiskNumber(2), Never).unwrap_err();
    disk.set_state(DiskNumber(3), DiskState::Online, Never)
        .unwrap();
    disk.state(DiskNumber(3), Never).unwrap();
    // Read-only: 41002 of CreatePartition.
    disk.partition(DiskNumber(4), Never).unwrap_err();
    disk.clear_read_only(DiskNumber(4), Never).unwrap();
    disk.partition(DiskNumber(4), Never).unwrap();
    disk.info(DiskNumber(9), Never).unwrap_err();
    disk.number_by_name("no such id", Never).unwrap_err();
    // A call that is late before it begins.
    let now = csi_proxy::clock::Deadline::At(host.os().now());
    disk.list_ids(now).unwrap_err();
}

fn staged() -> HostPath {
    path(r"C:\var\lib\kubelet\plugins\staged")
}

fn stage(host: &Host, disk: &str) -> csi_proxy::Result<()> {
    let request = StageRequest {
        disk: disk.to_owned(),
        path: staged(),
        format: FormatOptions::default(),
        file_system: None,
        read_only: false,
    };
    host.staging().stage(&request, Never).map(drop)
}

fn files(host: &Host) {
    let files = host.filesystem();
    let (directory, link) = (path(r"C:\dir"), path(r"C:\dir\link"));
    files.mkdir(&directory, Never).unwrap();
    files.mkdir(&directory, Never).unwrap();
    let target = path(r"C:\dir\target");
    files.mkdir(&target, Never).unwrap();
    files.create_symlink(&target, &link, Never).unwrap();
    assert!(files.is_symlink(&link, Never).unwrap());
    assert!(files.path_exists(&link, Never).unwrap());
    assert!(files.path_valid(&link, Never).unwrap());
    files.path_valid(&path(r"C:\nowhere"), Never).unwrap();
    files.rmdir(&directory, false, Never).unwrap_err();
    files.mkdir(&path(r"C:\file"), Never).unwrap_err();
    let outside = At::within(&path(r"C:\file"), &directory);
    files.rmdir(outside, true, Never).unwrap_err();
    files.rmdir_contents(&directory, Never).unwrap();
    files.rmdir(&directory, true, Never).unwrap();
    files.is_symlink(&link, Never).unwrap_err();
}

fn shares(host: &Host) {
    let smb = host.smb();
    let share = SharePath::new(r"\\files\share\data").unwrap();
    let with = |password: &str| Credentials::new(r"DOM\user", Secret::new(password)).unwrap();
    let (user, wrong) = (with(PASSWORD), with(WRONG_PASSWORD));
    smb.status(&share, Never).unwrap();
    smb.new_global_mapping(&share, Some(&wrong), None, true, Never)
        .unwrap_err();
    let local = At::path(&path(r"C:\var\lib\kubelet\share"));
    smb.new_global_mapping(&share, Some(&user), Some(&local), true, Never)
        .unwrap();
    smb.status(&share, Never).unwrap();
    let other = SharePath::new(r"\\files\other").unwrap();
    smb.new_global_mapping(&other, Some(&user), None, true, Never)
        .unwrap_err();
    smb.remove_global_mapping(&share, Never).unwrap();
    smb.acquire_global_mapping(&share, Some(&user), true, &[], Never)
        .unwrap();
    smb.release_global_mapping(&share, 0, Never).unwrap();
}

fn targets(host: &Host) {
    let iscsi = host.iscsi();
    let portal = Portal::new("10.0.0.4", 0).unwrap();
    let target = NodeAddress::new(GUARDED).unwrap();
    let secret = |text: &str| ChapSecret::new(Secret::new(text)).unwrap();
    let username = || "initiator".to_owned();
    // The service does not run yet.
    iscsi.add_target_portal(&portal, Never).unwrap_err();
    host.system().start_service("MSiSCSI", Never).unwrap();
    iscsi.add_target_portal(&portal, Never).unwrap();
    iscsi.list_target_portals(Never).unwrap();
    iscsi.discover_target_portal(&portal, Never).unwrap();
    iscsi
        .connect_target(&portal, &target, &Authentication::None, Never)
        .unwrap_err();
    let one_way = Authentication::OneWayChap {
        username: username(),
        secret: secret(CHAP_SECRET),
    };
    iscsi
        .connect_target(&portal, &target, &one_way, Never)
        .unwrap();
    iscsi.target_disks(&target, Never).unwrap();
    iscsi.disconnect_target(&target, Never).unwrap();
    iscsi
        .set_mutual_chap_secret(&secret(MUTUAL_SECRET), Never)
        .unwrap();
    let mutual = Authentication::MutualChap {
        username: username(),
        secret: secret(CHAP_SECRET),
    };
    iscsi
        .connect_target(&portal, &target, &mutual, Never)
        .unwrap();
    iscsi.disconnect_target(&target, Never).unwrap();
    iscsi.remove_target_portal(&portal, Never).unwrap();
}

fn services(host: &Host) {
    let system = host.system();
    system.bios_serial_number(Never).unwrap();
    system.service("base", Never).unwrap();
    system.stop_service("base", false, Never).unwrap_err();
    system.stop_service("base", true, Never).unwrap();
    system.start_service("above", Never).unwrap();
    system.service("none", Never).unwrap_err();
}

/// What is written of a trace.
#[derive(Clone, Default)]
pub(crate) struct Text(Arc<Mutex<Vec<u8>>>);

impl Text {
    pub(crate) fn read(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8(bytes.clone()).unwrap()
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How the header of a trace tells the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// As the simulated node that it is.
    Exactly,
    /// By what its ports answer, as on Windows.
    BySnapshot,
}

/// A trace of what `run` does on the node.
pub(crate) fn recorded(node: &SimNode, begin: Begin, run: impl FnOnce(&Host)) -> String {
    let host = node.process().host();
    let mut secrets = Secrets::default();
    let header = match begin {
        Begin::Exactly => Header::new(NodeKind::Simulated, Some(node.trace_start(&mut secrets))),
        Begin::BySnapshot => {
            let snapshot = Snapshot::take(host.cim(), host.os(), Never);
            let kind = NodeKind::windows(host.cim(), Never);
            Header::new(kind, Some(Start::Snapshot(Box::new(snapshot))))
        }
    };
    let text = Text::default();
    let failed = |error: &std::io::Error| panic!("{error}");
    let output = Output::begin(text.clone(), &header, host.os().now(), secrets, failed).unwrap();
    run(&host.recorded(&output));
    text.read()
}
