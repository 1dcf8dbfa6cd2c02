//! A driver that is restarted while Windows formats a volume: the second process must not
//! format again, and finds the file system once Windows is done.
//!
//! `cargo run -p csi-proxy-sim --example slow_format`

use std::error::Error;
use std::thread;
use std::time::Duration;

use csi_proxy::clock::{Clock, Deadline};
use csi_proxy::volume::FormatOptions;
use csi_proxy::{Host, HostPath, VolumeId};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{Process, SimClock, SimNode};

const GUID: &str = "6e6fb07c-1a2b-4c3d-8e9f-0123456789ab";
const FORMAT: &str = "MSFT_Volume.Format";

fn main() -> Result<(), Box<dyn Error>> {
    let partition = SimPartition::of(Content::Empty)
        .guid(GUID)
        .format_seconds(150);
    let node = SimNode::builder()
        .clock(SimClock::manual())
        .disk(SimDisk::gpt(10 << 30).partition(partition))
        .build();
    let volume = VolumeId::new(&format!(r"\\?\Volume{{{GUID}}}\"))?;
    let format = move |host: &Host| {
        let options = FormatOptions::default();
        host.volume().format(&volume, &options, Deadline::Never)
    };

    // The driver begins a format, in a thread since the clock stands still.
    let (first, second) = (node.process(), node.process());
    let (host, begun) = (host(&first)?, format.clone());
    let running = thread::spawn(move || begun(&host));
    while node.counts().of(FORMAT) == 0 {
        thread::yield_now();
    }
    let host = self::host(&second)?;
    report(&node, "another process", &format(&host));

    // The driver ends. Windows goes on.
    first.crash();
    node.clock().advance(Duration::from_secs(60));
    report(&node, "after a restart", &format(&host));
    node.clock().advance(Duration::from_secs(90));
    let lost = running.join().map_err(|_| "the format panicked")?;
    report(&node, "the first process", &lost);
    report(&node, "when Windows is done", &format(&host));

    println!(
        "\n{FORMAT}: {} calls, one of them done",
        node.counts().of(FORMAT)
    );
    println!("{}", node.show());
    Ok(())
}

/// The library keeps records of formats in a directory of the node.
fn host(process: &Process) -> Result<Host, Box<dyn Error>> {
    let directory = HostPath::from_kubelet(r"C:\ProgramData\driver")?;
    let host = process.host().with_state_dir(directory.clone());
    host.filesystem().mkdir(&directory, Deadline::Never)?;
    Ok(host)
}

fn report(node: &SimNode, what: &str, result: &csi_proxy::Result<()>) {
    let now = node.clock().now().0.as_secs();
    match result {
        Ok(()) => println!("{now:4} s, {what}: formatted"),
        Err(error) => println!("{now:4} s, {what}: {:?}: {error}", error.kind()),
    }
}
