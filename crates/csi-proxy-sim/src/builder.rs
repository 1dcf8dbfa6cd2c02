//! Describing a node.

use std::sync::Arc;

use crate::clock::SimClock;
use crate::node::SimNode;
use crate::state::State;

/// A node in the making. Modules of the model add methods of their own to it.
#[derive(Debug)]
pub struct Builder {
    pub(crate) state: State,
    clock: SimClock,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            state: State::default(),
            clock: SimClock::auto(),
        }
    }

    /// Another clock than [`SimClock::auto`].
    #[must_use]
    pub fn clock(mut self, clock: SimClock) -> Self {
        self.clock = clock;
        self
    }

    /// The node.
    pub fn build(self) -> SimNode {
        SimNode::new(self.state, Arc::new(self.clock))
    }
}
