mod everything;
mod kit;
mod many;
mod one;
