//! Flags as CSI Proxy 1.x takes them: with one dash or two, klog's among them, and without the
//! name of a command.

use std::ffi::OsString;

/// The flags of klog that are the program's own, and those that nothing comes of. Behind each,
/// whether a value follows as the next argument: Go takes one for a switch only behind `=`.
///
/// Source: <https://pkg.go.dev/k8s.io/klog/v2#InitFlags>.
const KLOG: &[(&str, Klog)] = &[
    ("v", Klog::Verbosity),
    ("log_file", Klog::Own("--log-file")),
    ("logtostderr", Klog::OwnSwitch("--logtostderr")),
    ("alsologtostderr", Klog::OwnSwitch("--alsologtostderr")),
    ("add_dir_header", Klog::IgnoredSwitch),
    ("legacy_stderr_threshold_behavior", Klog::IgnoredSwitch),
    ("log_backtrace_at", Klog::Ignored),
    ("log_dir", Klog::Ignored),
    ("log_file_max_size", Klog::Ignored),
    ("one_output", Klog::IgnoredSwitch),
    ("skip_headers", Klog::IgnoredSwitch),
    ("skip_log_headers", Klog::IgnoredSwitch),
    ("stderrthreshold", Klog::Ignored),
    ("vmodule", Klog::Ignored),
];

/// The program's own flags that CSI Proxy 1.x has too. They tell that it is to serve.
const OF_CSI_PROXY: &[&str] = &[
    "kubelet-path",
    "metrics-bind-address",
    "require-privacy",
    "windows-service",
    "working-dir",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Klog {
    Verbosity,
    Own(&'static str),
    OwnSwitch(&'static str),
    Ignored,
    IgnoredSwitch,
}

/// Arguments as the program takes them, and what the user must be told about them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// The arguments, the program's name first.
    pub(crate) arguments: Vec<OsString>,
    /// One line for each flag that has no effect.
    pub(crate) warnings: Vec<String>,
}

/// What the program does when it is started with no arguments at all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bare {
    /// It serves, as CSI Proxy 1.x does.
    Serves,
    /// It shows its help: nothing can be served without a simulated node.
    ShowsHelp,
}

impl Bare {
    /// On the system that this program is for.
    pub(crate) const HERE: Self = match cfg!(windows) {
        true => Self::Serves,
        false => Self::ShowsHelp,
    };
}

/// Reads the program's arguments. Those of commands other than `serve` stay as they are.
pub(crate) fn read(
    arguments: impl IntoIterator<Item = OsString>,
    commands: &[impl AsRef<str>],
    bare: Bare,
) -> Flags {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let command = arguments.iter().skip(1).position(|argument| {
        argument
            .to_str()
            .is_some_and(|text| commands.iter().any(|command| command.as_ref() == text))
    });
    match command {
        Some(at) if arguments[at + 1] == "serve" => {
            let (front, own) = arguments.split_at(at + 2);
            translated(front.to_vec(), own)
        }
        None if serves(arguments.get(1..).unwrap_or_default(), bare) => {
            let (program, own) = arguments.split_at(1);
            let mut front = program.to_vec();
            front.push("serve".into());
            translated(front, own)
        }
        _ => Flags {
            arguments,
            warnings: Vec::new(),
        },
    }
}

/// `-name`, `--name` and what stands behind `=`.
fn split(argument: &OsString) -> Option<(&str, Option<&str>)> {
    let text = argument.to_str()?;
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    match name.split_once('=') {
        Some((name, value)) => Some((name, Some(value))),
        None => Some((name, None)),
    }
}

fn klog(name: &str) -> Option<Klog> {
    KLOG.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, kind)| *kind)
}

/// Whether arguments without a command mean to serve.
fn serves(arguments: &[OsString], bare: Bare) -> bool {
    let verbosity = |pair: &[OsString]| {
        split(&pair[0]).and_then(|(name, _)| klog(name)) == Some(Klog::Verbosity)
            && is_number(&pair[1])
    };
    match arguments {
        [] => bare == Bare::Serves,
        _ => arguments.iter().any(is_of_csi_proxy) || arguments.windows(2).any(verbosity),
    }
}

/// Whether an argument tells that the program is to serve. `-v` without a level does not.
fn is_of_csi_proxy(argument: &OsString) -> bool {
    split(argument).is_some_and(|(name, value)| {
        OF_CSI_PROXY.contains(&name)
            || klog(name).is_some_and(|kind| kind != Klog::Verbosity || value.is_some())
    })
}

fn translated(front: Vec<OsString>, own: &[OsString]) -> Flags {
    let mut flags = Flags {
        arguments: front,
        warnings: Vec::new(),
    };
    let mut rest = own.iter().peekable();
    while let Some(argument) = rest.next() {
        let Some((name, value)) = split(argument) else {
            flags.arguments.push(argument.clone());
            continue;
        };
        let mut value = value.map(OsString::from);
        let kind = klog(name);
        let wants_value = match kind {
            Some(Klog::Own(_) | Klog::Ignored) => true,
            Some(Klog::Verbosity) => rest.peek().is_some_and(|next| is_number(next)),
            _ => false,
        };
        if wants_value && value.is_none() {
            value = rest.next().cloned();
        }
        match kind {
            Some(kind) => flags.klog(name, kind, value),
            None => flags.push(argument, name),
        }
    }
    flags
}

