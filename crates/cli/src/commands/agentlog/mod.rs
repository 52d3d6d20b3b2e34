//! `quipu agentlog`

mod blobs;
mod plumbing;
mod store;

use crate::args::{Agentlog, AgentlogCommand};
use crate::error::{Exit, Result};
use crate::locate;

pub(crate) fn run(args: &Agentlog, place: &locate::HomePlace) -> Result<Exit> {
    match &args.what {
        AgentlogCommand::Parse(caps) => plumbing::parse(caps.limits()),
        AgentlogCommand::Write => plumbing::write(),
        AgentlogCommand::Canon => plumbing::canon(),
        AgentlogCommand::Id => plumbing::id(),
        AgentlogCommand::Keep(keep) => store::keep(keep, place),
        AgentlogCommand::List(list) => store::list(list, place),
        AgentlogCommand::Get(get) => store::get(get, place),
        AgentlogCommand::Blobs(list) => blobs::list(list, place),
        AgentlogCommand::Blob(get) => blobs::get(get, place),
        AgentlogCommand::Gc(gc) => blobs::gc(gc, place),
    }
}
