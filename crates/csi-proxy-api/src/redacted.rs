//! `Debug` for the messages that carry a secret: everything but the secret.

use std::fmt;

use crate::{iscsi, smb};

macro_rules! redacted {
    ($group:ident::$version:ident::$message:ident { $($shown:ident),* } hides $secret:ident) => {
        impl fmt::Debug for $group::$version::$message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // Names every field, so that a new one is decided on here.
                let Self { $($shown,)* $secret: _ } = self;
                f.debug_struct(stringify!($message))
                    $(.field(stringify!($shown), $shown))*
                    .field(stringify!($secret), &format_args!("hidden"))
                    .finish()
            }
        }
    };
}

macro_rules! redacted_mapping {
    ($($version:ident),+) => {
        $(redacted!(smb::$version::NewSmbGlobalMappingRequest {
            remote_path, local_path, username
        } hides password);)+
    };
}

macro_rules! redacted_target {
    ($($version:ident),+) => {
        $(redacted!(iscsi::$version::ConnectTargetRequest {
            target_portal, iqn, auth_type, chap_username
        } hides chap_secret);)+
    };
}

redacted_mapping!(v1, v1alpha1, v1beta1, v1beta2);
redacted_target!(v1alpha1, v1alpha2);
redacted!(iscsi::v1alpha2::SetMutualChapSecretRequest {} hides mutual_chap_secret);

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "correct horse";

    fn assert_hidden(message: &impl fmt::Debug, shown: &str) {
        let text = format!("{message:?}");
        assert!(!text.contains(SECRET), "{text}");
        assert!(text.contains(shown), "{text}");
    }

    macro_rules! mapping {
        ($($version:ident),+) => {
            $(assert_hidden(
                &smb::$version::NewSmbGlobalMappingRequest {
                    remote_path: r"\\files\data".into(),
                    username: "ann".into(),
                    password: SECRET.into(),
                    ..Default::default()
                },
                "ann",
            );)+
        };
    }

    #[test]
    fn the_password_of_a_share_is_not_shown() {
        mapping!(v1, v1alpha1, v1beta1, v1beta2);
    }

    macro_rules! target {
        ($($version:ident),+) => {
            $(assert_hidden(
                &iscsi::$version::ConnectTargetRequest {
                    iqn: "iqn.2026-01.example:disks".into(),
                    chap_secret: SECRET.into(),
                    ..Default::default()
                },
                "iqn.2026-01.example:disks",
            );)+
        };
    }

    #[test]
    fn chap_secrets_are_not_shown() {
        target!(v1alpha1, v1alpha2);
        assert_hidden(
            &iscsi::v1alpha2::SetMutualChapSecretRequest {
                mutual_chap_secret: SECRET.into(),
            },
            "mutual_chap_secret",
        );
    }
}
