//! Locators: how users name the disk that they mean.

use std::fmt;
use std::str::FromStr;

use crate::invalid::InvalidValue;

/// What names one disk on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locator {
    /// `lun=1`, `lun=1,adapter=0,bus=0,target=2`: the place where it is attached.
    Lun {
        /// The logical unit.
        lun: u32,
        /// The adapter; any if it is not given.
        adapter: Option<u32>,
        /// The bus; any if it is not given.
        bus: Option<u32>,
        /// The target; any if it is not given.
        target: Option<u32>,
    },
    /// `serial=vol-0123456789abcdef0`: the serial number, as people write it.
    Serial(SerialNumber),
    /// `page83=naa.6002…`: the identifier of SCSI vital product data page 83, as
    /// [`crate::disk::Disk::list_ids`] gives it. Case does not matter.
    Page83(String),
    /// `unique-id=…`: `MSFT_Disk.UniqueId`. Case does not matter.
    UniqueId(String),
}

const EXPECTED: &str =
    "lun=N with optional adapter=N, bus=N, target=N, or serial=…, page83=…, unique-id=…";

impl FromStr for Locator {
    type Err = InvalidValue;

    /// Reads `key=value`; only the parts of `lun` are several, with commas between them.
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let fail = |reason: String| InvalidValue::new(text, reason, EXPECTED);
        let Some((key, value)) = text.split_once('=') else {
            return Err(fail("has no key".to_owned()));
        };
        let key = key.trim();
        let value_needed = || match value.trim_matches(is_padding) {
            "" => Err(fail(format!("has no value for {key}"))),
            value => Ok(value.to_owned()),
        };
        match key {
            "serial" if value.contains(',') => {
                Err(fail("has a comma in the serial number".to_owned()))
            }
            "serial" => SerialNumber::new(value)
                .map(Self::Serial)
                .ok_or_else(|| fail("has no value for serial".to_owned())),
            "page83" => value_needed().map(Self::Page83),
            "unique-id" => value_needed().map(Self::UniqueId),
            "lun" | "adapter" | "bus" | "target" => place(text),
            _ => Err(fail(format!("has the unknown key {key:?}"))),
        }
    }
}

fn place(text: &str) -> Result<Locator, InvalidValue> {
    let fail = |reason: String| InvalidValue::new(text, reason, EXPECTED);
    let (mut lun, mut adapter, mut bus, mut target) = (None, None, None, None);
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let (key, value) = (key.trim(), value.trim());
        let place = match key {
            "lun" => &mut lun,
            "adapter" => &mut adapter,
            "bus" => &mut bus,
            "target" => &mut target,
            _ => return Err(fail(format!("has the key {key:?} beside lun"))),
        };
        let number = decimal(value).ok_or_else(|| {
            fail(format!(
                "has {key}={value:?}, which is no decimal number of 32 bits"
            ))
        })?;
        if place.replace(number).is_some() {
            return Err(fail(format!("names {key} twice")));
        }
    }
    match lun {
        Some(lun) => Ok(Locator::Lun {
            lun,
            adapter,
            bus,
            target,
        }),
        None => Err(fail("does not name the lun".to_owned())),
    }
}

fn decimal(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lun {
                lun,
                adapter,
                bus,
                target,
            } => {
                write!(f, "lun={lun}")?;
                let others = [("adapter", adapter), ("bus", bus), ("target", target)];
                others
                    .into_iter()
                    .filter_map(|(key, number)| Some((key, (*number)?)))
                    .try_for_each(|(key, number)| write!(f, ",{key}={number}"))
            }
            Self::Serial(serial) => write!(f, "serial={serial}"),
            Self::Page83(id) => write!(f, "page83={id}"),
            Self::UniqueId(id) => write!(f, "unique-id={id}"),
        }
    }
}

/// The parts of `MSFT_Disk.Location` that tell where a disk is attached. Each is there if
/// the location names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskLocation {
    /// `Adapter`.
    pub adapter: Option<u32>,
    /// `Bus`.
    pub bus: Option<u32>,
    /// `Target`.
    pub target: Option<u32>,
    /// `LUN`.
    pub lun: Option<u32>,
}

impl DiskLocation {
    /// Reads a location such as `PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 0`.
    /// Nothing when it names none of the parts: a file's path for example.
    pub fn read(text: &str) -> Option<Self> {
        let mut location = Self::default();
        for part in text.split(':') {
            let mut words = part.split_ascii_whitespace();
            let (Some(key), Some(number), None) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let place = match key.to_ascii_lowercase().as_str() {
                "adapter" => &mut location.adapter,
                "bus" => &mut location.bus,
                "target" => &mut location.target,
                "lun" => &mut location.lun,
                _ => continue,
            };
            *place = decimal(number).or(*place);
        }
        (location != Self::default()).then_some(location)
    }

    /// Whether it is the place that the numbers name; what is not given may be any.
    pub(crate) fn is_at(
        &self,
        lun: u32,
        adapter: Option<u32>,
        bus: Option<u32>,
        target: Option<u32>,
    ) -> bool {
        let same = |asked: Option<u32>, own: Option<u32>| asked.is_none() || asked == own;
        self.lun == Some(lun)
            && same(adapter, self.adapter)
            && same(bus, self.bus)
            && same(target, self.target)
    }
}

/// A serial number in the one form in which they compare: without the blanks and NULs that
/// devices pad it with, the `_` and `.` that Windows adds for NVMe, the `-` that users
/// write, and without case.
///
/// NVMe devices may have the number of a namespace behind it (`vol0123_00000001.`); one who
/// asks without it means any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialNumber {
    serial: String,
    namespace: Option<String>,
}

