//! The names that a plugin is configured with, by CSI's grammar.
//!
//! Source: <https://github.com/container-storage-interface/spec/blob/v1.12.0/spec.md>, the
//! comments at `GetPluginInfoResponse`, `NodeGetInfoResponse` and `Topology`.

use std::fmt;

/// CSI's limit for a plugin's name, for the prefix of a topology key, and for a value.
const LIMIT: usize = 63;

/// What a name has to be, for who wrote another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotAName(String);

impl fmt::Display for NotAName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks the name of a plugin that has the topology key of [`topology_key`].
pub(crate) fn check_plugin_name(name: &str) -> Result<(), NotAName> {
    let most = LIMIT - key_prefix("").len();
    let is_label = |label: &str| is_framed(label, |c| c == '-');
    if name.len() <= most && name.split('.').all(is_label) {
        return Ok(());
    }
    let expected = format!(
        "{name:?}, expected a domain name as local.csi-proxy.io: labels of letters, digits and \
         inner dashes, with dots between, at most {most} characters together (it is part of a \
         topology key)"
    );
    Err(NotAName(expected))
}

/// Checks the id of a node that is also the value of the topology key.
pub(crate) fn check_node_id(id: &str) -> Result<(), NotAName> {
    if id.len() <= LIMIT && is_framed(id, |c| matches!(c, '-' | '_' | '.')) {
        return Ok(());
    }
    let expected = format!(
        "{id:?}, expected 1 to {LIMIT} letters, digits, dashes, underscores and dots, the first \
         and the last a letter or digit (it is a topology value)"
    );
    Err(NotAName(expected))
}

/// The topology key that says on which node a volume is.
pub(crate) fn topology_key(plugin_name: &str) -> String {
    // Keys are told apart without case, and their prefixes are in lower case.
    format!("{}/node", key_prefix(&plugin_name.to_ascii_lowercase()))
}

fn key_prefix(plugin_name: &str) -> String {
    format!("topology.{plugin_name}")
}

/// Whether text begins and ends with a letter or digit of ASCII, with these or others
/// between.
fn is_framed(text: &str, other: impl Fn(char) -> bool) -> bool {
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_edge)
        && text.ends_with(is_edge)
        && text.chars().all(|c| is_edge(c) || other(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_name_is_a_domain_name() {
        let longest = ["a"; 27].join(".") + "b";
        assert_eq!(longest.len(), 54);
        for name in ["local.csi-proxy.io", "a", "9.X-y.z", &longest] {
            assert_eq!(check_plugin_name(name), Ok(()), "{name}");
        }
        let too_long = longest + "c";
        for name in [
            "", ".", "a.", ".a", "a..b", "-a", "a-", "a.-b", "a_b", "a b", "a/b", "a\n", "é.b",
            &too_long,
        ] {
            let error = check_plugin_name(name).unwrap_err().to_string();
            assert!(error.contains(&format!("{name:?}, expected")), "{error}");
        }
    }

    #[test]
    fn a_node_id_is_a_topology_value() {
        let longest = "n".repeat(63);
        for id in ["simulated", "win-node_1.example", "7", &longest] {
            assert_eq!(check_node_id(id), Ok(()), "{id}");
        }
        let too_long = longest + "n";
        for id in [
            "", "-a", "a.", "a b", "a\u{7}", "\u{2028}", "ä", "a/b", &too_long,
        ] {
            let error = check_node_id(id).unwrap_err().to_string();
            assert!(error.contains(&format!("{id:?}, expected")), "{error}");
        }
    }

    #[test]
    fn the_prefix_of_a_topology_key_is_in_lower_case() {
        assert_eq!(topology_key("Local.Example"), "topology.local.example/node");
    }
}
