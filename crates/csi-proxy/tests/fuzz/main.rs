//! Parsers of what comes from drivers, files and users, against a generator of damaged inputs.
//!
//! The inputs are made from those in `corpus/`, each of which is a test by itself, by changes
//! that know the format: counts, lengths and offsets get values at their limits, parts are cut
//! off, doubled and joined. A parser must not panic, and what it answers must hold together
//! (`targets`). The generator is deterministic: a seed is a run.
//!
//! `cargo xtask fuzz` runs longer, with a seed that it prints, and keeps an input that fails.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod corpus;
mod mutate;
mod page83;
mod random;
mod reparse;
mod targets;
mod text;

use std::time::{Duration, Instant};

use random::Random;
use targets::{TARGETS, Target};

/// How many inputs each target gets in the tests: all of them take about 10 s on a slow machine,
/// not optimised.
const INPUTS: u64 = 150_000;
/// The seed of the tests: the same inputs every time.
const SEED: u64 = 0x5EED;

#[test]
fn every_file_of_the_corpus_holds() {
    for target in &TARGETS {
        let corpus = corpus::read(target.name);
        assert!(!corpus.is_empty(), "{} has no corpus", target.name);
        for (name, input) in corpus {
            let parsed = (target.check)(&input);
            println!(
                "{}/{name}: {}",
                target.name,
                if parsed { "parsed" } else { "refused" }
            );
        }
    }
}

#[test]
fn damaged_page_83_holds() {
    Fuzz::new(&TARGETS[0], SEED).inputs(INPUTS);
}

#[test]
fn damaged_reparse_data_holds() {
    Fuzz::new(&TARGETS[1], SEED).inputs(INPUTS);
}

#[test]
fn damaged_texts_hold() {
    Fuzz::new(&TARGETS[2], SEED).inputs(INPUTS / 10);
}

/// For `cargo xtask fuzz`, which sets how long and the seed.
#[test]
#[ignore = "runs for minutes: cargo xtask fuzz"]
fn for_minutes() {
    let setting = |name: &str| -> u64 {
        let text = std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        text.parse().unwrap_or_else(|_| panic!("{name}={text:?}"))
    };
    let (seconds, seed) = (
        setting("CSI_PROXY_FUZZ_SECONDS"),
        setting("CSI_PROXY_FUZZ_SEED"),
    );
    let mut runs: Vec<_> = TARGETS.iter().map(|one| Fuzz::new(one, seed)).collect();
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        // As much time for each, however long one input takes.
        for run in &mut runs {
            let turn = Instant::now() + Duration::from_secs(1);
            while Instant::now() < turn {
                run.inputs(100);
            }
        }
    }
    for run in runs {
        println!("{}", run.told());
    }
}

/// A run of one target.
struct Fuzz {
    target: &'static Target,
    random: Random,
    /// The corpus, and inputs that were made from it and parsed well: changes of those go
    /// further away from it.
    pool: Vec<Vec<u8>>,
    kept: usize,
    inputs: u64,
    parsed: u64,
}

/// The pool does not grow beyond it.
const POOL: usize = 512;

impl Fuzz {
    fn new(target: &'static Target, seed: u64) -> Self {
        let pool: Vec<_> = corpus::read(target.name)
            .into_iter()
            .map(|(_, input)| input)
            .collect();
        Self {
            target,
            random: Random::new(seed),
            kept: pool.len(),
            pool,
            inputs: 0,
            parsed: 0,
        }
    }

    fn inputs(&mut self, count: u64) {
        for _ in 0..count {
            let input = (self.target.mutate)(&mut self.random, &self.pool);
            self.inputs += 1;
            let check = self.target.check;
            match std::panic::catch_unwind(|| check(&input)) {
                Ok(false) => {}
                Ok(true) => {
                    self.parsed += 1;
                    self.keep(input);
                }
                Err(panic) => {
                    let file = corpus::write(self.target.name, &input);
                    eprintln!("{}; the input is {}", self.told(), file.display());
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }

    /// Takes the place of another that was made; the corpus itself stays.
    fn keep(&mut self, input: Vec<u8>) {
        if self.pool.len() < POOL {
            self.pool.push(input);
        } else if self.random.one_in(8) {
            let place = self.kept + self.random.below(POOL - self.kept);
            self.pool[place] = input;
        }
    }

    fn told(&self) -> String {
        let Self { inputs, parsed, .. } = self;
        let name = self.target.name;
        format!("{name}: {inputs} inputs, {parsed} of them parsed")
    }
}
