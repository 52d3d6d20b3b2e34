//! The keys of a workflow file: one table, from which the loader knows which keys exist, the JSON Schema is made, and
//! the reference page is held against.

/// What a value looks like.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A text. Numbers and booleans are taken as they are written.
    Text,
    /// A text that is filled in at run time.
    Template,
    /// A condition.
    Expression,
    /// The name of a step.
    Step,
    /// `true` or `false`.
    Bool,
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// A number from the first to the second.
    Number(f64, f64),
    /// Seconds, or a text such as `1m30s`.
    Duration,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A map with these keys.
    Object(&'static Object),
    /// A map from names to this.
    MapOf(&'static Shape),
    /// A list of this.
    List(&'static Shape),
    /// One of these.
    Either(&'static [Shape]),
    /// Anything.
    Any,
    /// A JSON Schema.
    Schema,
}

/// A map with known keys.
#[derive(Debug)]
pub struct Object {
    /// What it is called, in the schema and the reference.
    pub name: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// The keys it must have.
    pub required: &'static [&'static str],
}

/// A key.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value looks like.
    pub shape: Shape,
    /// What it is for, in a sentence.
    pub about: &'static str,
}

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about }
}

const LIMIT: i64 = u32::MAX as i64;
const TEXTS: Shape = Shape::List(&Shape::Text);
const STEPS: Shape = Shape::List(&Shape::Step);
const ANY_MAP: Shape = Shape::MapOf(&Shape::Any);
const TEXT_MAP: Shape = Shape::MapOf(&Shape::Template);
const BUDGET_SHAPE: Shape = Shape::Either(&[Shape::Number(0.0, f64::MAX), Shape::Object(&BUDGET)]);
const HOOK_LIST: Shape = Shape::List(&Shape::Object(&HOOK));

/// The whole file.
pub static WORKFLOW: Object = Object {
    name: "workflow",
    required: &["name", "states"],
    keys: &[
        key("name", Shape::Text, "The workflow's name."),
        key("version", Shape::Text, "Its version, as its author counts."),
        key("description", Shape::Text, "What it is for."),
        key("author", Shape::Text, "Who wrote it."),
        key("tags", TEXTS, "Words to find it by."),
        key(
            "inputs",
            Shape::List(&Shape::Object(&INPUT)),
            "What a run is given.",
        ),
        key("env", TEXTS, "Environment variables that must be set."),
        key(
            "states",
            Shape::MapOf(&Shape::Any),
            "The steps by name, and `initial`, the name of the first.",
        ),
        key(
            "hooks",
            Shape::Object(&WORKFLOW_HOOKS),
            "What runs around the workflow.",
        ),
        key(
            "plugins",
            Shape::MapOf(&Shape::Text),
            "Plugins by the name that this file gives them.",
        ),
        key(
            "mcp_servers",
            Shape::MapOf(&Shape::Object(&MCP_SERVER)),
            "MCP servers by name, whose tools agents may be given.",
        ),
        key(
            "budget_usd",
            BUDGET_SHAPE,
            "The most dollars that a run may cost.",
        ),
    ],
};

/// One of `inputs`.
pub static INPUT: Object = Object {
    name: "input",
    required: &["name"],
    keys: &[
        key("name", Shape::Text, "Its name."),
        key(
            "type",
            Shape::Words(&["string", "integer", "boolean"]),
            "What values it takes; `string` unless given.",
        ),
        key("description", Shape::Text, "What it is for."),
        key("required", Shape::Bool, "Whether a run needs it."),
        key("default", Shape::Any, "Its value when none is given."),
        key(
            "validation",
            Shape::Object(&VALIDATION),
            "What its value must fulfil.",
        ),
    ],
};

/// `validation` of an input.
pub static VALIDATION: Object = Object {
    name: "validation",
    required: &[],
    keys: &[
        key(
            "pattern",
            Shape::Text,
            "A regular expression that matches it.",
        ),
        key("enum", TEXTS, "The values it may have."),
        key("min", Shape::Whole(i64::MIN, i64::MAX), "The least number."),
        key(
            "max",
            Shape::Whole(i64::MIN, i64::MAX),
            "The greatest number.",
        ),
        key(
            "file_exists",
            Shape::Bool,
            "Whether it names a file that exists.",
        ),
        key(
            "file_extension",
            TEXTS,
            "Endings of file names, such as `.md`.",
        ),
    ],
};

