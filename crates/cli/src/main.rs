//! The `quipu` command.
//!
//! Arguments in, library calls, rendering out: what a command does is in the library crates, so that a
//! server or another program can do the same. stdout is data, stderr is everything else.

mod args;
mod asked;
mod commands;
mod config;
mod error;
mod filter;
mod foreign;
mod json;
mod locate;
mod progress;
mod redaction;
mod samples;
mod table;
mod terminal;
mod when;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use error::{CommandError, Exit};

/// Makes a write beyond the limit on file sizes an error, which can be undone and reported, instead of
/// the end of the process in the middle of a line.
fn refuse_rather_than_die() {
    #[expect(unsafe_code, reason = "std has no way to ignore a signal")]
    // SAFETY: ignoring a signal installs no handler, and no other thread runs yet.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

fn main() -> ExitCode {
    refuse_rather_than_die();
    let args = Args::parse();
    args.color.write_global();
    let place = locate::HomePlace::new(args.home.clone());
    let done = match args.command {
        None => commands::scan::run(args.json, &place),
        Some(_) if args.json => Err(CommandError::usage("--json comes after the command")),
        Some(command) => run(command, &place),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) if error.is_broken_pipe() => Exit::Done.into(),
        Err(error) => {
            error.report();
            error.exit().into()
        }
    }
}

fn run(command: Command, place: &locate::HomePlace) -> error::Result<Exit> {
    match command {
        Command::Up(up) => commands::up::run(&up, place),
        Command::Serve(serve) => commands::serve::run(&serve, place),
        Command::Import(import) => commands::import::run(&import, place),
        Command::List(list) => commands::list::run(&list, place),
        Command::Search(search) => commands::search::run(&search, place),
        Command::Stats(stats) => commands::stats::run(&stats, place),
        Command::Label(label) => commands::annotate::label(&label, place),
        Command::Note(note) => commands::annotate::note(&note, place),
        Command::Show(show) => commands::show::run(&show, place),
        Command::Tree(tree) => commands::tree::run(&tree, place),
        Command::Tail(tail) => commands::tail::run(&tail, place),
        Command::Verify(verify) => commands::verify::run(&verify, place),
        Command::Repair(repair) => commands::repair::run(&repair, place),
        Command::Run(run) => commands::run::run(&run, place),
        Command::McpProxy(proxy) => commands::mcp::proxy(&proxy, place),
        Command::McpServe(serve) => commands::mcp::serve(&serve),
        Command::Emit(emit) => commands::emit::run(&emit, place),
        Command::Convert(convert) => commands::convert::run(&convert, place),
        Command::Export(export) => commands::export::run(&export, place),
        Command::Redact(redact) => commands::redact::run(&redact, place),
        Command::Share(share) => commands::share::run(&share, place),
        Command::Keys(keys) => commands::keys::run(&keys.command, place),
        Command::Log(log) => commands::log::run(&log, place),
        Command::Agentlog(agentlog) => commands::agentlog::run(&agentlog, place),
        Command::Resume(resume) => commands::resume::run(&resume, place),
        Command::Prune(prune) => commands::prune::run(&prune, place),
        Command::Doctor(doctor) => commands::doctor::run(&doctor, place),
    }
}
