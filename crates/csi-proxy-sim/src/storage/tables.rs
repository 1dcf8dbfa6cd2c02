//! Partition tables as bytes: the MBR, the GPT with its checksums, and the signature of a
//! dynamic disk.
//!
//! Sources: UEFI specification, "GUID Partition Table (GPT) Disk Layout";
//! <https://learn.microsoft.com/windows/win32/fileio/basic-and-dynamic-disks>.

use super::medium::{Medium, Partition, PartitionKind, SECTOR, Style, gpt_type, mbr_type};

const ENTRY_LENGTH: usize = 128;
const ENTRIES_LENGTH: usize = 128 * ENTRY_LENGTH;
const ENTRIES_SECTORS: u64 = 32;

/// Writes a medium's partition tables anew; a RAW medium's are cleared.
pub(super) fn write(medium: &mut Medium) {
    let last = (medium.size / SECTOR).saturating_sub(1);
    medium.bytes.clear(0, 34 * SECTOR);
    medium.bytes.clear(
        last.saturating_sub(ENTRIES_SECTORS) * SECTOR,
        (ENTRIES_SECTORS + 1) * SECTOR,
    );
    match medium.style.clone() {
        Style::Raw => {}
        Style::Mbr { signature } => {
            let sector = mbr(signature, &medium.partitions);
            medium.bytes.write(0, &sector);
        }
        Style::Gpt { guid } => write_gpt(medium, &guid, last),
    }
    if medium.partitions.iter().any(is_dynamic) {
        medium.bytes.write(6 * SECTOR, b"PRIVHEAD");
    }
}

/// Whether the logical disk manager keeps volumes of its own in it.
pub(crate) fn is_dynamic(partition: &Partition) -> bool {
    match &partition.kind {
        PartitionKind::Gpt(kind) => {
            [gpt_type::LDM_DATA, gpt_type::LDM_METADATA].contains(&kind.as_str())
        }
        PartitionKind::Mbr(kind) => *kind == mbr_type::LDM,
    }
}

fn write_gpt(medium: &mut Medium, guid: &str, last: u64) {
    let protective = [Partition::new(
        1,
        PartitionKind::Mbr(0xee),
        SECTOR..(last + 1) * SECTOR,
    )];
    medium.bytes.write(0, &mbr(0, &protective));
    let entries = gpt_entries(&medium.partitions);
    let backup_entries = last - ENTRIES_SECTORS;
    let primary = gpt_header(guid, [1, last, 2, backup_entries - 1], &entries);
    let backup = gpt_header(
        guid,
        [last, 1, backup_entries, backup_entries - 1],
        &entries,
    );
    medium.bytes.write(SECTOR, &primary);
    medium.bytes.write(2 * SECTOR, &entries);
    medium.bytes.write(backup_entries * SECTOR, &entries);
    medium.bytes.write(last * SECTOR, &backup);
}

fn mbr(signature: u32, partitions: &[Partition]) -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[440..444].copy_from_slice(&signature.to_le_bytes());
    for (partition, entry) in partitions.iter().zip(sector[446..510].chunks_exact_mut(16)) {
        let PartitionKind::Mbr(kind) = partition.kind else {
            continue;
        };
        let sectors = |bytes: u64| u32::try_from(bytes / SECTOR).unwrap_or(u32::MAX);
        entry[0] = if partition.active { 0x80 } else { 0 };
        entry[4] = kind.to_le_bytes()[0];
        entry[8..12].copy_from_slice(&sectors(partition.offset).to_le_bytes());
        entry[12..16].copy_from_slice(&sectors(partition.size).to_le_bytes());
    }
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

