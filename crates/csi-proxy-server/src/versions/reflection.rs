//! gRPC reflection: a pipe describes the version that it serves, and no other.

use csi_proxy_api::Api;
use tonic::service::Routes;
use tonic_reflection::server::Builder;

/// Adds both versions of the reflection service that clients ask for.
pub(super) fn add(routes: Routes, api: &'static Api) -> Routes {
    let builder =
        || Builder::configure().register_encoded_file_descriptor_set(api.file_descriptor_set());
    match (builder().build_v1(), builder().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => routes.add_service(v1).add_service(v1alpha),
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!("{} has no reflection: {error}", api.service);
            routes
        }
    }
}
