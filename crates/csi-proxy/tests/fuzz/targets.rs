//! What is fuzzed.

use crate::random::Random;
use crate::{mutate, page83, reparse, text};

/// A parser, or several that take the same inputs.
pub(crate) struct Target {
    /// Also the name of its directory in the corpus.
    pub(crate) name: &'static str,
    /// Makes an input from the pool.
    pub(crate) mutate: fn(&mut Random, &[Vec<u8>]) -> Vec<u8>,
    /// Panics when what must hold does not. Answers whether the input could be read.
    pub(crate) check: fn(&[u8]) -> bool,
}

pub(crate) const TARGETS: [Target; 3] = [
    Target {
        name: "page83",
        mutate: |random, pool| mutate::mutated(random, pool, &page83::FORMAT),
        check: page83::check,
    },
    Target {
        name: "reparse",
        mutate: |random, pool| mutate::mutated(random, pool, &reparse::FORMAT),
        check: reparse::check,
    },
    Target {
        name: "text",
        mutate: text::mutated,
        check: text::check,
    },
];
