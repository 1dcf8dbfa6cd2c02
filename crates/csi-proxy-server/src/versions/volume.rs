//! The versions of the group `volume`.

use csi_proxy::DiskNumber;
use csi_proxy::volume::{FormatOptions, NewSize};

use super::{bytes, table};

table! { volume [
    v1beta3 {},
    v1 {},
    v2alpha1 {
        get_closest_volume_id_from_target_path(GetClosestVolumeIdFromTargetPathRequest {
            target_path
        }) -> GetClosestVolumeIdFromTargetPathResponse {
            let at = call.path("target_path", &target_path)?;
            let volume = call.host().volume().closest_id_from_target_path(at, call.deadline)?;
            GetClosestVolumeIdFromTargetPathResponse { volume_id: volume.to_string() }
        }
    }
] volume_server::Volume, call {
    list_volumes_on_disk(ListVolumesOnDiskRequest { disk_number, partition_number })
        -> ListVolumesOnDiskResponse {
        let partition = (partition_number > 0).then_some(partition_number);
        let disk = DiskNumber(disk_number);
        let volumes = call.host().volume().list_on_disk(disk, partition, call.deadline)?;
        ListVolumesOnDiskResponse { volume_ids: volumes.into_iter().map(String::from).collect() }
    }
    mount_volume(MountVolumeRequest { volume_id, target_path }) -> MountVolumeResponse {
        let volume = call.volume_id(&volume_id)?;
        let at = call.path("target_path", &target_path)?;
        call.host().volume().mount(&volume, at, call.deadline)?;
        MountVolumeResponse {}
    }
    unmount_volume(UnmountVolumeRequest { volume_id, target_path }) -> UnmountVolumeResponse {
        let volume = call.volume_id(&volume_id)?;
        let at = call.path("target_path", &target_path)?;
        call.host().volume().unmount(&volume, at, call.deadline)?;
        UnmountVolumeResponse {}
    }
    is_volume_formatted(IsVolumeFormattedRequest { volume_id }) -> IsVolumeFormattedResponse {
        let volume = call.volume_id(&volume_id)?;
        let formatted = call.host().volume().is_formatted(&volume, call.deadline)?;
        IsVolumeFormattedResponse { formatted }
    }
    format_volume(FormatVolumeRequest { volume_id }) -> FormatVolumeResponse {
        let volume = call.volume_id(&volume_id)?;
        call.host().volume().format(&volume, &FormatOptions::default(), call.deadline)?;
        FormatVolumeResponse {}
    }
    resize_volume(ResizeVolumeRequest { volume_id, size_bytes }) -> ResizeVolumeResponse {
        let volume = call.volume_id(&volume_id)?;
        let size = NewSize::from_request(call.operation(), size_bytes)?;
        call.host().volume().resize(&volume, size, call.deadline)?;
        ResizeVolumeResponse {}
    }
    get_volume_stats(GetVolumeStatsRequest { volume_id }) -> GetVolumeStatsResponse {
        let stats = call.host().volume().stats(&call.volume_id(&volume_id)?, call.deadline)?;
        GetVolumeStatsResponse {
            total_bytes: bytes(stats.total_bytes),
            used_bytes: bytes(stats.used_bytes),
        }
    }
    get_disk_number_from_volume_id(GetDiskNumberFromVolumeIdRequest { volume_id })
        -> GetDiskNumberFromVolumeIdResponse {
        let volume = call.volume_id(&volume_id)?;
        let disk = call.host().volume().disk_number(&volume, call.deadline)?;
        GetDiskNumberFromVolumeIdResponse { disk_number: disk.0 }
    }
    get_volume_id_from_target_path(GetVolumeIdFromTargetPathRequest { target_path })
        -> GetVolumeIdFromTargetPathResponse {
        let at = call.path("target_path", &target_path)?;
        let volume = call.host().volume().id_from_target_path(at, call.deadline)?;
        GetVolumeIdFromTargetPathResponse { volume_id: volume.to_string() }
    }
    write_volume_cache(WriteVolumeCacheRequest { volume_id }) -> WriteVolumeCacheResponse {
        call.host().volume().write_cache(&call.volume_id(&volume_id)?, call.deadline)?;
        WriteVolumeCacheResponse {}
    }
}}

