//! The codes that Windows answers, what they mean, and what kind of error they are.
//!
//! A table for each family, with Microsoft's page above it. The kinds follow what a caller
//! can do: correct the request, change the node, wait and come again, or nothing.

mod fve;
mod hresult;
mod iscsi;
mod service;
mod smb;
mod storage;
mod vhd;
mod win32;

use crate::error::ErrorKind;
use crate::port::SystemCode;

/// A code that Windows documents as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The code.
    pub code: u32,
    /// What it means.
    pub meaning: &'static str,
    /// What kind of error it is.
    pub kind: ErrorKind,
}

/// One line of a table.
const fn row(code: u32, meaning: &'static str, kind: ErrorKind) -> Row {
    Row {
        code,
        meaning,
        kind,
    }
}

/// The failures of one method: its name, and their codes in the table of its family.
type Method = (&'static str, &'static [u32]);

/// The families of methods, each with the table that its codes are looked up in.
const FAMILIES: &[(&[Method], &[Row])] = &[
    (storage::METHODS, storage::ROWS),
    (iscsi::METHODS, iscsi::ROWS),
    (smb::METHODS, win32::ROWS),
    (service::METHODS, service::ROWS),
];

/// What a system code means.
pub fn system_meaning(code: SystemCode) -> Option<&'static str> {
    find_system(code).map(|row| row.meaning)
}

/// The kind of a system code; one that is not in the tables is [`ErrorKind::Internal`].
pub fn system_kind(code: SystemCode) -> ErrorKind {
    find_system(code).map_or(ErrorKind::Internal, |row| row.kind)
}

/// What the return value of a method (`MSFT_Volume.Format`) means.
pub fn method_meaning(method: &str, value: u32) -> Option<&'static str> {
    find_method(method, value).map(|row| row.meaning)
}

/// The kind of a method's return value; one that is not in the tables is
/// [`ErrorKind::Internal`].
pub fn method_kind(method: &str, value: u32) -> ErrorKind {
    find_method(method, value).map_or(ErrorKind::Internal, |row| row.kind)
}

/// All failures that are documented for a method (`MSFT_Volume.Format`), in the order of
/// their codes. Success (0) and "a job was started" (4096) are not among them.
pub fn documented(method: &str) -> Vec<Row> {
    let Some((codes, rows)) = family(method) else {
        return Vec::new();
    };
    codes.iter().filter_map(|code| find(rows, *code)).collect()
}

/// The methods that [`documented`] knows.
pub fn documented_methods() -> impl Iterator<Item = &'static str> {
    FAMILIES
        .iter()
        .flat_map(|(methods, _)| methods.iter().map(|method| method.0))
}

/// All codes of `GetLastError` in the tables.
pub fn win32_codes() -> &'static [Row] {
    win32::ROWS
}

/// All HRESULTs of COM and WMI in the tables.
pub fn hresult_codes() -> &'static [Row] {
    hresult::ROWS
}

fn family(method: &str) -> Option<(&'static [u32], &'static [Row])> {
    FAMILIES.iter().find_map(|(methods, rows)| {
        let (_, codes) = methods.iter().find(|(name, _)| *name == method)?;
        Some((*codes, *rows))
    })
}

/// A value that a provider answers although its method's page does not name it still has
/// its family's meaning.
fn find_method(method: &str, value: u32) -> Option<Row> {
    let class = method.split_once('.').map_or(method, |parts| parts.0);
    let (_, rows) = FAMILIES.iter().find(|(methods, _)| {
        methods
            .iter()
            .any(|(name, _)| name.split_once('.').is_some_and(|parts| parts.0 == class))
    })?;
    find(rows, value).or_else(|| find_system(SystemCode::HResult(value)))
}

fn find_system(code: SystemCode) -> Option<Row> {
    match code {
        SystemCode::Win32(number) => find(win32::ROWS, number).or_else(|| find_facility(number)),
        SystemCode::HResult(number) => match number >> 16 {
            HRESULT_FACILITY_WIN32 => find(win32::ROWS, number & 0xFFFF),
            _ => find(hresult::ROWS, number).or_else(|| find_facility(number)),
        },
    }
}

/// The upper half of `HRESULT_FROM_WIN32`.
const HRESULT_FACILITY_WIN32: u32 = 0x8007;

/// Facilities whose codes are the same as a Win32 code and as an HRESULT.
fn find_facility(number: u32) -> Option<Row> {
    [vhd::ROWS, iscsi::ROWS, fve::ROWS]
        .iter()
        .find_map(|rows| find(rows, number))
}

