//! A list in which nothing is twice.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;

/// Up to this many are compared one by one, which is quicker than looking them up.
const FEW: usize = 16;

/// Things in the order in which they came first. Adding one takes the same time however many there are.
#[derive(Clone)]
pub struct Distinct<T> {
    list: Vec<T>,
    /// All of them, once there are more than a few.
    known: HashSet<T>,
}

impl<T: Clone + Eq + Hash> Distinct<T> {
    /// Adds one, unless it is there; gives whether it was added.
    pub fn add(&mut self, one: &T) -> bool {
        if self.list.len() <= FEW {
            if self.list.contains(one) {
                return false;
            }
            self.list.push(one.clone());
            if self.list.len() > FEW {
                self.known.extend(self.list.iter().cloned());
            }
            return true;
        }
        let is_new = self.known.insert(one.clone());
        if is_new {
            self.list.push(one.clone());
        }
        is_new
    }
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            known: HashSet::new(),
        }
    }
}

impl<T> Deref for Distinct<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.list
    }
}

impl<T: Clone + Eq + Hash> FromIterator<T> for Distinct<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut distinct = Self::default();
        for one in all {
            distinct.add(&one);
        }
        distinct
    }
}

impl<'a, T> IntoIterator for &'a Distinct<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl<T: PartialEq> PartialEq for Distinct<T> {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl<T: Eq> Eq for Distinct<T> {}

impl<T: fmt::Debug> fmt::Debug for Distinct<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_kept_once_in_the_order_they_came() {
        let several = [3, 1, 3, 2, 1];
        assert_eq!(&*several.into_iter().collect::<Distinct<_>>(), &[3, 1, 2]);
        let mut many = Distinct::default();
        for n in (0..100).chain(0..100).chain(50..150) {
            let is_new = n >= many.len();
            assert_eq!(many.add(&n), is_new, "{n}");
        }
        assert_eq!(&*many, &(0..150).collect::<Vec<_>>()[..]);
    }
}
