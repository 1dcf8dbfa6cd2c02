//! The modules that the build script makes of `proto/`, in the shape `<group>::<version>`.

#![expect(missing_docs, reason = "fields that their names explain")]
#![expect(clippy::allow_attributes, reason = "written by the code generator")]

macro_rules! group {
    ($group:ident: $($version:ident),+) => {
        #[doc = concat!("The versions of the group `", stringify!($group), "`.")]
        pub mod $group {
            $(
                #[doc = concat!("`proto/", stringify!($group), "/", stringify!($version), ".proto`.")]
                pub mod $version {
                    include!(concat!(
                        env!("OUT_DIR"), "/", stringify!($group), "/", stringify!($version), ".rs"
                    ));
                }
            )+
        }
    };
}

group!(disk: v1, v1alpha1, v1beta1, v1beta2, v1beta3);
group!(filesystem: v1, v1alpha1, v1beta1, v1beta2, v2alpha1);
group!(iscsi: v1alpha1, v1alpha2);
group!(smb: v1, v1alpha1, v1beta1, v1beta2);
group!(system: v1alpha1);
group!(volume: v1, v1alpha1, v1beta1, v1beta2, v1beta3, v2alpha1);
