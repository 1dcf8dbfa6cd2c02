//! Where iSCSI targets are found, and how they are named.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::invalid::InvalidValue;

/// The port of iSCSI, <https://www.rfc-editor.org/rfc/rfc7143>.
const DEFAULT_PORT: u16 = 3260;

const EXPECTED_PORTAL: &str = "an IPv4 address, an IPv6 address or a DNS name, with a port or not";
const EXPECTED_NODE: &str = "iqn.yyyy-mm.domain[:name], eui.<16 digits> or naa.<16 or 32 digits>";

/// The longest iSCSI name in bytes (RFC 7143, 4.2.7.1).
const NODE_LIMIT: usize = 223;

/// A target portal: an address and a TCP port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Portal {
    address: String,
    port: u16,
}

/// The name of a target, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddress(String);

impl Portal {
    /// A portal; port 0 is 3260. An IPv6 address may stand in brackets.
    ///
    /// # Errors
    /// The address is no IP address and no DNS name.
    pub fn new(address: &str, port: u16) -> Result<Self, InvalidValue> {
        let bare = address
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .filter(|inner| inner.contains(':'))
            .unwrap_or(address);
        Ok(Self {
            address: canonical_address(bare).ok_or_else(|| {
                InvalidValue::new(address, "is no address of a portal", EXPECTED_PORTAL)
            })?,
            port: if port == 0 { DEFAULT_PORT } else { port },
        })
    }

    /// The address, without brackets.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// `address`, `address:port`, `[ipv6]`, `[ipv6]:port`.
impl FromStr for Portal {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if text.parse::<IpAddr>().is_ok() {
            return Self::new(text, 0);
        }
        match text.rsplit_once(':') {
            Some((address, port)) if !text.ends_with(']') => {
                let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
                let port =
                    port.parse().ok().filter(|_| digits).ok_or_else(|| {
                        InvalidValue::new(text, "has a wrong port", EXPECTED_PORTAL)
                    })?;
                Self::new(address, port)
            }
            _ => Self::new(text, 0),
        }
    }
}

impl fmt::Display for Portal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address.contains(':') {
            true => write!(f, "[{}]:{}", self.address, self.port),
            false => write!(f, "{}:{}", self.address, self.port),
        }
    }
}

impl NodeAddress {
    /// Reads the name of a target. The case does not matter.
    ///
    /// # Errors
    /// It is not of one of the three forms of RFC 7143.
    pub fn new(text: &str) -> Result<Self, InvalidValue> {
        let lower = text.to_lowercase();
        let fail = |reason: &str| Err(InvalidValue::new(text, reason, EXPECTED_NODE));
        if lower.len() > NODE_LIMIT {
            return fail("has more than 223 bytes");
        }
        let right = match lower.split_once('.') {
            Some(("iqn", rest)) => is_iqn(rest),
            Some(("eui", digits)) => digits.len() == 16 && is_hex(digits),
            Some(("naa", digits)) => matches!(digits.len(), 16 | 32) && is_hex(digits),
            _ => return fail("does not begin with iqn., eui. or naa."),
        };
        match right {
            true => Ok(Self(lower)),
            false => fail("is no iSCSI name"),
        }
    }