/// What every step may have.
pub static STEP: Object = Object {
    name: "step",
    required: &[],
    keys: &[
        key("type", Shape::Text, "What kind of step it is."),
        key("description", Shape::Text, "What it is for."),
        key(
            "timeout",
            Shape::Duration,
            "How long it may take, all attempts included.",
        ),
        key(
            "on_success",
            Shape::Step,
            "Where the run goes when it succeeds.",
        ),
        key(
            "on_failure",
            Shape::Either(&[Shape::Step, Shape::Object(&ON_FAILURE)]),
            "Where the run goes when it fails, or how it ends.",
        ),
        key(
            "transitions",
            Shape::List(&Shape::Object(&TRANSITION)),
            "Where the run goes: the first whose condition holds.",
        ),
        key(
            "continue_on_error",
            Shape::Bool,
            "Whether the run goes on as after a success when it fails.",
        ),
        key(
            "retry",
            Shape::Object(&RETRY),
            "How often it is tried again.",
        ),
        key(
            "hooks",
            Shape::Object(&STEP_HOOKS),
            "What runs before it and after it.",
        ),
        key(
            "capture",
            Shape::Object(&CAPTURE),
            "Names under which its output is kept in `states.STEP.Data`.",
        ),
        key(
            "depends_on",
            STEPS,
            "Steps that must have succeeded before.",
        ),
        key(
            "budget_usd",
            BUDGET_SHAPE,
            "The most dollars that it may cost.",
        ),
        key(
            "use_template",
            Shape::Text,
            "The step template that it is made from.",
        ),
        key(
            "parameters",
            ANY_MAP,
            "The parameters of the step template.",
        ),
    ],
};

/// `on_failure` as a map.
pub static ON_FAILURE: Object = Object {
    name: "on_failure",
    required: &[],
    keys: &[
        key("message", Shape::Template, "What is said."),
        key(
            "status",
            Shape::Whole(1, 255),
            "The exit code of the run; 1 unless given.",
        ),
    ],
};

/// One of `transitions`.
pub static TRANSITION: Object = Object {
    name: "transition",
    required: &["goto"],
    keys: &[
        key(
            "when",
            Shape::Expression,
            "The condition; always unless given.",
        ),
        key("goto", Shape::Step, "The step."),
    ],
};

/// `retry` of a step.
pub static RETRY: Object = Object {
    name: "retry",
    required: &[],
    keys: &[
        key(
            "max_attempts",
            Shape::Whole(1, 1000),
            "How often it is tried, the first included.",
        ),
        key(
            "initial_delay",
            Shape::Duration,
            "The delay before the second attempt.",
        ),
        key(
            "max_delay",
            Shape::Duration,
            "The longest delay; no limit unless given.",
        ),
        key(
            "backoff",
            Shape::Words(&["constant", "linear", "exponential"]),
            "How delays grow; `constant` unless given.",
        ),
        key(
            "multiplier",
            Shape::Number(0.0, 1000.0),
            "The factor of exponential growth; 2 unless given.",
        ),
        key(
            "jitter",
            Shape::Number(0.0, 1.0),
            "How far a delay may differ, as a part of it.",
        ),
        key(
            "retryable_exit_codes",
            Shape::List(&Shape::Whole(-1, 255)),
            "Only these exit codes are tried again.",
        ),
    ],
};

/// `capture` of a step.
pub static CAPTURE: Object = Object {
    name: "capture",
    required: &[],
    keys: &[
        key("stdout", Shape::Text, "A name for the standard output."),
        key("stderr", Shape::Text, "A name for the standard error."),
        key(
            "max_size",
            Shape::Either(&[Shape::Whole(0, i64::MAX), Shape::Text]),
            "The most bytes that are kept: a number, or a text such as `10MB`.",
        ),
    ],
};