fn gpt_entries(partitions: &[Partition]) -> Vec<u8> {
    let mut entries = vec![0; ENTRIES_LENGTH];
    for (partition, entry) in partitions
        .iter()
        .zip(entries.chunks_exact_mut(ENTRY_LENGTH))
    {
        let PartitionKind::Gpt(kind) = &partition.kind else {
            continue;
        };
        entry[..16].copy_from_slice(&guid_bytes(kind));
        entry[16..32].copy_from_slice(&guid_bytes(partition.guid.as_deref().unwrap_or("")));
        entry[32..40].copy_from_slice(&(partition.offset / SECTOR).to_le_bytes());
        entry[40..48].copy_from_slice(&(partition.end() / SECTOR - 1).to_le_bytes());
    }
    entries
}

/// `place`: this header, the other one, the entries, the last usable sector.
fn gpt_header(guid: &str, place: [u64; 4], entries: &[u8]) -> Vec<u8> {
    let [this, other, at, last_usable] = place;
    let mut header = Vec::with_capacity(512);
    header.extend_from_slice(b"EFI PART");
    header.extend_from_slice(&[0, 0, 1, 0, 92, 0, 0, 0]);
    header.extend_from_slice(&[0; 8]);
    for number in [this, other, 34, last_usable] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header.extend_from_slice(&guid_bytes(guid));
    header.extend_from_slice(&at.to_le_bytes());
    header.extend_from_slice(&128u32.to_le_bytes());
    header.extend_from_slice(&128u32.to_le_bytes());
    header.extend_from_slice(&crc32(entries).to_le_bytes());
    let checksum = crc32(&header);
    header[16..20].copy_from_slice(&checksum.to_le_bytes());
    header.resize(512, 0);
    header
}

/// A GUID in the order of bytes that Windows stores: the first three groups little-endian.
fn guid_bytes(guid: &str) -> [u8; 16] {
    let mut digits = guid.bytes().filter(u8::is_ascii_hexdigit);
    let mut bytes = [0; 16];
    for at in [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15] {
        let mut digit = || digits.next().map_or(0, hex_value);
        bytes[at] = digit() << 4 | digit();
    }
    bytes
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase().wrapping_sub(b'a') + 10,
    }
}

/// The CRC-32 of the UEFI specification (polynomial 0xEDB88320, reflected). A byte at a
/// time: every change of a partition table takes it over 16 KiB, several times.
fn crc32(bytes: &[u8]) -> u32 {
    let step =
        |crc: u32, byte: &u8| crc >> 8 ^ CRC_OF_BYTE[usize::from(crc.to_le_bytes()[0] ^ byte)];
    !bytes.iter().fold(u32::MAX, step)
}

const CRC_OF_BYTE: [u32; 256] = {
    let mut table = [0; 256];
    let (mut byte, mut start) = (0, 0);
    while byte < table.len() {
        let (mut crc, mut bit) = (start, 0);
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
        start += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_the_specification() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_guid_is_stored_in_windows_order() {
        let bytes = guid_bytes(gpt_type::BASIC_DATA);
        assert_eq!(bytes[..8], [0xa2, 0xa0, 0xd0, 0xeb, 0xe5, 0xb9, 0x33, 0x44]);
        assert_eq!(bytes[8..], [0x87, 0xc0, 0x68, 0xb6, 0xb7, 0x26, 0x99, 0xc7]);
    }

    #[test]
    fn both_gpt_headers_are_where_the_specification_wants_them() {
        let mut medium = Medium::empty(1 << 30);
        let guid = "6e6fb07c-1a2b-4c3d-8e9f-0123456789ab".to_owned();
        medium.initialize(Style::Gpt { guid }, 1);
        assert_eq!(medium.bytes.read(510, 2), [0x55, 0xaa]);
        assert_eq!(medium.bytes.read(SECTOR, 8), b"EFI PART");
        assert_eq!(medium.bytes.read((1 << 30) - SECTOR, 8), b"EFI PART");
    }

    #[test]
    fn a_cleared_disk_is_all_zero_again() {
        let mut medium = Medium::empty(1 << 30);
        medium.initialize(Style::Mbr { signature: 7 }, 1);
        medium.style = Style::Raw;
        medium.write_tables();
        assert_eq!(medium, Medium::empty(1 << 30));
    }
}
