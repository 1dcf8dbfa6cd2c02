//! The inputs that are kept.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

fn directory(target: &str) -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.join("tests/fuzz/corpus").join(target)
}

/// All inputs of a target with their names, in the order of the names.
pub(crate) fn read(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = directory(target);
    let mut inputs: Vec<_> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    inputs.sort();
    inputs
}

/// Keeps an input that failed.
pub(crate) fn write(target: &str, input: &[u8]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let file = directory(target).join(format!("failed-{:016x}.bin", hasher.finish()));
    fs::write(&file, input).unwrap();
    file
}