/// `hooks` of the workflow.
pub static WORKFLOW_HOOKS: Object = Object {
    name: "workflow hooks",
    required: &[],
    keys: &[
        key(
            "workflow_start",
            HOOK_LIST,
            "Before the first step; a failure ends the run.",
        ),
        key("workflow_end", HOOK_LIST, "After a run that succeeded."),
        key(
            "workflow_error",
            HOOK_LIST,
            "After a run that failed; `error` is defined.",
        ),
        key(
            "workflow_cancel",
            HOOK_LIST,
            "After a run that was cancelled.",
        ),
    ],
};

/// `hooks` of a step.
pub static STEP_HOOKS: Object = Object {
    name: "step hooks",
    required: &[],
    keys: &[
        key("pre", HOOK_LIST, "Before the step."),
        key("post", HOOK_LIST, "After the step."),
    ],
};

/// One hook.
pub static HOOK: Object = Object {
    name: "hook",
    required: &[],
    keys: &[
        key("log", Shape::Template, "Something to say."),
        key("command", Shape::Template, "A shell command to run."),
    ],
};

/// `budget_usd` as a map.
pub static BUDGET: Object = Object {
    name: "budget",
    required: &["usd"],
    keys: &[
        key("usd", Shape::Number(0.0, f64::MAX), "Dollars."),
        key(
            "mode",
            Shape::Words(&["enforce", "audit"]),
            "Whether more ends the run (`enforce`) or is only said.",
        ),
    ],
};

/// One of `mcp_servers`.
pub static MCP_SERVER: Object = Object {
    name: "MCP server",
    required: &[],
    keys: &[
        key(
            "command",
            Shape::Either(&[Shape::Text, TEXTS]),
            "The program with its arguments, for a server on stdin and stdout.",
        ),
        key("args", TEXTS, "More arguments of the program."),
        key("env", TEXT_MAP, "Variables that are set for it."),
        key("url", Shape::Text, "The address, for a server over HTTP."),
        key("headers", TEXT_MAP, "Headers, for a server over HTTP."),
    ],
};

/// `conversation` of an agent step.
pub static CONVERSATION: Object = Object {
    name: "conversation",
    required: &[],
    keys: &[key(
        "continue_from",
        Shape::Step,
        "The step whose session is continued.",
    )],
};

/// `output` of an agent step.
pub static OUTPUT: Object = Object {
    name: "output",
    required: &[],
    keys: &[
        key(
            "schema",
            Shape::Schema,
            "The JSON Schema that the answer must fit.",
        ),
        key("schema_file", Shape::Text, "A file that holds it."),
        key(
            "max_corrections",
            Shape::Whole(0, 100),
            "How often an answer that does not fit is sent back; 2 unless given.",
        ),
    ],
};

/// One of `skills`, as a map.
pub static SKILL: Object = Object {
    name: "skill",
    required: &[],
    keys: &[
        key("name", Shape::Template, "Its name."),
        key("path", Shape::Template, "Its path, instead of a name."),
    ],
};

/// One of `checks`.
pub static CHECK: Object = Object {
    name: "check",
    required: &["command"],
    keys: &[
        key("name", Shape::Text, "What it is called."),
        key("command", Shape::Template, "The command."),
        key("timeout", Shape::Duration, "How long it may take."),
    ],
};

/// `mcp_proxy` of an agent step.
pub static MCP_PROXY: Object = Object {
    name: "mcp_proxy",
    required: &[],
    keys: &[
        key(
            "enable",
            Shape::Bool,
            "Whether Quipu gives the agent its tools.",
        ),
        key(
            "intercept_builtins",
            Shape::Bool,
            "Whether they replace the agent's own file and shell tools; true unless given.",
        ),
        key(
            "plugin_tools",
            Shape::List(&Shape::Object(&PLUGIN_TOOL)),
            "Tools of plugins.",
        ),
        key("servers", TEXTS, "Names of MCP servers of the workflow."),
    ],
};

