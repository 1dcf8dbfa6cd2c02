//! Compiles the protocol; no protoc is needed.

use std::error::Error;
use std::path::PathBuf;

/// Messages with secrets get their `Debug` in `src/proto.rs`.
const SECRET: &str = "secrets";

fn main() -> Result<(), Box<dyn Error>> {
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler
        .include_imports(true)
        .open_file("csi/v1/csi.proto")?;
    let set = PathBuf::from(std::env::var("OUT_DIR")?).join("csi.bin");
    std::fs::write(set, compiler.encode_file_descriptor_set())?;

    let descriptors = compiler.file_descriptor_set();
    let with_secrets: Vec<String> = descriptors
        .file
        .iter()
        .flat_map(|file| file.message_type.iter().map(move |message| (file, message)))
        .filter(|(_, message)| message.field.iter().any(|field| field.name() == SECRET))
        .map(|(file, message)| format!(".{}.{}", file.package(), message.name()))
        .collect();
    tonic_prost_build::configure()
        // In order, so that two equal requests have equal bytes.
        .btree_map(".")
        .skip_debug(with_secrets)
        // What a service does not offer answers Unimplemented.
        .generate_default_stubs(true)
        .compile_fds(descriptors)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}
