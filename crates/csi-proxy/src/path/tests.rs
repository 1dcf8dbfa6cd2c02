//! Tests of the paths of the host.

use proptest::prelude::*;

use super::*;

fn kubelet(text: &str) -> HostPath {
    HostPath::from_kubelet(text).unwrap()
}

#[test]
fn every_way_the_kubelet_writes_a_path_is_the_same_path() {
    for text in [
        r"C:\var\lib\kubelet",
        r"c:\var\lib\kubelet\",
        "c:/var/lib/kubelet",
        "/var/lib/kubelet",
        r"\var\lib\kubelet",
        r"C:\var\\lib\.\kubelet",
        r"\\?\C:\var\lib\kubelet",
        "//?/c:/var/lib/kubelet",
        r"C:/var\lib/kubelet//",
    ] {
        assert_eq!(kubelet(text).as_str(), r"C:\var\lib\kubelet", "{text}");
    }
}

#[test]
fn a_drive_is_its_own_root() {
    for text in [r"d:\", r"\\?\D:\", "D:/", r"D:\.\"] {
        let drive = kubelet(text);
        assert_eq!(drive.as_str(), r"D:\");
        assert_eq!(drive.parent(), None);
        assert_eq!(drive.file_name(), None);
        assert_eq!(drive.join("x").unwrap().as_str(), r"D:\x");
    }
}

/// Text that neither grammar takes, and a word of the reason.
const REFUSED: &[(&str, &str)] = &[
    ("", "drive letter"),
    ("C:", "not absolute"),
    ("C:x", "not absolute"),
    (r"\\?\C:", "not absolute"),
    (r"\\?\C:x", "not absolute"),
    ("var", "drive letter"),
    (r"..\x", "drive letter"),
    (r"é:\x", "drive letter"),
    (r"1:\x", "drive letter"),
    (r"C:\a\..\b", ".."),
    (r"C:\..", ".."),
    (r"\\server\share", "share"),
    (r"\\server\share\dir", "share"),
    ("//server/share", "share"),
    (r"\\?\UNC\server\share", "share"),
    (r"\\.\PhysicalDrive0", "device"),
    (r"\\.\C:\x", "device"),
    (r"\\?\GLOBALROOT\Device\Null", "device"),
    (
        r"\\?\Volume{6e6fb07c-1a2b-4c3d-8e9f-0123456789ab}\",
        "device",
    ),
    (r"\\?\PhysicalDrive1", "device"),
    (r"\??\C:\x", "device"),
    ("/??/C:/x", "device"),
    (r"C:\a:stream", "stream"),
    (r"C:\a::$DATA", "stream"),
    (r"C:\D:\x", "stream"),
    ("C:\\a\0b", "control"),
    ("C:\\a\nb", "control"),
    ("C:\\a\tb", "control"),
    (r#"C:\a"b"#, "character"),
    (r"C:\a<b", "character"),
    (r"C:\a>b", "character"),
    (r"C:\a?b", "character"),
    (r"C:\a*b", "character"),
    (r"C:\a|b", "character"),
    (r"C:\a.", "dot or a blank"),
    (r"C:\a \b", "dot or a blank"),
    (r"C:\...", "dot or a blank"),
    (r"C:\ ", "dot or a blank"),
    (r"C:\NUL", "device"),
    (r"C:\x\con", "device"),
    (r"C:\x\Aux.txt", "device"),
    (r"C:\x\prn.tar.gz", "device"),
    (r"C:\x\nul .txt", "device"),
    (r"C:\com1", "device"),
    (r"C:\COM9.x", "device"),
    (r"C:\com¹", "device"),
    (r"C:\LPT²", "device"),
    (r"C:\lpt³.log", "device"),
    (r"C:\CONIN$", "device"),
    (r"C:\conout$.x", "device"),
];

#[test]
fn what_is_no_path_of_the_host_is_refused_with_the_reason() {
    for (text, word) in REFUSED {
        let error = HostPath::from_kubelet(text).expect_err(text);
        assert!(error.reason.contains(word), "{text}: {error}");
        for error in [error, HostPath::strict(text).expect_err(text)] {
            let error = error.in_field("filesystem mkdir", "path");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
        }
    }
}

#[test]
fn the_strict_grammar_takes_less() {
    for (text, word) in [
        ("/var/lib", "/"),
        (r"C:\var/lib", "/"),
        (r"\var\lib", "drive letter"),
        (r"\\?\C:\var", "drive letter"),
    ] {
        assert!(HostPath::from_kubelet(text).is_ok(), "{text}");
        let error = HostPath::strict(text).expect_err(text);
        assert!(error.reason.contains(word), "{text}: {error}");
        let error = error.in_field("filesystem mkdir", "path");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
    }
    let path = HostPath::strict(r"c:\var\lib\kubelet\").unwrap();
    assert_eq!(path.as_str(), r"C:\var\lib\kubelet");
}

#[test]
fn the_strict_limit_counts_utf16_units() {
    // Each of these letters is two units of UTF-16 and four bytes of UTF-8.
    let name = "😀".repeat(50);
    let exact = format!(
        r"C:\{name}\{name}\{}",
        "x".repeat(260 - 3 - 100 - 1 - 100 - 1)
    );
    assert_eq!(exact.encode_utf16().count(), 260);
    assert!(HostPath::strict(&exact).is_ok());
    let error = HostPath::strict(&format!("{exact}x")).unwrap_err();
    assert!(error.reason.contains("261"), "{error}");
    let error = error.in_field("filesystem mkdir", "path");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(HostPath::from_kubelet(&format!("{exact}x")).is_ok());
}

#[test]
fn a_name_has_at_most_255_units() {
    assert!(HostPath::from_kubelet(&format!(r"C:\{}", "x".repeat(255))).is_ok());
    assert!(HostPath::from_kubelet(&format!(r"C:\{}", "x".repeat(256))).is_err());
    assert!(HostPath::from_kubelet(&format!(r"C:\{}", "😀".repeat(128))).is_err());
}

#[test]
fn a_path_is_not_longer_than_windows_takes() {
    let long = format!("C:{}", r"\xxxxxxxxx".repeat(3_276));
    assert_eq!(long.len(), LIMIT);
    assert!(HostPath::from_kubelet(&long).is_ok());
    assert!(HostPath::from_kubelet(&format!("{long}x")).is_err());
}

#[test]
fn c12_odd_but_legal_names_are_names() {
    for name in [
        "with blanks in it",
        "[vsanDatastore] x",
        "(1)",
        "#",
        ";",
        "$(x)",
        "`",
        "%VAR%",
        "'",
        "’",
        "emoji 😀",
        ".hidden",
        " leading",
        "console",
        "com10",
        "nullify.txt",
        "a..b",
        "\u{7f}",
    ] {
        let text = format!(r"C:\var\lib\kubelet\plugins\{name}\globalmount");
        let path = HostPath::strict(&text).expect(name);
        assert_eq!(path.as_str(), text);
        assert!(path.names().any(|own| own == name), "{name}");
    }
}

#[test]
fn c12_nul_and_newline_are_an_invalid_argument_that_names_field_and_value() {
    for text in ["C:\\a\0b", "C:\\a\nb", "C:\\a\r\n"] {
        let error = HostPath::from_kubelet(text)
            .unwrap_err()
            .in_field("volume mount", "staging_target_path");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let shown = error.to_string();
        assert!(shown.contains("staging_target_path"), "{shown}");
        assert!(shown.contains(&format!("{text:?}")), "{shown}");
        assert!(shown.contains("expected"), "{shown}");
        assert!(!shown.contains(['\0', '\n']), "the value is escaped");
    }
}

/// Where a process of a HostProcess container finds its own files is no part of a path that
/// the kubelet gives.
#[test]
fn c17_a_path_of_the_kubelet_is_a_path_of_the_host_wherever_the_process_runs() {
    for mount_point in [r"C:\C\0123abcd\", r"C:\hpc\"] {
        let container = kubelet(mount_point);
        let path = kubelet("/var/lib/kubelet/pods");
        assert_eq!(path.as_str(), r"C:\var\lib\kubelet\pods");
        assert!(!path.is_within(&container));
    }
}

#[test]
fn within_compares_whole_names_without_case() {
    let root = kubelet(r"C:\var\lib\kubelet");
    for inside in [
        r"C:\var\lib\kubelet",
        r"c:\VAR\Lib\KUBELET\pods",
        "/var/lib/kubelet/x",
    ] {
        assert!(kubelet(inside).is_within(&root), "{inside}");
    }
    for outside in [
        r"C:\var\lib\kubelet-x",
        r"C:\var\lib",
        r"D:\var\lib\kubelet",
        r"C:\",
    ] {
        assert!(!kubelet(outside).is_within(&root), "{outside}");
    }
}

#[test]
fn serialised_paths_are_checked_when_read() {
    let path = kubelet("/var/lib");
    let text = serde_json::to_string(&path).unwrap();
    assert_eq!(text, r#""C:\\var\\lib""#);
    assert_eq!(serde_json::from_str::<HostPath>(&text).unwrap(), path);
    assert!(serde_json::from_str::<HostPath>(r#""C:\\..\\x""#).is_err());
}

/// Text that is often nearly a path.
fn nearly_a_path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(r"C:\".to_owned()),
        Just(r"\\?\".to_owned()),
        Just(r"\\.\".to_owned()),
        Just(r"\??\".to_owned()),
        Just(r"\".to_owned()),
        Just("/".to_owned()),
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just(":".to_owned()),
        Just("UNC".to_owned()),
        Just("NUL".to_owned()),
        Just("com²".to_owned()),
        Just("x ".to_owned()),
        r"[a-z😀é\.\$ ]{1,6}",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(part, 0..9).prop_map(|parts| parts.concat())
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        nearly_a_path(),
        any::<String>(),
        r"C:(\\[a-zA-Z0-9 _.-]{1,8}){0,6}"
    ]
}

fn valid_path() -> impl Strategy<Value = HostPath> {
    r"[A-Z]:(\\[a-zA-Zé]{1,4}){0,5}|[A-Z]:\\".prop_filter_map("not every text is a path", |text| {
        HostPath::from_kubelet(&text).ok()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn an_accepted_path_reads_back_as_itself(text in any_text()) {
        if let Ok(path) = HostPath::from_kubelet(&text) {
            prop_assert_eq!(HostPath::from_kubelet(path.as_str()), Ok(path.clone()));
            prop_assert_eq!(HostPath::from_kubelet(&path.verbatim()), Ok(path));
        }
    }

    #[test]
    fn the_strict_grammar_means_the_same_as_the_kubelets(text in any_text()) {
        if let Ok(path) = HostPath::strict(&text) {
            prop_assert_eq!(HostPath::from_kubelet(&text), Ok(path.clone()));
            prop_assert_eq!(HostPath::strict(path.as_str()), Ok(path));
        }
    }

    #[test]
    fn an_accepted_path_has_nothing_that_windows_would_read_otherwise(text in any_text()) {
        if let Ok(path) = HostPath::from_kubelet(&text) {
            let shown = path.as_str();
            prop_assert!(shown.as_bytes()[0].is_ascii_uppercase());
            prop_assert_eq!(&shown[1..3], r":\");
            prop_assert!(!shown[2..].contains([':', '/', '"', '<', '>', '?', '*', '|', '\0', '\n']));
            prop_assert!(!shown[2..].contains(r"\\"));
            for name in path.names() {
                prop_assert!(!matches!(name, "" | "." | ".."), "{}", name);
                prop_assert!(!name.ends_with(['.', ' ']), "{}", name);
                prop_assert!(!is_reserved(name), "{}", name);
            }
        }
    }

    #[test]
    fn parent_undoes_join(path in valid_path(), name in "[a-z]{4,9}") {
        let joined = path.join(&name).unwrap();
        prop_assert_eq!(joined.file_name(), Some(name.as_str()));
        prop_assert_eq!(joined.parent(), Some(path.clone()));
        prop_assert!(joined.is_within(&path));
        prop_assert!(!path.is_within(&joined));
    }

    #[test]
    fn join_takes_exactly_one_name(path in valid_path(), name in any_text()) {
        if let Ok(joined) = path.join(&name) {
            prop_assert_eq!(joined.parent(), Some(path.clone()));
            prop_assert_eq!(joined.file_name(), Some(name.as_str()));
        }
    }

    #[test]
    fn within_is_an_order(a in valid_path(), b in valid_path(), c in valid_path()) {
        prop_assert!(a.is_within(&a));
        prop_assert!(a.is_within(&a.root()));
        if a.is_within(&b) && b.is_within(&a) {
            prop_assert!(a.same_as(&b));
        }
        if a.is_within(&b) && b.is_within(&c) {
            prop_assert!(a.is_within(&c));
        }
    }
}
