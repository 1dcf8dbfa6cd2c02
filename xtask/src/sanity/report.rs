//! What csi-sanity reports, judged by the list of skips in the documentation.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// The parts of which at least one spec must have passed, as the specs name them.
const MUST_RUN: [&str; 18] = [
    "GetPluginInfo",
    "GetPluginCapabilities",
    "Probe",
    "ControllerGetCapabilities",
    "CreateVolume",
    "DeleteVolume",
    "ListVolumes",
    "GetCapacity",
    "ValidateVolumeCapabilities",
    "ExpandVolume [Controller Server]",
    "NodeStageVolume",
    "NodeUnstageVolume",
    "NodePublishVolume",
    "NodeUnpublishVolume",
    "NodeGetVolumeStats",
    "NodeExpandVolume",
    "NodeGetCapabilities",
    "NodeGetInfo",
];

/// The table of skips lies between these lines.
const TABLE_START: &str = "<!-- skips -->";
const TABLE_END: &str = "<!-- /skips -->";

/// How the specs ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    passed: usize,
    skipped: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, skipped } = self;
        write!(
            f,
            "{passed} specs run: {passed} passed, 0 failed; {skipped} skipped, each explained"
        )
    }
}

/// One suite of Ginkgo's JSON report.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    spec_reports: Option<Vec<Spec>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
}

impl Spec {
    /// As the documentation names it: containers and text with ` > ` between.
    fn name(&self) -> String {
        let containers = self.container_hierarchy_texts.iter().flatten();
        let texts: Vec<&str> = containers
            .chain([&self.leaf_node_text])
            .map(String::as_str)
            .collect();
        texts.join(" > ")
    }
}

/// Reads the report and fails when a spec failed, was skipped without an explanation in
/// `documentation`, or when a part that must run did not.
pub(crate) fn judge(report: &Path, documentation: &Path) -> Result<Counts, Box<dyn Error>> {
    let json = fs::read_to_string(report)
        .map_err(|error| format!("csi-sanity left no report {}: {error}", report.display()))?;
    let suites: Vec<Suite> = serde_json::from_str(&json)?;
    let specs: Vec<Spec> = suites
        .into_iter()
        .flat_map(|suite| suite.spec_reports.unwrap_or_default())
        .filter(|spec| spec.leaf_node_type == "It")
        .collect();
    let explained = explained(&fs::read_to_string(documentation)?);
    Ok(count(&specs, &explained)?)
}

fn count(specs: &[Spec], explained: &BTreeSet<String>) -> Result<Counts, String> {
    let mut problems = Vec::new();
    let mut passed = Vec::new();
    let mut skipped = BTreeSet::new();
    for spec in specs {
        match spec.state.as_str() {
            "passed" => passed.push(spec.name()),
            "skipped" | "pending" => {
                skipped.insert(spec.name());
            }
            state => problems.push(format!("{state}: {}", spec.name())),
        }
    }
    for name in skipped.difference(explained) {
        problems.push(format!("skipped without an explanation: {name}"));
    }
    for name in explained.difference(&skipped) {
        problems.push(format!("explained as skipped, but it was not: {name}"));
    }
    for part in MUST_RUN {
        if !passed.iter().any(|name| name.contains(part)) {
            problems.push(format!("no spec of {part} passed"));
        }
    }
    if problems.is_empty() {
        Ok(Counts {
            passed: passed.len(),
            skipped: skipped.len(),
        })
    } else {
        let (run, skips) = (specs.len() - skipped.len(), skipped.len());
        let head = format!("{run} specs run, {} passed, {skips} skipped", passed.len());
        Err(format!("{head}\n  {}", problems.join("\n  ")))
    }
}

/// The names in the first column of the table of skips.
fn explained(documentation: &str) -> BTreeSet<String> {
    documentation
        .lines()
        .skip_while(|line| *line != TABLE_START)
        .take_while(|line| *line != TABLE_END)
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(container: &str, text: &str, state: &str) -> Spec {
        Spec {
            container_hierarchy_texts: Some(vec![container.to_owned()]),
            leaf_node_type: "It".to_owned(),
            leaf_node_text: text.to_owned(),
            state: state.to_owned(),
        }
    }

    fn all_parts() -> Vec<Spec> {
        MUST_RUN
            .iter()
            .map(|part| spec(part, "works", "passed"))
            .collect()
    }

    const DOCUMENTATION: &str = "# Skips\n| `Not > this` | no |\n<!-- skips -->\n\
        | spec | reason |\n| --- | --- |\n| `A > b` | no snapshots |\n<!-- /skips -->\n";

    #[test]
    fn a_skip_that_is_explained_is_counted() {
        let mut specs = all_parts();
        specs.push(spec("A", "b", "skipped"));
        let counts = count(&specs, &explained(DOCUMENTATION));
        let expected = Counts {
            passed: MUST_RUN.len(),
            skipped: 1,
        };
        assert_eq!(counts, Ok(expected));
    }

    #[test]
    fn a_skip_without_an_explanation_fails() {
        let mut specs = all_parts();
        specs.push(spec("A", "c", "pending"));
        let error = count(&specs, &BTreeSet::new()).unwrap_err();
        assert!(error.contains("without an explanation: A > c"), "{error}");
    }

    #[test]
    fn an_explanation_without_a_skip_fails() {
        let error = count(&all_parts(), &explained(DOCUMENTATION)).unwrap_err();
        assert!(error.contains("but it was not: A > b"), "{error}");
    }

    #[test]
    fn a_failed_spec_fails_by_name() {
        let mut specs = all_parts();
        specs.push(spec("A", "b", "failed"));
        let error = count(&specs, &BTreeSet::new()).unwrap_err();
        assert!(error.contains("failed: A > b"), "{error}");
    }

    #[test]
    fn a_part_that_did_not_run_fails() {
        let error = count(&all_parts()[1..], &BTreeSet::new()).unwrap_err();
        assert!(error.contains("no spec of GetPluginInfo passed"), "{error}");
    }

    #[test]
    fn the_report_is_read_as_ginkgo_writes_it() {
        let json = r#"[{"SuitePath": "", "SpecReports": [
            {"ContainerHierarchyTexts": ["Node Service", "NodeGetInfo"], "LeafNodeType": "It",
             "LeafNodeText": "should return", "State": "passed", "RunTime": 1},
            {"ContainerHierarchyTexts": null, "LeafNodeType": "BeforeSuite",
             "LeafNodeText": "", "State": "passed"}]}]"#;
        let suites: Vec<Suite> = serde_json::from_str(json).unwrap();
        let specs = suites[0].spec_reports.as_ref().unwrap();
        assert_eq!(
            specs[0].name(),
            "Node Service > NodeGetInfo > should return"
        );
        assert_eq!(specs[1].name(), "");
    }
}
