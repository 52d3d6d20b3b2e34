//! `quipu stats` on the command line.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use quipu_store::stats::By;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = STATS_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Stats {
    #[command(subcommand)]
    pub(crate) command: Option<StatsCommand>,
    /// Group by this; several with commas between, at most four [default: day]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "GROUP")]
    pub(crate) by: Vec<Group>,
    #[command(flatten)]
    pub(crate) which: Which,
    /// At most so many rows, the last days or the dearest others; 0 for all [default: 14 days, 20 others]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Draw a bar for each row, whatever it is grouped by
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) bars: bool,
    /// Write one JSON document
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Write comma-separated values, as RFC 4180 has them
    #[arg(long)]
    pub(crate) csv: bool,
    /// Read logs at these paths instead of what is kept [default: wherever agents keep sessions]
    #[arg(long, value_name = "PATH", num_args = 0..)]
    pub(crate) from_logs: Option<Vec<PathBuf>>,
    /// With --from-logs: only tokens and dollars, which is faster
    #[arg(long, requires = "from_logs")]
    pub(crate) tokens_only: bool,
    /// End with 1 when a budget of the configuration is exceeded
    #[arg(long, conflicts_with = "from_logs")]
    pub(crate) check: bool,
}

const STATS_HELP: &str = "\
Each call to a model is counted once: what logs repeat, and what forks and copies of sessions have in \
common, is counted where it was first. Dollars are those of the day of the call; what has no price is \
listed and never counts as zero. By tool there are no tokens, by model no turns: logs do not tell. \
`quipu stats explain` lists the calls behind a figure.";

#[derive(Debug, Subcommand)]
pub(crate) enum StatsCommand {
    /// List the calls behind a figure, their prices, and what is not counted and why
    Explain(Explain),
    /// What need not have been paid for: lost caches, prompts sent again, repeated tool calls
    Waste(WasteArgs),
    /// Usage by the five-hour blocks in which subscriptions count it
    Blocks(BlocksArgs),
    /// What was spent of each budget; ends with 1 when one is exceeded
    Budget(BudgetArgs),
}

/// Which calls are meant.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Which {
    /// Only sessions of this agent, by name or the beginning of it (can be repeated)
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Only sessions in this directory or below it: a path, or the beginning of a name in one
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<String>,
    /// Only sessions on this branch
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// Only calls to this model, by name or a part of it
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Only sessions whose title has this text in it
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Only calls at or after this: a date, a time, today, yesterday, a weekday, or an age such as 24h, 7d, 2w, 3mo, 1y
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only calls before this; a day is named to its end
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Count what others submitted as well; without this, only one's own sessions are counted
    #[arg(long)]
    pub(crate) received: bool,
    /// Where days begin, such as Europe/Berlin or UTC [config: stats.zone] [default: the zone of the system]
    #[arg(long, value_name = "ZONE", env = "QUIPU_STATS_ZONE", hide_env = false)]
    pub(crate) zone: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// The id of a session, or the beginning of one; its sub-agents are part of it [default: all sessions]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Only the sums of each session, not its calls
    #[arg(long)]
    pub(crate) brief: bool,
    /// Write one JSON object a line: sessions with their calls, then the sum
    #[arg(long)]
    pub(crate) jsonl: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WasteArgs {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Show so many of the worst sessions of each kind
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) worst: usize,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = BLOCKS_HELP)]
pub(crate) struct BlocksArgs {
    /// Only this agent, by name or the beginning of it (can be repeated) [default: claude-code and codex]
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Only blocks that ended after this: a date, a time, today, yesterday, a weekday, or an age such as 24h, 7d, 2w, 3mo, 1y
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only the blocks at hand
    #[arg(long)]
    pub(crate) active: bool,
    /// Write one JSON document
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) jsonl: bool,
}

const BLOCKS_HELP: &str = "\
A block begins with the hour (in UTC) in which something is first done, and lasts five hours; the next \
one begins with the first thing that is done after it. Times are known to the quarter of an hour. What \
the block at hand would come to at its rate so far is a projection, and is marked as one.";

#[derive(Debug, clap::Args)]
pub(crate) struct BudgetArgs {
    /// Dollars for a day [config: budget.day]
    #[arg(long, value_name = "USD", env = "QUIPU_BUDGET_DAY")]
    pub(crate) day: Option<String>,
    /// Dollars for a week [config: budget.week]
    #[arg(long, value_name = "USD", env = "QUIPU_BUDGET_WEEK")]
    pub(crate) week: Option<String>,
    /// Dollars for a month [config: budget.month]
    #[arg(long, value_name = "USD", env = "QUIPU_BUDGET_MONTH")]
    pub(crate) month: Option<String>,
    /// Dollars for a session [config: budget.session]
    #[arg(long, value_name = "USD", env = "QUIPU_BUDGET_SESSION")]
    pub(crate) session: Option<String>,
    /// Where days begin [config: stats.zone] [default: the zone of the system]
    #[arg(long, value_name = "ZONE", env = "QUIPU_STATS_ZONE")]
    pub(crate) zone: Option<String>,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Group {
    Day,
    Week,
    Month,
    Agent,
    Model,
    Project,
    Branch,
    Tool,
    Session,
    Subagent,
}

impl From<Group> for By {
    fn from(group: Group) -> Self {
        match group {
            Group::Day => Self::Day,
            Group::Week => Self::Week,
            Group::Month => Self::Month,
            Group::Agent => Self::Agent,
            Group::Model => Self::Model,
            Group::Project => Self::Project,
            Group::Branch => Self::Branch,
            Group::Tool => Self::Tool,
            Group::Session => Self::Session,
            Group::Subagent => Self::Subagent,
        }
    }
}
