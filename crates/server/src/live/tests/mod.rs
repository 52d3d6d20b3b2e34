mod behind;
mod clock;
mod decoder;
mod everything;
mod kit;
mod listed;
mod many;
mod one;
