//! One page to hand to a person.