/// One of `plugin_tools`.
pub static PLUGIN_TOOL: Object = Object {
    name: "plugin tools",
    required: &["plugin"],
    keys: &[
        key("plugin", Shape::Text, "The plugin."),
        key(
            "expose",
            TEXTS,
            "Which of its operations; all unless given.",
        ),
    ],
};

/// A file with a step template.
pub static TEMPLATE_FILE: Object = Object {
    name: "step template",
    required: &["states"],
    keys: &[
        key("name", Shape::Text, "The template's name."),
        key("version", Shape::Text, "Its version."),
        key("description", Shape::Text, "What it is for."),
        key(
            "parameters",
            Shape::List(&Shape::Object(&TEMPLATE_PARAMETER)),
            "What it is given.",
        ),
        key("states", Shape::MapOf(&Shape::Any), "One step."),
    ],
};

/// One of the parameters of a step template.
pub static TEMPLATE_PARAMETER: Object = Object {
    name: "template parameter",
    required: &["name"],
    keys: &[
        key("name", Shape::Text, "Its name."),
        key("description", Shape::Text, "What it is for."),
        key("required", Shape::Bool, "Whether it must be given."),
        key("default", Shape::Any, "Its value when none is given."),
    ],
};

/// A kind of step.
#[derive(Debug)]
pub struct StepKind {
    /// Its name, as `type` gives it.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// The keys that it has beside those of every step.
    pub object: Object,
}

const BODY: Key = key("body", STEPS, "The steps of an iteration, in order.");
const MAX_ITERATIONS: Key = key(
    "max_iterations",
    Shape::Either(&[Shape::Whole(1, 1_000_000), Shape::Template]),
    "How many iterations there may be: a number, or a template with arithmetic.",
);
const BREAK_WHEN: Key = key(
    "break_when",
    Shape::Expression,
    "Ends the loop after an iteration.",
);
const ON_COMPLETE: Key = key(
    "on_complete",
    Shape::Step,
    "Where the run goes after the loop.",
);

macro_rules! kinds {
    ($($name:literal, $about:literal, required $required:expr, [$($key:expr),* $(,)?];)*) => {
        /// The kinds of step that Quipu has.
        pub static KINDS: &[StepKind] = &[$(StepKind {
            name: $name,
            about: $about,
            object: Object { name: $name, keys: &[$($key),*], required: $required },
        }),*];
    };
}

