//! Compiles `proto/<group>/<version>.proto`, each by itself because every group has a
//! `package v1`. Writes to `OUT_DIR`:
//! - `<group>/<version>.rs`: messages, server, client, and how the client is connected,
//! - `<group>/<version>.fds`: the descriptors, without comments,
//! - `api.rs`: the table of all versions, read from the descriptors.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use protox::prost::Message;
use tonic_prost_build::FileDescriptorSet;

/// Messages with a secret in them: `src/redacted.rs` has their `Debug`.
const WITH_SECRETS: [&str; 3] = [
    "ConnectTargetRequest",
    "NewSmbGlobalMappingRequest",
    "SetMutualChapSecretRequest",
];

/// `NO_SIDE_EFFECTS` of `google.protobuf.MethodOptions.IdempotencyLevel`.
const NO_SIDE_EFFECTS: i32 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut table = String::from("[\n");
    for (index, (group, version)) in versions()?.into_iter().enumerate() {
        let mut set = protox::Compiler::new(["proto"])?
            .include_source_info(true)
            .open_file(format!("{group}/{version}.proto"))?
            .file_descriptor_set();
        let out = out.join(&group);
        fs::create_dir_all(&out)?;
        generate(&set, &out)?;
        let source = out.join(format!("{version}.rs"));
        fs::write(
            &source,
            fs::read_to_string(&source)? + &connect(&set, index)?,
        )?;
        for file in &mut set.file {
            file.source_code_info = None;
        }
        fs::write(out.join(format!("{version}.fds")), set.encode_to_vec())?;
        entry(&mut table, &group, &version, &set)?;
    }
    fs::write(out.join("api.rs"), table + "]\n")?;
    Ok(())
}

/// Every group and version that has a file, sorted.
fn versions() -> io::Result<Vec<(String, String)>> {
    let mut versions = Vec::new();
    for group in fs::read_dir("proto")? {
        let group = group?.path();
        for file in fs::read_dir(&group)? {
            versions.push((stem(&group), stem(&file?.path())));
        }
    }
    versions.sort();
    Ok(versions)
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn generate(set: &FileDescriptorSet, out: &Path) -> io::Result<()> {
    tonic_prost_build::configure()
        .build_transport(false)
        .btree_map(".")
        .skip_debug(WITH_SECRETS)
        .out_dir(out)
        .compile_fds(set.clone())
}

/// Ties the client of a version to its entry in the table.
fn connect(set: &FileDescriptorSet, index: usize) -> Result<String, Box<dyn Error>> {
    let service = set.file[0].service[0].name();
    let client = format!("{}_client::{service}Client", service.to_lowercase());
    Ok(format!(
        "/// The client of this version.\n\
         pub type Client = {client}<tonic::transport::Channel>;\n\
         impl crate::Connect for Client {{\n\
         const API: &'static crate::Api = &crate::API[{index}];\n\
         fn over(channel: tonic::transport::Channel) -> Self {{ Self::new(channel) }}\n\
         }}\n"
    ))
}

/// Writes one entry of the table.
fn entry(
    table: &mut String,
    group: &str,
    version: &str,
    set: &FileDescriptorSet,
) -> Result<(), Box<dyn Error>> {
    let file = &set.file[0];
    let service = &file.service[0];
    let (package, name) = (file.package(), service.name());
    if !name.eq_ignore_ascii_case(group) || package != version {
        return Err(format!("proto/{group}/{version}.proto holds {package}.{name}").into());
    }
    writeln!(
        table,
        "Api {{ group: Group::{name}, version: {version:?}, service: \"{package}.{name}\", \
         descriptors: include_bytes!(\"{group}/{version}.fds\"), methods: &["
    )?;
    for method in &service.method {
        let rpc = method.name();
        let (request, response) = (method.input_type(), method.output_type());
        let read_only = method
            .options
            .as_ref()
            .is_some_and(|options| options.idempotency_level == Some(NO_SIDE_EFFECTS));
        writeln!(
            table,
            "Method {{ name: {rpc:?}, path: \"/{package}.{name}/{rpc}\", \
             request: {:?}, response: {:?}, read_only: {read_only} }},",
            local(request, package),
            local(response, package),
        )?;
    }
    writeln!(table, "] }},")?;
    Ok(())
}

/// `.v1.RescanRequest` → `RescanRequest`.
fn local<'a>(full: &'a str, package: &str) -> &'a str {
    full.trim_start_matches('.')
        .trim_start_matches(package)
        .trim_start_matches('.')
}
