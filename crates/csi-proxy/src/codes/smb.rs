//! Return values of `MSFT_SmbGlobalMapping`.

use super::Method;

/// The class's page names no return values; the provider answers those of
/// `WNetAddConnection2` and `WNetCancelConnection2`
/// (<https://learn.microsoft.com/windows/win32/api/winnetwk/nf-winnetwk-wnetaddconnection2w>,
/// <https://learn.microsoft.com/windows/win32/api/winnetwk/nf-winnetwk-wnetcancelconnection2w>)
/// and of the SMB client below them, all "System Error Codes".
pub(super) const METHODS: &[Method] = &[
    (
        "MSFT_SmbGlobalMapping.Create",
        &[
            5, 53, 64, 66, 67, 85, 86, 87, 170, 1202, 1203, 1208, 1219, 1222, 1223, 1240, 1272,
            1311, 1312, 1326, 1327, 1330, 1331, 1396, 1907, 1909,
        ],
    ),
    ("MSFT_SmbGlobalMapping.Remove", &[5, 1208, 2250, 2401, 2404]),
];
