//! What is known of the session as a whole, and the span that stands for it.

use quipu_model::{Header, RunId};

use super::json::Attrs;
use super::provider::{self, OTHER};
use super::{CONTENT, Convention, OtlpOptions};
use crate::loss::Loss;

/// The schema that the names of the `GenAI` conventions are those of.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";

/// What spans say of the session they belong to.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) run: RunId,
    pub(super) parent_run: Option<RunId>,
    pub(super) log_path: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) convention: Convention,
    pub(super) content: bool,
    /// The longest attribute that holds content.
    pub(super) room: usize,
    /// The run and the conversation, as attributes that every span begins with.
    every: Attrs,
    /// What only the root says.
    root: Attrs,
}

impl Facts {
    pub(super) fn new(header: &Header, options: &OtlpOptions, loss: &mut Loss) -> Self {
        let origin = header.origin.as_ref();
        let native = origin.and_then(|it| it.session_id.as_deref());
        let mut every = Attrs::default();
        let conversation = native.unwrap_or(header.run_id.as_str());
        let key = match options.convention {
            Convention::GenAi => "gen_ai.conversation.id",
            Convention::OpenInference => "session.id",
        };
        every.text(key, conversation);
        every.text("quipu.run_id", header.run_id.as_str());
        Self {
            run: header.run_id.clone(),
            parent_run: header.parent_run_id.clone(),
            log_path: origin.and_then(|it| it.path.clone()),
            agent: header.agent().map(ToOwned::to_owned),
            convention: options.convention,
            content: options.content,
            room: options.max_attribute_bytes,
            every,
            root: root(header, options, loss),
        }
    }

    pub(super) fn schema(&self) -> Option<&'static str> {
        (self.convention == Convention::GenAi).then_some(SCHEMA)
    }

    /// What every span begins with: what it stands for, and of which session it is.
    pub(super) fn begin(&self, kind: Kind, attrs: &mut Attrs) {
        match self.convention {
            Convention::GenAi => attrs.text("gen_ai.operation.name", kind.operation()),
            Convention::OpenInference => attrs.text("openinference.span.kind", kind.word()),
        }
        attrs.append(self.every.as_bytes());
    }

    /// What spans begin with that stand for nothing, and only hold what had to be put somewhere.
    pub(super) fn aside(&self) -> Attrs {
        let mut attrs = Attrs::default();
        if self.convention == Convention::OpenInference {
            attrs.text("openinference.span.kind", Kind::Workflow.word());
        }
        attrs.append(self.every.as_bytes());
        attrs
    }

    /// What the root says of the session.
    pub(super) fn root(&self, attrs: &mut Attrs) {
        attrs.append(self.root.as_bytes());
    }
}

/// What a span stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Agent,
    Chat,
    Tool,
    Workflow,
}

impl Kind {
    pub(super) fn operation(self) -> &'static str {
        match self {
            Self::Agent => "invoke_agent",
            Self::Chat => "chat",
            Self::Tool => "execute_tool",
            Self::Workflow => "invoke_workflow",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Agent => "AGENT",
            Self::Chat => "LLM",
            Self::Tool => "TOOL",
            Self::Workflow => "CHAIN",
        }
    }

    /// The name of a span: what is done, and of what.
    pub(super) fn name(self, of: Option<&str>) -> String {
        match of {
            Some(of) if !of.is_empty() => format!("{} {of}", self.operation()),
            _ => self.operation().to_owned(),
        }
    }
}

/// Who is said to send the spans.
pub(super) fn resource(header: &Header, options: &OtlpOptions) -> Attrs {
    let mut attrs = Attrs::default();
    let name = options.service_name.as_deref().or(header.agent());
    attrs.text("service.name", name.unwrap_or("quipu"));
    if let Some(project) = &options.project {
        attrs.text("openinference.project.name", project);
    }
    attrs
}

fn root(header: &Header, options: &OtlpOptions, loss: &mut Loss) -> Attrs {
    let mut attrs = Attrs::default();
    if let Some(origin) = &header.origin {
        agent(options.convention, &origin.agent, &mut attrs);
        let version = origin.agent_version.as_deref();
        match options.convention {
            Convention::GenAi => attrs.text_if("gen_ai.agent.version", version),
            Convention::OpenInference => attrs.text_if("quipu.agent.version", version),
        }
        attrs.text_if("quipu.adapter", origin.adapter.as_deref());
        attrs.text_if("quipu.session_id", origin.session_id.as_deref());
        attrs.text_if("quipu.log_path", origin.path.as_deref());
    }
    if options.convention == Convention::GenAi {
        let mut models = header.totals.models.iter();
        let found = models.find_map(|model| provider::of(model));
        let name = found.map_or(OTHER, |it| it.gen_ai);
        attrs.text("gen_ai.provider.name", name);
        loss.inferred(provider_told(found.is_some()), 0);
    }
    let parent = header.parent_run_id.as_ref().map(RunId::as_str);
    attrs.text_if("quipu.parent_run_id", parent);
    attrs.text_if("quipu.parent_call", header.parent_call.as_deref());
    attrs.text_if("quipu.forked_from", header.forked_from.as_deref());
    if let Some(title) = &header.title {
        if options.content {
            attrs.text("quipu.title", title);
        } else {
            loss.dropped(CONTENT, 0);
        }
    }
    let at = &header.environment;
    attrs.text_if("process.working_directory", at.cwd.as_deref());
    attrs.text_if("vcs.ref.head.name", at.git_branch.as_deref());
    attrs.text_if("vcs.ref.head.revision", at.commit.as_deref());
    attrs.text_if("vcs.repository.url.full", at.repository.as_deref());
    attrs.text_if("os.description", at.os.as_deref());
    attrs.text_if("quipu.shell", at.shell.as_deref());
    attrs
}

/// Writes which agent it is.
pub(super) fn agent(convention: Convention, name: &str, attrs: &mut Attrs) {
    match convention {
        Convention::GenAi => attrs.text("gen_ai.agent.name", name),
        Convention::OpenInference => attrs.text("agent.name", name),
    }
}

/// How it is counted that a provider was named.
pub(super) fn provider_told(sure: bool) -> &'static str {
    if sure {
        "gen_ai.provider.name, from the name of the model"
    } else {
        "gen_ai.provider.name, which is not known"
    }
}