kinds! {
    "command", "Runs a shell command.", required &[], [
        key("command", Shape::Template, "The command."),
        key("script_file", Shape::Template, "A file that holds it."),
        key("dir", Shape::Template, "The directory it runs in."),
        key("env", TEXT_MAP, "Variables that are set for it."),
    ];
    "agent", "Asks an agent.", required &["provider"], [
        key("provider", Shape::Template, "Which provider: `claude`, `codex`, `gemini`, `github_copilot`, `opencode`, `mistral_vibe`, `openai_compatible`, `cli`."),
        key("prompt", Shape::Template, "What is asked."),
        key("prompt_file", Shape::Template, "A file that holds it."),
        key("system_prompt", Shape::Template, "Instructions that come before the prompt."),
        key("role", Shape::Template, "A role whose `AGENTS.md` comes before the system prompt."),
        key("skills", Shape::List(&Shape::Either(&[Shape::Template, Shape::Object(&SKILL)])), "Skills whose texts are put before the prompt."),
        key("options", ANY_MAP, "Options of the provider, such as `model`."),
        key("mode", Shape::Words(&["single", "conversation"]), "One question, or a conversation with a person."),
        key("conversation", Shape::Object(&CONVERSATION), "Keeps the agent's session for later steps."),
        key("output_format", Shape::Words(&["text", "json"]), "How the answer reads; `text` unless given."),
        key("output", Shape::Either(&[Shape::Object(&OUTPUT), Shape::Schema]), "A JSON Schema that the answer must fit."),
        key("checks", Shape::List(&Shape::Either(&[Shape::Template, Shape::Object(&CHECK)])), "Commands that must pass, else the agent is asked again."),
        key("max_check_rounds", Shape::Whole(0, 100), "How often the agent is asked again when checks fail; 2 unless given."),
        key("mcp_proxy", Shape::Object(&MCP_PROXY), "Tools that Quipu gives the agent."),
        key("dir", Shape::Template, "The directory the agent works in."),
    ];
    "operation", "Runs an operation of Quipu or of a plugin.", required &["operation"], [
        key("operation", Shape::Text, "Its name, such as `http.request`."),
        key("inputs", ANY_MAP, "What it is given."),
        key("operation_inputs", ANY_MAP, "The same, under another name."),
    ];
    "terminal", "Ends the run.", required &[], [
        key("status", Shape::Words(&["success", "failure"]), "How the run ends; `success` unless given."),
        key("message", Shape::Template, "What is said."),
        key("exit_code", Shape::Whole(0, 255), "The exit code of the run."),
    ];
    "parallel", "Runs several steps at once.", required &["parallel"], [
        key("parallel", STEPS, "The steps."),
        key("strategy", Shape::Words(&["all_succeed", "any_succeed", "best_effort"]), "When it succeeds; `all_succeed` unless given."),
        key("max_concurrent", Shape::Whole(1, LIMIT), "How many run at once; all unless given."),
    ];
    "for_each", "Runs steps for each item.", required &["items", "body"], [
        key("items", Shape::Either(&[Shape::Template, Shape::List(&Shape::Any)]), "The items: a list, or a template that gives a JSON array or words with commas between them."),
        BODY, MAX_ITERATIONS, BREAK_WHEN, ON_COMPLETE,
    ];
    "while", "Runs steps while a condition holds.", required &["while", "body"], [
        key("while", Shape::Expression, "The condition."),
        BODY, MAX_ITERATIONS, BREAK_WHEN, ON_COMPLETE,
    ];
    "call_workflow", "Runs another workflow.", required &["workflow"], [
        key("workflow", Shape::Template, "Its name, `pack/name` or path."),
        key("inputs", ANY_MAP, "What it is given."),
        key("outputs", TEXT_MAP, "What is taken from it: a name here, and a step there or a template over its values."),
    ];
    "approval", "Waits for a person's consent.", required &["message"], [
        key("message", Shape::Template, "What is asked."),
        key("approvers", TEXTS, "Who may consent; anybody unless given."),
        key("required_approver", Shape::Text, "One person who may consent."),
        key("not_starter", Shape::Bool, "Whether whoever started the run may not consent."),
    ];
    "set", "Works out values, which are then `states.STEP.Data.NAME`.", required &["values"], [
        key("values", ANY_MAP, "Names and templates, worked out in order."),
    ];
    "wait", "Waits.", required &[], [
        key("duration", Shape::Either(&[Shape::Duration, Shape::Template]), "How long."),
        key("until", Shape::Template, "Until when: a time in RFC 3339."),
    ];
}

/// What a kind of step has that a plugin gives.
pub static CUSTOM: Object = Object {
    name: "custom",
    required: &[],
    keys: &[key("config", ANY_MAP, "What the plugin is given.")],
};

/// The objects other than the kinds of step, in the order of the reference.
pub static OBJECTS: [&Object; 21] = [
    &WORKFLOW,
    &INPUT,
    &VALIDATION,
    &STEP,
    &ON_FAILURE,
    &TRANSITION,
    &RETRY,
    &CAPTURE,
    &WORKFLOW_HOOKS,
    &STEP_HOOKS,
    &HOOK,
    &BUDGET,
    &CONVERSATION,
    &OUTPUT,
    &SKILL,
    &CHECK,
    &MCP_PROXY,
    &PLUGIN_TOOL,
    &MCP_SERVER,
    &TEMPLATE_FILE,
    &TEMPLATE_PARAMETER,
];

/// The kind of step of a name: in any case, and `step` for `command`.
pub fn kind(name: &str) -> Option<&'static StepKind> {
    let name = name.to_ascii_lowercase();
    let name = if name == "step" { "command" } else { &name };
    KINDS.iter().find(|kind| kind.name == name)
}