    /// A name that the initiator itself reported.
    pub(super) fn reported(text: &str) -> Self {
        Self(text.to_lowercase())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address as the standard library writes it; a DNS name in lower case.
fn canonical_address(address: &str) -> Option<String> {
    if let Ok(address) = address.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = address.strip_suffix('.').unwrap_or(address);
    // Digits and dots alone are a mistyped address.
    let has_letter = name.bytes().any(|byte| byte.is_ascii_alphabetic());
    let right = name.len() <= 253 && has_letter && name.split('.').all(is_label);
    right.then(|| name.to_ascii_lowercase())
}

/// `yyyy-mm.domain[:name]`.
fn is_iqn(rest: &str) -> bool {
    let Some((date, authority)) = rest.split_once('.') else {
        return false;
    };
    let (domain, _) = authority.split_once(':').unwrap_or((authority, ""));
    let legal = |char: char| char.is_alphanumeric() || matches!(char, '-' | '.' | ':' | '_');
    is_year_and_month(date)
        && domain.starts_with(|char: char| char.is_alphanumeric())
        && authority.chars().all(legal)
}

fn is_year_and_month(date: &str) -> bool {
    let Some((year, month)) = date.split_once('-') else {
        return false;
    };
    let digits = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    digits(year, 4)
        && digits(month, 2)
        && month
            .parse::<u8>()
            .is_ok_and(|month| (1..=12).contains(&month))
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_portal_is_read_however_it_is_written() {
        for (text, address, port) in [
            ("10.0.0.4", "10.0.0.4", 3260),
            ("10.0.0.4:0", "10.0.0.4", 3260),
            ("10.0.0.4:3261", "10.0.0.4", 3261),
            ("Target.Contoso.com:3260", "target.contoso.com", 3260),
            ("fe80::1", "fe80::1", 3260),
            ("[FE80::0:1]", "fe80::1", 3260),
            ("[fe80::1]:860", "fe80::1", 860),
        ] {
            let portal: Portal = text.parse().expect(text);
            assert_eq!((portal.address(), portal.port()), (address, port), "{text}");
        }
    }

    #[test]
    fn port_0_is_3260() {
        assert_eq!(Portal::new("10.0.0.4", 0).unwrap().port(), 3260);
    }

    #[test]
    fn what_is_no_portal_is_an_invalid_argument() {
        for text in [
            "",
            ":3260",
            "10.0.0",
            "10.0.0.256",
            "10.0.0.4:",
            "10.0.0.4:x",
            "10.0.0.4:+1",
            "10.0.0.4:65536",
            "[10.0.0.4]",
            "[fe80::1",
            "fe80::1]",
            "a b",
            "a'b",
            "-a",
            "a..b",
            r"\\server",
            "host/",
            "[fe80::1]x",
        ] {
            let error = text.parse::<Portal>().expect_err(text);
            let error = error.in_field("iscsi", "target_portal");
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument, "{text}");
        }
    }

    #[test]
    fn an_ipv6_portal_is_shown_with_brackets() {
        assert_eq!(
            Portal::new("fe80::1", 0).unwrap().to_string(),
            "[fe80::1]:3260"
        );
    }

    #[test]
    fn the_three_forms_of_a_target_name_are_taken() {
        for text in [
            "iqn.1991-05.com.microsoft:win-8e2evaq9q-target",
            "iqn.2003-01.org.linux-iscsi.host.x8664:sn.0123456789ab",
            "iqn.2001-04.com.example",
            "eui.02004567A425678D",
            "naa.52004567BA64678D",
            "naa.62004567BA64678D0123456789ABCDEF",
        ] {
            let node = NodeAddress::new(text).expect(text);
            assert_eq!(node.as_str(), text.to_lowercase());
            assert_eq!(NodeAddress::new(&text.to_uppercase()), Ok(node));
        }
    }

    #[test]
    fn what_is_no_target_name_is_an_invalid_argument() {
        let long = format!("iqn.2001-04.com.example:{}", "x".repeat(200));
        for text in [
            "",
            "iqn",
            "iqn.",
            "iqn.2001.com",
            "iqn.2001-13.com.x",
            "iqn.01-04.com.x",
            "iqn.2001-04.",
            "iqn.2001-04.:x",
            "iqn.2001-04.com.x:a b",
            "iqn.2001-04.com.x:a'b",
            "iqn.2001-04.com.x:a\nb",
            "eui.123",
            "eui.02004567A425678G",
            "naa.123",
            "wwn.123",
            &long,
        ] {
            let error = NodeAddress::new(text).expect_err(text);
            let error = error.in_field("iscsi", "iqn");
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_portal_reads_back_as_itself(text in r"\[?[0-9a-f:.]{1,20}\]?(:[0-9]{1,6})?|\PC{0,12}") {
            if let Ok(portal) = text.parse::<Portal>() {
                prop_assert_eq!(portal.to_string().parse(), Ok(portal));
            }
        }
    }
}