fn is_number(argument: &OsString) -> bool {
    argument
        .to_str()
        .is_some_and(|text| text.parse::<i32>().is_ok())
}

impl Flags {
    fn klog(&mut self, name: &str, kind: Klog, value: Option<OsString>) {
        match kind {
            Klog::Verbosity => self.verbosity(value),
            Klog::Own(own) => {
                self.arguments.push(own.into());
                self.arguments.extend(value);
            }
            Klog::OwnSwitch(own) => {
                let mut argument = OsString::from(own);
                argument.push("=");
                argument.push(value.unwrap_or_else(|| "true".into()));
                self.arguments.push(argument);
            }
            Klog::Ignored | Klog::IgnoredSwitch => {
                self.warnings.push(format!("-{name} has no effect"));
            }
        }
    }

    /// klog's levels from 4 on are for debugging, from 6 on for everything.
    fn verbosity(&mut self, level: Option<OsString>) {
        let level = level.and_then(|level| level.to_str()?.parse::<i32>().ok());
        match level {
            None => self.arguments.push("-v".into()),
            Some(..=3) => {}
            Some(4..=5) => self.arguments.push("-v".into()),
            Some(_) => self.arguments.push("-vv".into()),
        }
    }

    /// A flag of the program itself, with two dashes.
    fn push(&mut self, argument: &OsString, name: &str) {
        let text = argument.to_string_lossy();
        let short = text.starts_with("--") || name.chars().count() < 2 || name == "vv";
        let mut pushed = OsString::new();
        if !short {
            pushed.push("-");
        }
        pushed.push(argument);
        self.arguments.push(pushed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &str) -> (String, Vec<String>) {
        shown_with(arguments, Bare::ShowsHelp)
    }

    fn shown_with(arguments: &str, bare: Bare) -> (String, Vec<String>) {
        let arguments = arguments.split(' ').map(OsString::from);
        let flags = read(arguments, &["serve", "node", "demo"], bare);
        let text: Vec<_> = flags
            .arguments
            .iter()
            .map(|argument| argument.to_string_lossy())
            .collect();
        (text.join(" "), flags.warnings)
    }

    #[test]
    fn one_dash_is_as_good_as_two() {
        for (given, taken) in [
            (
                "x serve -kubelet-path D:\\k",
                "x serve --kubelet-path D:\\k",
            ),
            ("x serve --working-dir=D:\\w", "x serve --working-dir=D:\\w"),
            (
                "x serve -require-privacy=false",
                "x serve --require-privacy=false",
            ),
            ("x serve -windows-service", "x serve --windows-service"),
        ] {
            assert_eq!(shown(given), (taken.to_owned(), Vec::new()), "{given}");
        }
    }

    #[test]
    fn flags_of_csi_proxy_without_a_command_mean_to_serve() {
        for (given, taken) in [
            ("x -kubelet-path=D:\\k", "x serve --kubelet-path=D:\\k"),
            ("x -windows-service -v=4", "x serve --windows-service -v"),
            (
                "x -logtostderr=false -log_file log",
                "x serve --logtostderr=false --log-file log",
            ),
            (
                "x --metrics-bind-address :1",
                "x serve --metrics-bind-address :1",
            ),
            ("x -v=0", "x serve"),
            ("x -v 4", "x serve -v"),
        ] {
            assert_eq!(shown(given), (taken.to_owned(), Vec::new()), "{given}");
        }
    }

    #[test]
    fn no_flags_at_all_mean_to_serve_where_there_is_a_node() {
        assert_eq!(shown_with("x", Bare::Serves).0, "x serve");
        assert_eq!(shown_with("x", Bare::ShowsHelp).0, "x");
        for given in ["x --help", "x --version", "x demo", "x -v demo"] {
            assert_eq!(shown_with(given, Bare::Serves).0, given);
        }
    }

    #[test]
    fn other_commands_keep_their_arguments() {
        for given in [
            "x",
            "x --help",
            "x -v demo",
            "x node -v --simulate",
            "x --version",
            "x -v",
        ] {
            assert_eq!(shown(given).0, given);
        }
    }

    #[test]
    fn levels_of_klog_are_levels_of_the_log() {
        for (given, taken) in [
            ("x serve -v=3", "x serve"),
            ("x serve -v 4", "x serve -v"),
            ("x serve -v=10", "x serve -vv"),
            ("x serve -v -reflection", "x serve -v --reflection"),
            ("x serve -vv", "x serve -vv"),
        ] {
            assert_eq!(shown(given).0, taken, "{given}");
        }
    }

    #[test]
    fn flags_of_klog_without_an_effect_are_taken_with_a_warning() {
        let (taken, warnings) = shown("x serve -log_dir D:\\logs -skip_headers -stderrthreshold=2");
        assert_eq!(taken, "x serve");
        assert_eq!(
            warnings,
            [
                "-log_dir has no effect",
                "-skip_headers has no effect",
                "-stderrthreshold has no effect"
            ]
        );
    }

    #[test]
    fn a_switch_of_klog_takes_no_next_argument() {
        assert_eq!(
            shown("x serve -alsologtostderr -kubelet-path D:\\k").0,
            "x serve --alsologtostderr=true --kubelet-path D:\\k"
        );
    }
}
