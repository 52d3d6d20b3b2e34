//! The providers there are: their names, programs and streams.

/// Who can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Provider {
    Claude,
    Codex,
    Gemini,
    Copilot,
    OpenCode,
    Vibe,
    OpenAi,
    Cli,
}

impl Provider {
    pub(super) const ALL: [Self; 8] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Copilot,
        Self::OpenCode,
        Self::Vibe,
        Self::OpenAi,
        Self::Cli,
    ];

    /// The provider of this name; the message says which names there are.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        if let Some(found) = Self::ALL.into_iter().find(|it| it.name() == name) {
            return Ok(found);
        }
        let nearest = Self::ALL
            .into_iter()
            .map(|it| (strsim::jaro_winkler(it.name(), &name.to_lowercase()), it))
            .chain([(alias(name), Self::Copilot)])
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let names = Self::ALL.map(Self::name).join(", ");
        Err(match nearest {
            Some((likeness, it)) if likeness > 0.75 => {
                format!(
                    "unknown provider {name:?}; did you mean {}? There are {names}",
                    it.name()
                )
            }
            _ => format!("unknown provider {name:?}; there are {names}"),
        })
    }

    /// The name in workflow files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "github_copilot",
            Self::OpenCode => "opencode",
            Self::Vibe => "mistral_vibe",
            Self::OpenAi => "openai_compatible",
            Self::Cli => "cli",
        }
    }

    /// The name for people.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini",
            Self::Copilot => "Copilot",
            Self::OpenCode => "OpenCode",
            Self::Vibe => "Vibe",
            Self::OpenAi => "OpenAI-compatible",
            Self::Cli => "agent",
        }
    }

    /// The word before `-stub` in the model of a reply that nobody gave.
    pub(super) const fn engine(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::OpenCode => "opencode",
            Self::Vibe => "vibe",
            Self::OpenAi => "openai",
            Self::Cli => "cli",
        }
    }

    /// The program that is looked for on the `PATH`.
    pub(super) const fn program(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("claude"),
            Self::Codex => Some("codex"),
            Self::Gemini => Some("gemini"),
            Self::Copilot => Some("copilot"),
            Self::OpenCode => Some("opencode"),
            Self::Vibe => Some("vibe"),
            Self::OpenAi | Self::Cli => None,
        }
    }

    /// The variable that names another program.
    pub(super) fn variable(self) -> String {
        format!("QUIPU_{}_BIN", self.name().to_uppercase())
    }
}

/// How much a name is like the short name of Copilot.
fn alias(name: &str) -> f64 {
    strsim::jaro_winkler("copilot", &name.to_lowercase())
}