impl SerialNumber {
    /// Reads a serial number as a device or a user writes it. Nothing when no letter or
    /// digit is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim_matches(is_padding);
        let (serial, namespace) = match split_namespace(text) {
            Some((serial, namespace)) => (serial, Some(plain(namespace))),
            None => (text, None),
        };
        let serial = plain(serial);
        (!serial.is_empty()).then_some(Self { serial, namespace })
    }

    /// Whether a disk with the serial number `own` is meant.
    pub fn matches(&self, own: &Self) -> bool {
        self.serial == own.serial && (self.namespace.is_none() || self.namespace == own.namespace)
    }
}

impl fmt::Display for SerialNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}_{namespace}.", self.serial),
            None => f.write_str(&self.serial),
        }
    }
}

fn is_padding(char: char) -> bool {
    char.is_whitespace() || char == '\0'
}

/// Splits the namespace off: `_`, eight hexadecimal digits and a dot.
fn split_namespace(text: &str) -> Option<(&str, &str)> {
    let (serial, namespace) = text.strip_suffix('.')?.rsplit_once('_')?;
    let hex = namespace.len() == 8 && namespace.bytes().all(|byte| byte.is_ascii_hexdigit());
    (hex && !plain(serial).is_empty()).then_some((serial, namespace))
}

fn plain(text: &str) -> String {
    text.chars()
        .filter(|char| !matches!(char, '-' | '_' | '.') && !is_padding(*char))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn lun(lun: u32) -> Locator {
        Locator::Lun {
            lun,
            adapter: None,
            bus: None,
            target: None,
        }
    }

    #[test]
    fn a_locator_is_read_and_shown_again() {
        for (text, shown) in [
            ("lun=1", "lun=1"),
            (" lun = 1 , adapter = 2", "lun=1,adapter=2"),
            ("target=3,bus=0,lun=7", "lun=7,bus=0,target=3"),
            ("serial=vol-0123", "serial=vol0123"),
            ("serial=vol0123_00000001.", "serial=vol0123_00000001."),
            ("page83= naa.6002ac0 ", "page83=naa.6002ac0"),
            ("unique-id=SCSI\\Disk,a=b", "unique-id=SCSI\\Disk,a=b"),
        ] {
            let locator: Locator = text.parse().unwrap();
            assert_eq!(locator.to_string(), shown);
            assert_eq!(shown.parse::<Locator>().unwrap(), locator);
        }
        assert_eq!("lun=1".parse(), Ok(lun(1)));
    }

    #[test]
    fn a_wrong_locator_is_refused_with_what_was_expected() {
        for (text, part) in [
            ("", "has no key"),
            ("1", "has no key"),
            ("number=1", "unknown key \"number\""),
            ("LUN=1", "unknown key"),
            ("lun=", "lun=\"\""),
            ("lun=-1", "-1"),
            ("lun=+1", "+1"),
            ("lun=0x1", "0x1"),
            ("lun=4294967296", "4294967296"),
            ("lun=1,lun=1", "twice"),
            ("adapter=1", "does not name the lun"),
            ("lun=1,serial=x", "beside lun"),
            ("lun=1,", "beside lun"),
            ("serial=", "no value"),
            ("serial= \0 ", "no value"),
            ("serial=_.", "no value"),
            ("serial=a,lun=1", "comma"),
            ("page83=", "no value"),
            ("unique-id=  ", "no value"),
        ] {
            let error = text.parse::<Locator>().unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
            let error = error.in_field("disk find", "locator");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn c02_locations_of_every_kind() {
        let read = DiskLocation::read;
        let pci = read("PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 0").unwrap();
        assert_eq!(pci.adapter, Some(0));
        assert_eq!(pci.bus, None);
        assert_eq!(pci.target, Some(1));
        assert_eq!(pci.lun, Some(0));
        let file = r"C:\ProgramData\containerd\root\io.containerd.snapshotter.v1.windows\snapshots\136\sandbox.vhdx";
        for none in [
            file,
            "",
            "   ",
            "Integrated",
            "LUN",
            "LUN x",
            "LUN -1",
            ":::",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
        let adapter = read("Integrated : Adapter 0").unwrap();
        assert_eq!((adapter.adapter, adapter.lun), (Some(0), None));
        let blanks = read("  Integrated  :  Bus 0:Adapter   1 :LUN 11  ").unwrap();
        assert_eq!(
            (blanks.bus, blanks.adapter, blanks.lun),
            (Some(0), Some(1), Some(11))
        );
        assert!(!blanks.is_at(1, None, None, None));
        assert!(blanks.is_at(11, Some(1), None, None));
        assert!(!blanks.is_at(11, Some(1), None, Some(0)));
    }

    #[test]
    fn c03_serial_numbers_compare_as_users_write_them() {
        let own = SerialNumber::new;
        let matches = |asked: &str, disk: &str| {
            let disk = own(disk);
            disk.is_some_and(|disk| own(asked).unwrap().matches(&disk))
        };
        let nvme = "vol0123456789abcdef0_00000001.";
        assert!(matches("vol-0123456789abcdef0", nvme));
        assert!(matches(nvme, nvme));
        assert!(!matches("vol-0123", nvme));
        assert!(!matches("vol0123456789abcdef000000001", nvme));
        assert!(!matches("vol0123456789abcdef0_00000002.", nvme));
        assert!(matches(
            "10cc9636b6e3ce3b0000000000000000",
            "10CC_9636_B6E3_CE3B_0000_0000_0000_0000."
        ));
        assert!(matches("abc", "   ABC\0\0 "));
        for none in ["", "   ", "\0\0", " \0 ", "_."] {
            assert_eq!(own(none), None, "{none:?}");
        }
    }
}
