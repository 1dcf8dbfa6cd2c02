//! The suite: all checks in their groups, and a clean node after them.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use csi_proxy::Host;
use tokio::runtime::Runtime;

use super::area::Area;
use super::checks::Check;
use super::csi::{self, Csi};
use super::disks::{self, Disks};
use super::files::{self, Files};
use crate::demo::unwritten;
use crate::failure::Result;
use crate::life::LIFE;
use crate::meter::Begun;
use crate::report::{Cost, Outcome, Report, Step};

const CLAIM: &str = "selftest folder";
const CLEAN_UP: &str = "selftest clean-up";

/// Ends the suite after the check that runs.
#[derive(Clone, Default)]
pub(super) struct Interrupt(Arc<OnceLock<&'static str>>);

impl Interrupt {
    /// A signal has come.
    pub(super) fn set(&self, signal: &'static str) {
        // The first one counts.
        let _ = self.0.set(signal);
    }

    /// The signal that came.
    pub(super) fn signal(&self) -> Option<&'static str> {
        self.0.get().copied()
    }
}

/// The names of all checks in their order.
pub(super) fn names() -> Vec<String> {
    fn of<T>(checks: &[Check<T>]) -> impl Iterator<Item = String> {
        checks.iter().map(|check| check.0.to_owned())
    }
    [CLAIM.to_owned()]
        .into_iter()
        .chain(of(&files::CHECKS))
        .chain(of(&disks::CHECKS))
        .chain(LIFE.map(csi::name))
        .chain([csi::SOCKET.to_owned(), CLEAN_UP.to_owned()])
        .collect()
}

/// The suite on one node.
pub(super) struct Suite<'a, W> {
    pub(super) area: Area,
    /// Where the plugin may listen on this machine, which need not be the node.
    pub(super) socket: PathBuf,
    pub(super) interrupt: Interrupt,
    pub(super) runtime: &'a Runtime,
    pub(super) report: Report<W>,
}

impl<W: Write> Suite<'_, W> {
    /// Runs all of it. A failed check ends its group, and the other groups still run; only
    /// what the guard has refused, and a signal, end all of them. Answers whether everything
    /// was right; `faults_left` names injected faults that did not happen.
    pub(super) fn run(mut self, faults_left: impl FnOnce() -> Vec<String>) -> Result<bool> {
        let guard = self.area.guard.clone();
        let begun = Begun::now(&*guard);
        let claimed = self.area.claim();
        let is_claimed = claimed.is_ok();
        let (cost, _) = begun.end();
        self.step(CLAIM, claimed.into(), cost)?;
        if is_claimed {
            let files = Files::new(&self.area)?;
            self.group(&files::CHECKS, files)?;
            let disks = Disks::new(&self.area)?;
            self.group(&disks::CHECKS, disks)?;
            self.csi()?;
            self.clean_up()?;
        }
        // What was not run had no chance to meet a fault.
        let left = match self.report.lacks_something() {
            true => Vec::new(),
            false => faults_left(),
        };
        self.report.end(left).map_err(unwritten)
    }

    fn group<T>(&mut self, checks: &[Check<T>], mut subject: T) -> Result<()> {
        for Check(name, check) in checks {
            if self.is_ended() {
                return Ok(());
            }
            let guard = self.area.guard.clone();
            let begun = Begun::now(&*guard);
            let outcome: Outcome = check(&mut subject).into();
            let (cost, _) = begun.end();
            let failed = outcome.is_failure();
            self.step(name, outcome, cost)?;
            if failed {
                self.area.release();
                return Ok(());
            }
        }
        Ok(())
    }

    fn csi(&mut self) -> Result<()> {
        if self.is_ended() {
            return Ok(());
        }
        let (runtime, host): (_, Host) = (self.runtime, self.area.host.clone());
        let csi = Csi::new(host, &self.area.folder, self.socket.clone())?;
        runtime.block_on(csi.life(self))?;
        if !self.is_ended() {
            let guard = self.area.guard.clone();
            let begun = Begun::now(&*guard);
            let outcome = runtime.block_on(csi.call_over_socket());
            let (cost, _) = begun.end();
            self.step(csi::SOCKET, outcome, cost)?;
        }
        Ok(())
    }

    fn clean_up(&mut self) -> Result<()> {
        let guard = self.area.guard.clone();
        let begun = Begun::now(&*guard);
        let cleared = self.area.end();
        let (cost, _) = begun.end();
        let outcome = cleared.map(|()| "the node is as it was before".to_owned());
        self.step(CLEAN_UP, outcome.into(), cost)
    }

    /// Reports a check.
    pub(super) fn step(&mut self, name: &str, outcome: Outcome, cost: Cost) -> Result<()> {
        let step = Step {
            name,
            outcome,
            cost,
        };
        self.report.step(&step).map_err(unwritten)
    }

    /// Whether nothing more is to be done.
    pub(super) fn is_ended(&self) -> bool {
        self.interrupt.signal().is_some() || self.area.guard.refused().is_some()
    }
}
