//! The versions of the group `disk`.

use csi_proxy::DiskNumber;
use csi_proxy::disk::DiskState;

use super::{bytes, table, text};

table! { disk [v1 {}, v1beta3 {}] disk_server::Disk, call {
    list_disk_locations(ListDiskLocationsRequest {}) -> ListDiskLocationsResponse {
        let locations = call.host().disk().list_locations(call.deadline)?;
        let disk_locations = locations.into_iter().map(|(disk, at)| {
            let location = DiskLocation {
                adapter: text(at.adapter),
                bus: text(at.bus),
                target: text(at.target),
                lunid: text(at.lun),
            };
            (disk.0, location)
        });
        ListDiskLocationsResponse { disk_locations: disk_locations.collect() }
    }
    partition_disk(PartitionDiskRequest { disk_number }) -> PartitionDiskResponse {
        call.host().disk().partition(DiskNumber(disk_number), call.deadline)?;
        PartitionDiskResponse {}
    }
    rescan(RescanRequest {}) -> RescanResponse {
        call.host().disk().rescan(call.deadline)?;
        RescanResponse {}
    }
    list_disk_i_ds(ListDiskIDsRequest {}) -> ListDiskIDsResponse {
        let disks = call.host().disk().list_ids(call.deadline)?;
        let disk_i_ds = disks.into_iter().map(|(disk, ids)| {
            let ids = DiskIDs {
                page83: ids.page83.unwrap_or_default(),
                serial_number: ids.serial_number.unwrap_or_default(),
            };
            (disk.0, ids)
        });
        ListDiskIDsResponse { disk_i_ds: disk_i_ds.collect() }
    }
    get_disk_stats(GetDiskStatsRequest { disk_number }) -> GetDiskStatsResponse {
        let stats = call.host().disk().stats(DiskNumber(disk_number), call.deadline)?;
        GetDiskStatsResponse { total_bytes: bytes(stats.total_bytes) }
    }
    set_disk_state(SetDiskStateRequest { disk_number, is_online }) -> SetDiskStateResponse {
        let disk = DiskNumber(disk_number);
        call.host().disk().set_state(disk, state(is_online), call.deadline)?;
        SetDiskStateResponse {}
    }
    get_disk_state(GetDiskStateRequest { disk_number }) -> GetDiskStateResponse {
        let state = call.host().disk().state(DiskNumber(disk_number), call.deadline)?;
        GetDiskStateResponse { is_online: state == DiskState::Online }
    }
}}

table! { disk [
    v1beta1 {},
    v1beta2 {
        set_attach_state(SetAttachStateRequest { disk_id, is_online }) -> SetAttachStateResponse {
            let disk = call.disk_number("diskID", &disk_id)?;
            call.host().disk().set_state(disk, state(is_online), call.deadline)?;
            SetAttachStateResponse {}
        }
        get_attach_state(GetAttachStateRequest { disk_id }) -> GetAttachStateResponse {
            let disk = call.disk_number("diskID", &disk_id)?;
            let state = call.host().disk().state(disk, call.deadline)?;
            GetAttachStateResponse { is_online: state == DiskState::Online }
        }
    }
] disk_server::Disk, call {
    list_disk_locations(ListDiskLocationsRequest {}) -> ListDiskLocationsResponse {
        let locations = call.host().disk().list_locations(call.deadline)?;
        let disk_locations = locations.into_iter().map(|(disk, at)| {
            let location = DiskLocation {
                adapter: text(at.adapter),
                bus: text(at.bus),
                target: text(at.target),
                lunid: text(at.lun),
            };
            (disk.to_string(), location)
        });
        ListDiskLocationsResponse { disk_locations: disk_locations.collect() }
    }
    partition_disk(PartitionDiskRequest { disk_id }) -> PartitionDiskResponse {
        let disk = call.disk_number("diskID", &disk_id)?;
        call.host().disk().partition(disk, call.deadline)?;
        PartitionDiskResponse {}
    }
    rescan(RescanRequest {}) -> RescanResponse {
        call.host().disk().rescan(call.deadline)?;
        RescanResponse {}
    }
    list_disk_i_ds(ListDiskIDsRequest {}) -> ListDiskIDsResponse {
        let disks = call.host().disk().list_ids(call.deadline)?;
        let disk_i_ds = disks.into_iter().map(|(disk, ids)| {
            let identifiers = [
                ("page83".to_owned(), ids.page83.unwrap_or_default()),
                ("serialNumber".to_owned(), ids.serial_number.unwrap_or_default()),
            ];
            (disk.to_string(), DiskIDs { identifiers: identifiers.into() })
        });
        ListDiskIDsResponse { disk_i_ds: disk_i_ds.collect() }
    }
    disk_stats(DiskStatsRequest { disk_id }) -> DiskStatsResponse {
        let disk = call.disk_number("diskID", &disk_id)?;
        let stats = call.host().disk().stats(disk, call.deadline)?;
        DiskStatsResponse { disk_size: bytes(stats.total_bytes) }
    }
}}

table! { disk [v1alpha1 {}] disk_server::Disk, call {
    list_disk_locations(ListDiskLocationsRequest {}) -> ListDiskLocationsResponse {
        let locations = call.host().disk().list_locations(call.deadline)?;
        let disk_locations = locations.into_iter().map(|(disk, at)| {
            let location = DiskLocation {
                adapter: text(at.adapter),
                bus: text(at.bus),
                target: text(at.target),
                lunid: text(at.lun),
            };
            (disk.to_string(), location)
        });
        ListDiskLocationsResponse { disk_locations: disk_locations.collect() }
    }
    partition_disk(PartitionDiskRequest { disk_id }) -> PartitionDiskResponse {
        let disk = call.disk_number("diskID", &disk_id)?;
        call.host().disk().partition(disk, call.deadline)?;
        PartitionDiskResponse {}
    }
    rescan(RescanRequest {}) -> RescanResponse {
        call.host().disk().rescan(call.deadline)?;
        RescanResponse {}
    }
    get_disk_number_by_name(GetDiskNumberByNameRequest { disk_name })
        -> GetDiskNumberByNameResponse {
        let disk = call.host().disk().number_by_name(&disk_name, call.deadline)?;
        GetDiskNumberByNameResponse { disk_number: disk.to_string() }
    }
}}

fn state(is_online: bool) -> DiskState {
    match is_online {
        true => DiskState::Online,
        false => DiskState::Offline,
    }
}