fn find(rows: &[Row], code: u32) -> Option<Row> {
    rows.iter().find(|row| row.code == code).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &[(&str, &[Row])] = &[
        ("storage", storage::ROWS),
        ("iscsi", iscsi::ROWS),
        ("service", service::ROWS),
        ("win32", win32::ROWS),
        ("hresult", hresult::ROWS),
        ("vhd", vhd::ROWS),
        ("fve", fve::ROWS),
    ];

    #[test]
    fn every_table_rises_without_duplicates() {
        for (name, rows) in TABLES {
            for pair in rows.windows(2) {
                assert!(
                    pair[0].code < pair[1].code,
                    "{name}: {} before {}",
                    pair[0].code,
                    pair[1].code
                );
            }
        }
    }

    #[test]
    fn every_row_has_a_meaning_of_its_own_words() {
        for (name, rows) in TABLES {
            for row in *rows {
                assert!(row.meaning.len() > 5, "{name}: {row:?}");
                assert!(!row.meaning.ends_with('.'), "{name}: {row:?}");
            }
        }
    }

    #[test]
    fn success_and_a_started_job_are_no_failures() {
        for (name, rows) in TABLES {
            for row in *rows {
                assert!(![0, 4096].contains(&row.code), "{name}: {row:?}");
            }
        }
    }

    #[test]
    fn every_code_of_a_method_is_in_its_family_and_named_once() {
        for (methods, rows) in FAMILIES {
            for (method, codes) in *methods {
                assert!(
                    codes.windows(2).all(|pair| pair[0] < pair[1]),
                    "{method}: {codes:?}"
                );
                assert_eq!(documented(method).len(), codes.len(), "{method}");
                assert!(codes.iter().all(|code| find(rows, *code).is_some()));
            }
        }
    }

    #[test]
    fn no_method_stands_twice() {
        let mut names: Vec<_> = documented_methods().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn an_hresult_of_win32_has_the_kind_of_the_win32_code() {
        let denied = SystemCode::HResult(0x8007_0005);
        assert_eq!(system_kind(denied), ErrorKind::PermissionDenied);
        assert_eq!(system_meaning(denied), system_meaning(SystemCode::Win32(5)));
    }

    #[test]
    fn a_vhd_iscsi_or_bitlocker_code_means_the_same_in_both_forms() {
        for number in [0xC03A_0014, 0xEFFF_003F, 0x8031_0000] {
            let meaning = system_meaning(SystemCode::Win32(number));
            assert!(meaning.is_some(), "{number:#x}");
            assert_eq!(meaning, system_meaning(SystemCode::HResult(number)));
        }
    }

    #[test]
    fn a_volume_that_bitlocker_has_locked_is_for_the_nodes_administrator() {
        for code in [
            SystemCode::Win32(0x8031_0000),
            SystemCode::HResult(0x8031_0000),
        ] {
            assert_eq!(system_kind(code), ErrorKind::FailedPrecondition);
        }
    }

    #[test]
    fn a_parameter_that_windows_refuses_is_no_fault_of_the_caller() {
        for code in [SystemCode::Win32(87), SystemCode::HResult(0x8004_1008)] {
            assert_eq!(system_kind(code), ErrorKind::Internal, "{code}");
        }
    }

    #[test]
    fn what_a_caller_can_do_decides_the_kind() {
        for (method, value, kind) in [
            (
                "MSFT_Disk.CreatePartition",
                41002,
                ErrorKind::FailedPrecondition,
            ),
            ("MSFT_Disk.CreatePartition", 42002, ErrorKind::AlreadyExists),
            // The library checks the requests; what Windows refuses is no fault of a caller's.
            ("MSFT_Volume.Format", 5, ErrorKind::Internal),
            ("MSFT_Volume.Format", 43006, ErrorKind::FailedPrecondition),
            ("MSFT_Partition.Resize", 4097, ErrorKind::OutOfRange),
            (
                "MSFT_SmbGlobalMapping.Create",
                1326,
                ErrorKind::Unauthenticated,
            ),
            (
                "MSFT_SmbGlobalMapping.Create",
                1219,
                ErrorKind::FailedPrecondition,
            ),
            (
                "MSFT_iSCSITarget.Connect",
                0xEFFF_003F,
                ErrorKind::AlreadyExists,
            ),
            (
                "Win32_Service.StopService",
                3,
                ErrorKind::FailedPrecondition,
            ),
        ] {
            assert_eq!(method_kind(method, value), kind, "{method} {value}");
            assert!(documented(method).iter().any(|row| row.code == value));
        }
    }

    #[test]
    fn a_value_of_the_family_has_a_meaning_where_the_page_is_silent() {
        assert!(method_meaning("MSFT_Volume.Flush", 40001).is_some());
        assert!(
            !documented("MSFT_Volume.Flush")
                .iter()
                .any(|row| row.code == 40001)
        );
        assert_eq!(method_meaning("MSFT_Volume.Flush", 99), None);
        assert_eq!(method_kind("No_Class.Method", 5), ErrorKind::Internal);
    }
}
