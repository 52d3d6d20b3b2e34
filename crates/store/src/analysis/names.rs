//! Names that many things share, each held once.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Names by number.
#[derive(Debug)]
pub(super) struct Names<N = String> {
    numbers: HashMap<N, u32>,
    all: Vec<N>,
}

impl<N> Default for Names<N> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            all: Vec::new(),
        }
    }
}

impl<N: Clone + Eq + Hash> Names<N> {
    /// The number of a name. From the four-thousand-millionth on they share one.
    pub(super) fn number<B>(&mut self, name: &B) -> u32
    where
        N: Borrow<B>,
        B: ?Sized + Eq + Hash + ToOwned<Owned = N>,
    {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let name = name.to_owned();
        self.numbers.insert(name.clone(), number);
        self.all.push(name);
        number
    }

    /// The name of a number.
    pub(super) fn get(&self, number: u32) -> Option<&N> {
        self.all.get(number as usize)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
