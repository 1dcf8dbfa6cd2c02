//! Ids that Windows would draw at random: here they follow from a counter, so that two runs
//! of a test see the same ones.

/// A GUID, `8-4-4-4-12` lower-case hexadecimal digits, of version 4.
pub(super) fn guid(seed: u64) -> String {
    let high = mixed(seed);
    let low = mixed(high);
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0x0fff);
    let (d, e) = (((low >> 48) & 0x3fff) | 0x8000, low & 0xffff_ffff_ffff);
    format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
}

/// An MBR disk signature.
pub(super) fn signature(seed: u64) -> u32 {
    let bytes = mixed(seed).to_le_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// SplitMix64's output function: distinct for distinct seeds.
fn mixed(seed: u64) -> u64 {
    let mut value = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use csi_proxy::VolumeId;

    use super::*;

    #[test]
    fn guids_are_well_formed_and_differ() {
        let ids: std::collections::BTreeSet<_> = (0..1000)
            .map(|seed| VolumeId::new(&format!(r"\\?\Volume{{{}}}\", guid(seed))).unwrap())
            .collect();
        assert_eq!(ids.len(), 1000);
    }
}
