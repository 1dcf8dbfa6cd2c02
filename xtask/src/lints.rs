//! Every crate inherits the lints of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::report::Outcome;
use crate::root;

/// Fails with the manifests that do not.
pub(crate) fn check() -> Outcome {
    let manifests = manifests()?;
    let mut without = Vec::new();
    for manifest in &manifests {
        if !inherits(&fs::read_to_string(manifest)?) {
            without.push(manifest.display().to_string());
        }
    }
    if without.is_empty() {
        Ok(format!("{} crates", manifests.len()))
    } else {
        Err(format!("no [lints] workspace = true in {}", without.join(", ")).into())
    }
}

fn manifests() -> std::io::Result<Vec<PathBuf>> {
    let root = root();
    let mut found = vec![root.join("xtask/Cargo.toml")];
    for entry in fs::read_dir(root.join("crates"))? {
        let manifest = entry?.path().join("Cargo.toml");
        if Path::exists(&manifest) {
            found.push(manifest);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the table `lints` of a manifest starts with `workspace = true`, the only line
/// that cargo allows in it then.
fn inherits(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).filter(|l| !l.is_empty());
    lines.any(|line| line == "[lints]") && lines.next() == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_inherits_with_the_table_alone() {
        assert!(inherits(
            "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"
        ));
        assert!(!inherits("[package]\nname = \"a\"\n"));
        assert!(!inherits("[lints]\n[lints.rust]\nunsafe_code = \"warn\"\n"));
        assert!(!inherits("[package]\nworkspace = true\n"));
    }

    #[test]
    fn every_crate_of_this_repository_inherits() {
        let outcome = check().map_err(|error| error.to_string());
        assert!(outcome.is_ok(), "{outcome:?}");
    }
}
