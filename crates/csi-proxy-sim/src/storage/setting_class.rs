//! `MSFT_StorageSetting`, of which only the rescan is there.

use csi_proxy::cim::Namespace;
use csi_proxy::port::PortResult;

use crate::cim::{Class, Method, MethodCall, Reply, done};

pub(super) const CLASS: Class = Class {
    namespace: Namespace::Storage,
    name: "MSFT_StorageSetting",
    properties: &[],
    rows: |_, _| Vec::new(),
    methods: &[Method {
        name: "UpdateHostStorageCache",
        is_static: true,
        parameters: &[],
        run: rescan,
    }],
};

/// Source: `msft-storagesetting-updatehoststoragecache`.
fn rescan(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let storage = &mut call.state.storage;
    storage
        .hidden
        .retain(|_, hidden| match &mut hidden.rescans {
            Some(left) => {
                *left = left.saturating_sub(1);
                *left > 0
            }
            None => true,
        });
    for disk in storage.disks.values_mut() {
        disk.read_only |= disk.write_protected;
        if let Some(medium) = storage.media.get_mut(&disk.medium) {
            medium.look_again();
        }
    }
    done(0)
}