// Disk numbers are text, and all partitions are listed.
table! { volume [
    v1alpha1 {},
    v1beta1 {
        volume_stats(VolumeStatsRequest { volume_id }) -> VolumeStatsResponse {
            let stats = call.host().volume().stats(&call.volume_id(&volume_id)?, call.deadline)?;
            VolumeStatsResponse {
                volume_size: bytes(stats.total_bytes),
                volume_used_size: bytes(stats.used_bytes),
            }
        }
        get_volume_disk_number(VolumeDiskNumberRequest { volume_id }) -> VolumeDiskNumberResponse {
            let volume = call.volume_id(&volume_id)?;
            let disk = call.host().volume().disk_number(&volume, call.deadline)?;
            VolumeDiskNumberResponse { disk_number: disk.0.into() }
        }
        get_volume_id_from_mount(VolumeIdFromMountRequest { mount }) -> VolumeIdFromMountResponse {
            let at = call.path("mount", &mount)?;
            let volume = call.host().volume().id_from_target_path(at, call.deadline)?;
            VolumeIdFromMountResponse { volume_id: volume.to_string() }
        }
    },
    v1beta2 {
        volume_stats(VolumeStatsRequest { volume_id }) -> VolumeStatsResponse {
            let stats = call.host().volume().stats(&call.volume_id(&volume_id)?, call.deadline)?;
            VolumeStatsResponse {
                volume_size: bytes(stats.total_bytes),
                volume_used_size: bytes(stats.used_bytes),
            }
        }
        get_volume_disk_number(VolumeDiskNumberRequest { volume_id }) -> VolumeDiskNumberResponse {
            let volume = call.volume_id(&volume_id)?;
            let disk = call.host().volume().disk_number(&volume, call.deadline)?;
            VolumeDiskNumberResponse { disk_number: disk.0.into() }
        }
        get_volume_id_from_mount(VolumeIdFromMountRequest { mount }) -> VolumeIdFromMountResponse {
            let at = call.path("mount", &mount)?;
            let volume = call.host().volume().id_from_target_path(at, call.deadline)?;
            VolumeIdFromMountResponse { volume_id: volume.to_string() }
        }
        write_volume_cache(WriteVolumeCacheRequest { volume_id }) -> WriteVolumeCacheResponse {
            call.host().volume().write_cache(&call.volume_id(&volume_id)?, call.deadline)?;
            WriteVolumeCacheResponse {}
        }
    }
] volume_server::Volume, call {
    list_volumes_on_disk(ListVolumesOnDiskRequest { disk_id }) -> ListVolumesOnDiskResponse {
        let disk = call.disk_number("disk_id", &disk_id)?;
        let volumes = call.host().volume().list_on_disk(disk, None, call.deadline)?;
        ListVolumesOnDiskResponse { volume_ids: volumes.into_iter().map(String::from).collect() }
    }
    mount_volume(MountVolumeRequest { volume_id, path }) -> MountVolumeResponse {
        let volume = call.volume_id(&volume_id)?;
        let at = call.path("path", &path)?;
        call.host().volume().mount(&volume, at, call.deadline)?;
        MountVolumeResponse {}
    }
    dismount_volume(DismountVolumeRequest { volume_id, path }) -> DismountVolumeResponse {
        let volume = call.volume_id(&volume_id)?;
        let at = call.path("path", &path)?;
        call.host().volume().unmount(&volume, at, call.deadline)?;
        DismountVolumeResponse {}
    }
    is_volume_formatted(IsVolumeFormattedRequest { volume_id }) -> IsVolumeFormattedResponse {
        let volume = call.volume_id(&volume_id)?;
        let formatted = call.host().volume().is_formatted(&volume, call.deadline)?;
        IsVolumeFormattedResponse { formatted }
    }
    format_volume(FormatVolumeRequest { volume_id }) -> FormatVolumeResponse {
        let volume = call.volume_id(&volume_id)?;
        call.host().volume().format(&volume, &FormatOptions::default(), call.deadline)?;
        FormatVolumeResponse {}
    }
    resize_volume(ResizeVolumeRequest { volume_id, size }) -> ResizeVolumeResponse {
        let volume = call.volume_id(&volume_id)?;
        let size = NewSize::from_request(call.operation(), size)?;
        call.host().volume().resize(&volume, size, call.deadline)?;
        ResizeVolumeResponse {}
    }
}}
