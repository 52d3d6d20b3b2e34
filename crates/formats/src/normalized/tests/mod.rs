mod foreign;
mod golden;
mod hostile;
mod length;
mod page;
mod round_trip;
mod schema;
mod verify;
