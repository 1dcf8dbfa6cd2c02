//! Faults as users write them.

use std::str::FromStr;
use std::time::Duration;

use csi_proxy_sim::{Fault, NodeChange};

/// How a fault is written, for help texts.
pub(crate) const GRAMMAR: &str = "\
A fault is written OPERATION=EFFECT, OPERATION#N=EFFECT for the N-th such call from now, or
OPERATION#NxM=EFFECT for M such calls from the N-th on. Without an operation (#N=EFFECT) all calls
count.

Operations:
  MSFT_Volume.Format        a WMI method: class and name
  query MSFT_Disk           a WMI query
  associators MSFT_Volume   WMI associations that lead to the class
  create_link               a call of the operating system; `csi-proxy sim counts` lists those
                            that were made

Effects:
  returns:CODE              the WMI method answers this return value and does nothing
  win32:CODE                the call fails with this error of Windows
  hresult:CODE              the call fails with this HRESULT, as in 0x80041001
  stalls:SECONDS            the call takes so much longer
  loses-answer              the call takes effect, and its answer is lost
  crash-before, crash-after     the process ends before or after the call
  reboot-before, reboot-after   the node reboots before or after the call
  before:CHANGE             someone else changes the node just before the call; CHANGE is the
                            JSON of docs/sim-control.md, as {\"remove\":{\"path\":\"C:/x\"}}

Examples:
  'MSFT_Volume.Format=returns:43006'
  'set_mount_point#2=win32:5'
  'query MSFT_Disk#1x3=hresult:0x80041001'
  '#7=crash-after'";

/// A fault that was read.
#[derive(Clone, Debug)]
pub(crate) struct FaultArg(Fault);

impl FaultArg {
    /// The fault.
    pub(crate) fn fault(&self) -> Fault {
        self.0.clone()
    }
}

impl FromStr for FaultArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (at, effect) = text.split_once('=').ok_or("expected OPERATION=EFFECT")?;
        let at = place(at.trim())?;
        let fault = with_effect(at, effect.trim())?;
        fault.check().map_err(|error| error.to_string())?;
        Ok(Self(fault))
    }
}

fn place(text: &str) -> Result<Fault, String> {
    let (operation, which) = match text.split_once('#') {
        Some((operation, which)) => (operation.trim(), Some(which)),
        None => (text, None),
    };
    let (nth, times) = match which {
        Some(which) => which_calls(which)?,
        None => (1, 1),
    };
    let fault = match (operation, which) {
        ("", None) => return Err("expected an operation or #N before =".to_owned()),
        ("", Some(_)) => Fault::at_call(nth),
        (operation, _) => Fault::on(operation).nth(nth),
    };
    Ok(fault.times(times))
}

/// `N` or `NxM`, both from 1 on.
fn which_calls(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("{text:?} after #: expected N or NxM, both from 1 on");
    let number = |text: &str| text.parse().ok().filter(|n| *n > 0).ok_or_else(wrong);
    match text.split_once('x') {
        Some((nth, times)) => Ok((number(nth)?, number(times)?)),
        None => Ok((number(text)?, 1)),
    }
}

fn with_effect(fault: Fault, text: &str) -> Result<Fault, String> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    match (name, value) {
        ("returns", Some(code)) => Ok(fault.returns(code_of(code)?)),
        ("win32", Some(code)) => Ok(fault.win32(code_of(code)?)),
        ("hresult", Some(code)) => Ok(fault.hresult(code_of(code)?)),
        ("stalls", Some(seconds)) => Ok(fault.stalls(seconds_of(seconds)?)),
        ("loses-answer", None) => Ok(fault.loses_answer()),
        ("before", Some(change)) => Ok(fault.before_change(change_of(change)?)),
        ("crash-before", None) => Ok(fault.crash_before()),
        ("crash-after", None) => Ok(fault.crash_after()),
        ("reboot-before", None) => Ok(fault.reboot_before()),
        ("reboot-after", None) => Ok(fault.reboot_after()),
        _ => Err(format!(
            "effect {text:?}: expected returns:CODE, win32:CODE, hresult:CODE, stalls:SECONDS, \
             loses-answer, before:CHANGE, crash-before, crash-after, reboot-before or \
             reboot-after"
        )),
    }
}

fn change_of(json: &str) -> Result<NodeChange, String> {
    serde_json::from_str(json).map_err(|error| format!("change {json:?}: {error}"))
}

fn code_of(text: &str) -> Result<u32, String> {
    let code = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    code.ok_or_else(|| {
        format!("code {text:?}: expected a number of 32 bits, as 43006 or 0x80041001")
    })
}

fn seconds_of(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("{text:?}: expected seconds, as 2.5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> serde_json::Value {
        let fault: FaultArg = text.parse().unwrap();
        serde_json::to_value(fault.fault()).unwrap()
    }

    fn same(text: &str, fault: Fault) {
        assert_eq!(read(text), serde_json::to_value(fault).unwrap(), "{text}");
    }

    #[test]
    fn faults_are_read_as_the_help_says() {
        same(
            "MSFT_Volume.Format=returns:43006",
            Fault::on("MSFT_Volume.Format").returns(43006),
        );
        same(
            "set_mount_point#2=win32:5",
            Fault::on("set_mount_point").nth(2).win32(5),
        );
        same(
            "query MSFT_Disk#1x3=hresult:0x80041001",
            Fault::on("query MSFT_Disk").times(3).hresult(0x8004_1001),
        );
        same("#7=crash-after", Fault::at_call(7).crash_after());
        same(
            "stat=stalls:2.5",
            Fault::on("stat").stalls(Duration::from_millis(2500)),
        );
        same("stat = loses-answer", Fault::on("stat").loses_answer());
    }

    #[test]
    fn what_is_no_fault_is_told_what_was_expected() {
        for text in [
            "",
            "stat",
            "=win32:5",
            "stat#0=win32:5",
            "stat#1x0=win32:5",
            "stat#a=win32:5",
            "stat=",
            "stat=win32",
            "stat=win32:-5",
            "stat=hresult:0x1ffffffff",
            "stat=stalls:-1",
            "stat=explodes",
            "stat=crash-before:1",
            "stat=stalls:NaN",
            "stat=stalls:1e300",
            "stat=win32:0",
            "stat=hresult:5",
            "MSFT_Volum.Format=returns:43006",
            "query MSFT_Dsk=win32:5",
            r#"stat=before:{"attach_disk":{"size":100}}"#,
        ] {
            let error = text.parse::<FaultArg>().unwrap_err();
            assert!(error.contains("expected"), "{text}: {error}");
        }
    }
}
