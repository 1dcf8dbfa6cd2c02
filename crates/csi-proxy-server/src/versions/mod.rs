//! The 23 versions: each only converts between its messages and the library.
//!
//! A table has a row for each method: the fields of the request, what is asked of the library,
//! and the response. A row names every field of its request, so one that is forgotten does not
//! compile; the messages are those of the version. Versions that differ in their name alone
//! share a table.

mod disk;
mod filesystem;
mod iscsi;
mod reflection;
mod smb;
mod system;
mod volume;

use csi_proxy_api::{Api, Group};
use tonic::service::Routes;

use crate::call::Service;
use crate::metrics::Metrics;
use crate::observed::Observed;

/// The longest message that is taken, in bytes.
const LONGEST_MESSAGE: usize = 4 << 20;

/// Writes the servers of versions of a group from one table. Behind the name of a version stand
/// the rows that it has beyond the table.
macro_rules! table {
    (
        $group:ident [$($version:ident $more:tt),+] $module:ident::$server:ident, $call:ident $rows:tt
    ) => {
        $crate::versions::table!(@each $group [$($version $more)+] $module $server $call $rows);
    };
    (@each $group:ident [] $module:ident $server:ident $call:ident $rows:tt) => {};
    (
        @each $group:ident [$version:ident $more:tt $($rest:tt)*]
        $module:ident $server:ident $call:ident $rows:tt
    ) => {
        $crate::versions::table!(@version $group $module $server $version $call $rows $more);
        $crate::versions::table!(@each $group [$($rest)*] $module $server $call $rows);
    };
    (
        @version $group:ident $module:ident $server:ident $version:ident $call:ident
        { $($method:ident($request:ident { $($field:tt)* }) -> $response:ident $work:block)* }
        { $($method2:ident($request2:ident { $($field2:tt)* }) -> $response2:ident $work2:block)* }
    ) => {
        $crate::versions::table!(
            @write $group $module $server $version $call
            $($method $request { $($field)* } $response $work)*
            $($method2 $request2 { $($field2)* } $response2 $work2)*
        );
    };
    (
        @write $group:ident $module:ident $server:ident $version:ident $call:ident
        $($method:ident $request:ident { $($field:tt)* } $response:ident $work:block)*
    ) => {
        #[tonic::async_trait]
        impl csi_proxy_api::$group::$version::$module::$server for $crate::call::Service {
            $(
                async fn $method(
                    &self,
                    request: tonic::Request<csi_proxy_api::$group::$version::$request>,
                ) -> std::result::Result<
                    tonic::Response<csi_proxy_api::$group::$version::$response>,
                    tonic::Status,
                > {
                    use csi_proxy_api::$group::$version::*;
                    self.call(request, |$call, request| {
                        let $request { $($field)* } = request;
                        Ok($work)
                    })
                    .await
                }
            )+
        }
    };
}
use table;

/// What a version serves; nothing for one that is not in the table of versions.
pub(crate) fn routes(api: &'static Api, service: &Service, metrics: &Metrics) -> Option<Routes> {
    let routes = own_routes(api, service, metrics)?;
    Some(match service.settings().reflection {
        true => reflection::add(routes, api),
        false => routes,
    })
}

fn own_routes(api: &'static Api, service: &Service, metrics: &Metrics) -> Option<Routes> {
    macro_rules! versions {
        ($($group:ident $variant:ident $server_module:ident $server:ident: $($version:ident),+;)+) => {
            match (api.group, api.version) {
                $($(
                    (Group::$variant, stringify!($version)) => {
                        use csi_proxy_api::$group::$version::$server_module::$server;
                        let server = $server::new(service.clone())
                            .max_decoding_message_size(LONGEST_MESSAGE);
                        let read_only = service.settings().read_only;
                        Routes::new(Observed::new(server, api, read_only, metrics.clone()))
                    }
                )+)+
                _ => return None,
            }
        };
    }
    Some(versions! {
        disk Disk disk_server DiskServer: v1, v1beta3, v1beta2, v1beta1, v1alpha1;
        filesystem Filesystem filesystem_server FilesystemServer:
            v2alpha1, v1, v1beta2, v1beta1, v1alpha1;
        iscsi Iscsi iscsi_server IscsiServer: v1alpha2, v1alpha1;
        smb Smb smb_server SmbServer: v1, v1beta2, v1beta1, v1alpha1;
        system System system_server SystemServer: v1alpha1;
        volume Volume volume_server VolumeServer:
            v2alpha1, v1, v1beta3, v1beta2, v1beta1, v1alpha1;
    })
}

/// Bytes as the API writes them.
fn bytes(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A number as the API writes it where it may be missing.
fn text(number: Option<u32>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
