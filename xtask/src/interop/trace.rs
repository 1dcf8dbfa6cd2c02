//! The pipes as Wine is asked for them. Wine does not act on all that is asked for: remote
//! clients cannot reach it anyway, and it gives anybody an instance. So this looks at the calls.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::report::Outcome;

/// The versions of the API.
const PIPES: usize = 23;

/// `FILE_FLAG_FIRST_PIPE_INSTANCE`
const FIRST: u32 = 0x0008_0000;

/// `PIPE_REJECT_REMOTE_CLIENTS`
const REJECTS_REMOTE: u32 = 0x8;

/// Instances of each pipe that wait for clients, at least.
const WAITING: usize = 32;

/// Starts a server, whose command is given, and looks at how it makes its pipes.
pub(crate) fn check(command: &mut Command, log: &Path) -> Outcome {
    let mut server = command
        .env("WINEDEBUG", "-all,+sync")
        .stderr(fs::File::create(log)?)
        .stdout(Stdio::piped())
        .spawn()?;
    let said = server.stdout.take().map(BufReader::new);
    let serves = said
        .into_iter()
        .flat_map(|said| said.lines())
        .map_while(Result::ok)
        .any(|line| line.starts_with("serving "));
    server.kill()?;
    server.wait()?;
    if !serves {
        return Err(format!("the server did not start, see {}", log.display()).into());
    }
    let trace = fs::read(log)?;
    judge(&instances(&String::from_utf8_lossy(&trace))?).map_err(Into::into)
}

/// How an instance is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Instance {
    open_mode: u32,
    pipe_mode: u32,
}

type Instances = BTreeMap<String, Vec<Instance>>;

/// Reads lines such as `…:CreateNamedPipeW (L"\\\\.\\pipe\\csi-proxy-x", 0x40080003, 0x000008, …`.
fn instances(trace: &str) -> Result<Instances, Box<dyn Error>> {
    let mut found = Instances::new();
    for line in trace.lines() {
        let Some((_, call)) = line.split_once(r#":CreateNamedPipeW (L"\\\\.\\pipe\\csi-proxy-"#)
        else {
            continue;
        };
        let mut arguments = call.split(',').map(|text| text.trim().trim_matches('"'));
        let [Some(name), Some(open_mode), Some(pipe_mode)] = [(); 3].map(|()| arguments.next())
        else {
            return Err(format!("not a call that Wine traces: {line:?}").into());
        };
        let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16);
        found.entry(name.to_owned()).or_default().push(Instance {
            open_mode: number(open_mode)?,
            pipe_mode: number(pipe_mode)?,
        });
    }
    Ok(found)
}

fn judge(pipes: &Instances) -> Result<String, String> {
    if pipes.len() != PIPES {
        return Err(format!("{} pipes, expected {PIPES}", pipes.len()));
    }
    for (name, instances) in pipes {
        let claims = |instance: &Instance| instance.open_mode & FIRST != 0;
        if !instances.first().is_some_and(claims) || instances.iter().skip(1).any(claims) {
            return Err(format!(
                "{name}: not the first instance alone claims the name"
            ));
        }
        if instances
            .iter()
            .any(|one| one.pipe_mode & REJECTS_REMOTE == 0)
        {
            return Err(format!("{name}: an instance takes remote clients"));
        }
        if instances.len() < WAITING {
            return Err(format!("{name}: only {} instances wait", instances.len()));
        }
    }
    let all: usize = pipes.values().map(Vec::len).sum();
    Ok(format!(
        "{PIPES} pipes, {all} instances: names claimed, remote clients refused"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"0158:trace:sync:CreateNamedPipeW (L"\\\\.\\pipe\\csi-proxy-smb-v1", 0x40080003, 0x000008, 255, 16384, 16384, 0, 00000000002178B0)"#;

    #[test]
    fn the_calls_are_read_as_wine_traces_them() {
        let found = instances(&format!("x\n{LINE}\n")).unwrap();
        let expected = Instance {
            open_mode: 0x4008_0003,
            pipe_mode: 8,
        };
        assert_eq!(found["smb-v1"], [expected]);
    }

    fn pipes(change: impl Fn(usize, &mut Instance)) -> Instances {
        let instance = |number| {
            let mut instance = Instance {
                open_mode: if number == 0 { FIRST } else { 0 },
                pipe_mode: REJECTS_REMOTE,
            };
            change(number, &mut instance);
            instance
        };
        let pipe = |number: usize| (number.to_string(), (0..WAITING).map(instance).collect());
        (0..PIPES).map(pipe).collect()
    }

    #[test]
    fn every_instance_must_be_asked_for_as_it_should() {
        assert!(judge(&pipes(|_, _| {})).is_ok());
        assert!(judge(&pipes(|_, one| one.open_mode = 0)).is_err());
        assert!(judge(&pipes(|_, one| one.open_mode = FIRST)).is_err());
        assert!(
            judge(&pipes(
                |number, one| one.pipe_mode = u32::from(number != 9) * 8
            ))
            .is_err()
        );
        let mut one_less = pipes(|_, _| {});
        one_less.pop_first();
        assert!(judge(&one_less).is_err());
    }
}
