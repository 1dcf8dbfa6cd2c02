//! What the program imports: functions of Windows' own libraries that Windows Server 2019
//! has, and nothing else.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::Command;

use crate::command::output;
use crate::report::Outcome;

/// Every function that the program may import, one in a line: library, function, and the
/// first Windows that has it.
///
/// The versions are those of Microsoft's metadata for the Windows API (the attribute
/// `SupportedOSPlatform` in Windows.Win32.winmd) where it names one, otherwise those of the
/// function's page in Microsoft's documentation. Three have neither:
/// - `ProcessPrng`, which "The Windows 10 random number generation infrastructure" describes,
///   a paper of Microsoft's;
/// - `NtCancelIoFileEx`, which is what `CancelIoEx` calls and as old;
/// - the functions of `msvcrt.dll`, the C library that is a part of Windows, which are those of
///   its first version.
const KNOWN: &str = include_str!("imports.txt");

/// The build of Windows Server 2019 and of Windows 10 1809.
const SERVER_2019: Version = Version(10, 0, 17763);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32, u32);

/// Fails with what is not known, or newer.
pub(crate) fn check(program: &Path) -> Outcome {
    let mut objdump = Command::new("x86_64-w64-mingw32-objdump");
    let table = output(objdump.arg("-p").arg(program))?;
    let imports = imports(&table);
    if imports.is_empty() {
        return Err(format!("no imports found in {}", program.display()).into());
    }
    let known = known(KNOWN)?;
    let (new, unknown) = objections(&imports, &known);
    match (new.is_empty(), unknown.is_empty()) {
        (true, true) => Ok(format!(
            "{} functions, all in Windows Server 2019",
            imports.len()
        )),
        (false, _) => Err(format!("newer than Windows Server 2019: {}", new.join(", ")).into()),
        (true, false) => Err(format!(
            "not in xtask/src/windows/imports.txt (add each with the first Windows that has \
             it): {}",
            unknown.join(", ")
        )
        .into()),
    }
}

/// A library and a function.
type Import = (String, String);

/// The imports that are too new, and those that are not known.
fn objections<'a>(
    imports: &'a [Import],
    known: &BTreeMap<Import, Version>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut new = Vec::new();
    let mut unknown = Vec::new();
    for import in imports {
        match known.get(import) {
            Some(since) if *since > SERVER_2019 => new.push(import.1.as_str()),
            Some(_) => {}
            None => unknown.push(import.1.as_str()),
        }
    }
    (new, unknown)
}

/// Reads the import tables in the output of `objdump -p`: a line `DLL Name: KERNEL32.dll`,
/// a heading, then lines of an address, a number and a function until an empty one.
fn imports(table: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut library = None;
    for line in table.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("DLL Name: ") {
            library = Some(name.to_lowercase());
        } else if line.is_empty() {
            library = None;
        } else if let Some(library) = &library
            && let [address, _, function] = *line.split_whitespace().collect::<Vec<_>>()
            && address.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            found.push((library.clone(), function.to_owned()));
        }
    }
    found
}

fn known(text: &str) -> Result<BTreeMap<Import, Version>, Box<dyn Error>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| match *line.split_whitespace().collect::<Vec<_>>() {
            [library, function, since] => Ok((
                (library.to_owned(), function.to_owned()),
                version(since).ok_or_else(|| format!("{since} is not a version in {line:?}"))?,
            )),
            _ => Err(format!("not a library, a function and a version: {line:?}").into()),
        })
        .collect()
}

/// `10.0.14393` or `6.1`
fn version(text: &str) -> Option<Version> {
    let mut parts = text.split('.').map(str::parse);
    let version = Version(
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next().unwrap_or(Ok(0)).ok()?,
    );
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
There is an import table in .idata at 0x140123000

The Import Tables (interpreted .idata section contents)
 vma:            Hint    Time      Forward  DLL       First
                 Table   Stamp     Chain    Name      Thunk
 00123000\t0012303c 00000000 00000000 00123abc 0012330c

\tDLL Name: KERNEL32.dll
\tvma:  Hint/Ord Member-Name Bound-To
\t123500\t  283  CreateFileW
\t123510\t  284  CloseHandle

 00123014\t0012303c 00000000 00000000 00123abc 0012330c

\tDLL Name: ole32.dll
\tvma:  Hint/Ord Member-Name Bound-To
\t123520\t    5  CoCreateInstance

The Export Tables
\tnothing to see here
";

    fn import(library: &str, function: &str) -> Import {
        (library.to_owned(), function.to_owned())
    }

    #[test]
    fn the_functions_of_each_library_are_found() {
        let expected = [
            import("kernel32.dll", "CreateFileW"),
            import("kernel32.dll", "CloseHandle"),
            import("ole32.dll", "CoCreateInstance"),
        ];
        assert_eq!(imports(TABLE), expected);
    }

    #[test]
    fn an_unknown_or_newer_function_is_objected_to() {
        let list = "# remark\nkernel32.dll Old 6.1\nkernel32.dll New 10.0.20348\n";
        let known = known(list).unwrap();
        let imports = ["Old", "New", "Other"].map(|name| import("kernel32.dll", name));
        assert_eq!(objections(&imports, &known), (vec!["New"], vec!["Other"]));
    }

    #[test]
    fn the_list_can_be_read() {
        assert!(!known(KNOWN).unwrap().is_empty());
    }
}
