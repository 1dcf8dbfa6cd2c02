//! The program `csi-proxy`.

fn main() {}
