//! The Container Storage Interface as messages, servers and clients.

use std::fmt;

#[expect(
    missing_docs,
    clippy::allow_attributes,
    reason = "written by the compiler of the protocol"
)]
mod generated {
    tonic::include_proto!("csi.v1");
}

pub use generated::*;

/// The compiled protocol, a `google.protobuf.FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/csi.bin"));

/// Messages that carry secrets show nothing but their name.
macro_rules! hidden {
    ($($message:ident)*) => {
        $(impl fmt::Debug for $message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($message)).finish_non_exhaustive()
            }
        })*
    };
}

hidden! {
    CreateVolumeRequest DeleteVolumeRequest ControllerPublishVolumeRequest
    ControllerUnpublishVolumeRequest ValidateVolumeCapabilitiesRequest
    ControllerModifyVolumeRequest CreateSnapshotRequest DeleteSnapshotRequest
    ListSnapshotsRequest GetSnapshotRequest ControllerExpandVolumeRequest
    NodeStageVolumeRequest NodePublishVolumeRequest NodeExpandVolumeRequest
    CreateVolumeGroupSnapshotRequest DeleteVolumeGroupSnapshotRequest
    GetVolumeGroupSnapshotRequest GetMetadataAllocatedRequest GetMetadataDeltaRequest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_of_a_request_does_not_show_its_secrets() {
        let request = NodeStageVolumeRequest {
            secrets: [("password".to_owned(), "hunter2".to_owned())].into(),
            ..Default::default()
        };
        let shown = format!("{request:?}");
        assert_eq!(shown, "NodeStageVolumeRequest { .. }");
    }
}
