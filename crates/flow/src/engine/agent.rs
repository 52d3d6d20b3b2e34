//! Agent steps: the question, its answer as it comes, and whether the answer is good enough.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use quipu_model::{Annotations, Attachment, Block, Body, Fidelity, Money, Place, Severity};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::chronicle::{dollars, with_extra};
use super::command::chain;
use super::context::Context;
use super::prepare::{Filler, PreparedAgent, read};
use super::run::Run;
use super::spending::{complaint, is_beyond};
use super::state::{StepState, StepTokens};
use super::step::{Doing, Done, cancelled};
use super::text::last_bytes;
use super::tooling::StepTools;
use super::{News, Question, Stop};
use crate::agent::{Answer, AskError, AskFailure, AskRequest, Hearer, Sent};
use crate::definition::{Action, AgentMode, AgentStep, Budget, OutputFormat, Text};

/// How much of a check's output an agent is told.
const TOLD: usize = 8000;

/// The longest role or skill.
const DOCUMENT_BYTES: u64 = 1 << 20;

impl Doing<'_> {
    /// Asks the agent until its answer fits and its checks pass, or it was asked often enough.
    pub(super) async fn agent(
        &self,
        context: &Context,
        prepared: &PreparedAgent,
    ) -> Result<Done, Stop> {
        let Action::Agent(step) = &self.step.action else {
            return Ok(Done::default());
        };
        if let Some((sum, budget)) = self.run.spending.is_spent() {
            let attributes = json!({
                "of": "run", "spent_usd": dollars(sum), "budget_usd": budget.usd, "enforced": true,
            });
            self.harness("budget", "budget_exceeded", Severity::Error, &attributes)?;
            return Err(Stop::Budget(complaint(sum, budget, "run")));
        }
        let tools = Arc::new(StepTools::new(self.run, self.place));
        let offer = match Box::pin(self.offer(context, &tools)).await {
            Ok(offer) => offer,
            Err(error) => return Ok(StepState::failed(error).into()),
        };
        let mut request = prepared.request.clone();
        request.step.clone_from(&self.place.path);
        request.tools = offer.as_ref().map(|offer| offer.access.clone());
        if let Some(offer) = &offer {
            let tools_served = offer.access.router.tools();
            tools.serves(tools_served.into_iter().map(|tool| tool.name).collect());
        }
        let mut asked = Asked {
            role: prepared.role.clone(),
            ..Asked::default()
        };
        let done = match step.mode {
            AgentMode::Single => {
                self.ask_until_good(step, prepared, request, &tools, &mut asked)
                    .await?
            }
            AgentMode::Conversation => self.converse(step, request, &tools, &mut asked).await?,
        };
        tools.record_unseen()?;
        if let Some(stop) = tools.failed() {
            return Err(stop);
        }
        Ok(asked.finish(done))
    }

    async fn ask_until_good(
        &self,
        step: &AgentStep,
        prepared: &PreparedAgent,
        mut request: AskRequest,
        tools: &Arc<StepTools>,
        asked: &mut Asked,
    ) -> Result<Done, Stop> {
        let (mut corrections, mut rounds) = (0, 0);
        loop {
            let answer = match self.ask(&request, tools, asked).await? {
                Ok(answer) => answer,
                Err(done) => return Ok(done),
            };
            let mut state = state_of(&answer);
            let wrong = read_output(step, &mut state);
            if let Err(errors) = wrong {
                let most = step
                    .output
                    .as_ref()
                    .map_or(0, |output| output.max_corrections);
                let attributes = json!({ "errors": errors, "correction": corrections + 1, "max_corrections": most });
                if corrections == most {
                    let name = "answer_rejected";
                    self.harness("guardrail", name, Severity::Error, &attributes)?;
                    state.error = Some(format!("the answer does not fit: {errors}"));
                    return Ok(Done {
                        state,
                        is_final: step.output.is_some(),
                    });
                }
                corrections += 1;
                self.harness(
                    "guardrail",
                    "answer_corrected",
                    Severity::Warning,
                    &attributes,
                )?;
                request.prompt = correction(&errors);
                request.session = answer.session;
                continue;
            }
            let Some(failed) = self.failed_check(prepared).await? else {
                return Ok(state.into());
            };
            if rounds == step.max_check_rounds {
                state.error = Some(format!(
                    "{} failed: {}",
                    failed.name,
                    last_bytes(&failed.output, 500)
                ));
                return Ok(Done {
                    state,
                    is_final: true,
                });
            }
            rounds += 1;
            request.prompt = format!(
                "The check `{}` failed with exit code {}. Its output:\n\n{}\n\nMend this. Then answer again.",
                failed.command,
                failed.code,
                last_bytes(&failed.output, TOLD)
            );
            request.session = answer.session;
        }
    }

    /// Asks, and then goes on with what a person says, until the person ends it.
    async fn converse(
        &self,
        step: &AgentStep,
        mut request: AskRequest,
        tools: &Arc<StepTools>,
        asked: &mut Asked,
    ) -> Result<Done, Stop> {
        loop {
            let answer = match self.ask(&request, tools, asked).await? {
                Ok(answer) => answer,
                Err(done) => return Ok(done),
            };
            let mut state = state_of(&answer);
            let Some(person) = self.run.options.person.clone() else {
                read_output(step, &mut state).ok();
                return Ok(state.into());
            };
            // Whoever follows the run sees that it waits for somebody.
            self.harness("person", "question_asked", Severity::Info, &json!({}))?;
            let asking = person.line(Question {
                run: &self.run.facts.run_id,
                place: self.place,
                text: &answer.output,
            });
            let line = tokio::select! {
                line = asking => line,
                () = self.cancel.cancelled() => return Err(Stop::Cancelled),
            };
            let by = line.as_ref().and_then(|line| line.by.as_deref());
            let by = json!({ "by": by.unwrap_or(&self.run.options.user) });
            self.harness("person", "question_answered", Severity::Info, &by)?;
            let line = line
                .map(|line| line.text.trim().to_owned())
                .unwrap_or_default();
            if line.is_empty() || line == "exit" || line == "quit" {
                read_output(step, &mut state).ok();
                return Ok(state.into());
            }
            request.prompt = line;
            request.session = answer.session;
        }
    }

    /// Asks once. A question without an answer gives the step's end.
    async fn ask(
        &self,
        request: &AskRequest,
        tools: &Arc<StepTools>,
        asked: &mut Asked,
    ) -> Result<Result<Answer, Done>, Stop> {
        let stopping = self.cancel.child_token();
        let mut hearing = Hearing {
            doing: self,
            request,
            tools,
            stopping: &stopping,
            asked,
            is_asked: false,
            model: None,
            failed: None,
            over: None,
        };
        let agents = &self.run.options.agents;
        let answered = agents
            .ask(request, &mut hearing, tools.as_ref(), &stopping)
            .await;
        let (failed, over) = (hearing.failed.take(), hearing.over.take());
        if let Some(stop) = failed.or_else(|| tools.failed()) {
            return Err(stop);
        }
        match over {
            Some(Over::Run(why)) => return Err(Stop::Budget(why)),
            Some(Over::Step(why)) => {
                let heard = match &answered {
                    Ok(answer) => answer,
                    Err(AskError { heard, .. }) => heard,
                };
                let mut state = state_of(heard);
                state.error = Some(why);
                return Ok(Err(Done {
                    state,
                    is_final: true,
                }));
            }
            None => {}
        }
        match answered {
            Ok(answer) => {
                asked.take(&answer);
                Ok(Ok(answer))
            }
            Err(AskError { why, heard }) => {
                asked.take(&heard);
                let mut state = match &why {
                    AskFailure::Cancelled => cancelled("cancelled"),
                    _ => StepState::failed(chain(&why)),
                };
                let heard = state_of(&heard);
                state.output = heard.output;
                state.session = heard.session;
                if let AskFailure::Exit { code, stderr, .. } = &why {
                    state.exit_code = Some(*code);
                    state.stderr.clone_from(stderr);
                }
                if !matches!(why, AskFailure::Cancelled) {
                    let attributes = json!({ "error": state.error, "provider": request.provider });
                    self.harness(
                        "stream_interrupt",
                        "ask_failed",
                        Severity::Error,
                        &attributes,
                    )?;
                }
                let is_final = matches!(why, AskFailure::Missing { .. } | AskFailure::Request(_));
                Ok(Err(Done { state, is_final }))
            }
        }
    }

    fn harness(
        &self,
        category: &str,
        name: &str,
        severity: Severity,
        attributes: &Value,
    ) -> Result<(), Stop> {
        self.run
            .chronicle
            .harness(self.place, category, name, severity, attributes)?;
        Ok(())
    }

    /// Runs the checks in order; the first that fails.
    async fn failed_check(&self, prepared: &PreparedAgent) -> Result<Option<FailedCheck>, Stop> {
        for (name, command, timeout) in &prepared.checks {
            let ran = self.run.shell(command, *timeout, self.cancel).await;
            let (code, output) = match ran {
                Ok(ran) => (ran.code, ran.output),
                Err(error) => (-1, error),
            };
            let severity = if code == 0 {
                Severity::Info
            } else {
                Severity::Warning
            };
            let named = if code == 0 {
                "check_passed"
            } else {
                "check_failed"
            };
            let attributes = json!({
                "check": name, "command": command, "exit_code": code, "output": last_bytes(&output, TOLD),
            });
            self.harness("guardrail", named, severity, &attributes)?;
            if self.cancel.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            if code != 0 {
                return Ok(Some(FailedCheck {
                    name: name.clone(),
                    command: command.clone(),
                    code,
                    output,
                }));
            }
        }
        Ok(None)
    }
}

struct FailedCheck {
    name: String,
    command: String,
    code: i32,
    output: String,
}

/// What an agent is told when its answer does not fit.
fn correction(errors: &str) -> String {
    format!(
        "Your answer does not fit what was asked for:\n\n{errors}\n\nAnswer again with the corrected JSON only, without any other text."
    )
}

fn state_of(answer: &Answer) -> StepState {
    let mut state = StepState::said(answer.output.clone());
    state.session.clone_from(&answer.session);
    state.exit_code = answer.exit_code;
    state
}

/// Reads the answer as the step says. The error says all that is wrong with it.
fn read_output(step: &AgentStep, state: &mut StepState) -> Result<(), String> {
    let wants_json = step.output_format == OutputFormat::Json || step.output.is_some();
    if !wants_json {
        if let Some(inside) = outer_fence(&state.output) {
            state.output = inside.to_owned();
        }
        return Ok(());
    }
    let value = json_in(&state.output)?;
    if let Some(output) = &step.output {
        let schema = jsonschema::validator_for(&output.schema)
            .map_err(|error| format!("the schema of the step is wrong: {error}"))?;
        let errors: Vec<String> = schema
            .iter_errors(&value)
            .take(20)
            .map(|error| {
                format!(
                    "at {}: {error}",
                    pointer(&error.instance_path().to_string())
                )
            })
            .collect();
        if !errors.is_empty() {
            return Err(errors.join("\n"));
        }
    }
    state.json = Some(value);
    Ok(())
}

fn pointer(path: &str) -> &str {
    if path.is_empty() { "the top" } else { path }
}

/// The text inside a code fence that is around all of it.
fn outer_fence(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("```")?.strip_suffix("```")?;
    let (_language, inside) = inside.split_once('\n')?;
    (!inside.contains("```")).then(|| inside.trim_end_matches('\n'))
}

/// The JSON of an answer: all of it, inside a fence around it, or in the first fence that says `json`.
fn json_in(text: &str) -> Result<Value, String> {
    let whole = outer_fence(text).unwrap_or(text).trim();
    let error = match serde_json::from_str(whole) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut rest = text;
    while let Some(at) = rest.find("```json") {
        rest = &rest[at + "```json".len()..];
        let inside = rest.split("```").next().unwrap_or_default();
        if let Ok(value) = serde_json::from_str(inside.trim()) {
            return Ok(value);
        }
    }
    Err(format!("the answer is not JSON: {error}"))
}

/// What was asked in a step, over all questions.
#[derive(Default)]
struct Asked {
    /// The role of the step.
    role: Option<String>,
    tokens: Option<StepTokens>,
    /// What the prices of the calls add up to.
    dollars: Option<Money>,
    /// What the agents say that it cost.
    said: Option<Money>,
    simulated: bool,
    /// Whether it was said that the budget of the step is spent.
    is_over: bool,
}

impl Asked {
    fn take(&mut self, answer: &Answer) {
        self.simulated |= answer.simulated;
        if let Some(usage) = &answer.usage {
            let tokens = self.tokens.get_or_insert_default();
            let prompt = [usage.input, usage.cache_read, usage.cache_write];
            tokens.input += prompt.into_iter().flatten().sum::<u64>();
            tokens.output += usage.output.unwrap_or_default();
        }
        if let Some(cost) = answer.cost {
            self.said = Some(self.said.unwrap_or(Money::ZERO) + cost);
        }
    }

    fn finish(self, mut done: Done) -> Done {
        done.state.tokens = self.tokens;
        done.state.cost_usd = self.dollars.or(self.said).map(dollars);
        if self.simulated {
            done.state.data.insert("simulated".to_owned(), true.into());
        }
        done
    }
}

/// A budget that was spent while an agent answered.
enum Over {
    Run(String),
    Step(String),
}

/// Writes down what an agent says, as it says it.
struct Hearing<'a, 'd> {
    doing: &'a Doing<'d>,
    request: &'a AskRequest,
    tools: &'a StepTools,
    stopping: &'a CancellationToken,
    asked: &'a mut Asked,
    is_asked: bool,
    /// The model that spoke last.
    model: Option<String>,
    failed: Option<Stop>,
    over: Option<Over>,
}

impl Hearing<'_, '_> {
    fn run(&self) -> &Run {
        self.doing.run
    }

    fn place(&self) -> &Place {
        self.doing.place
    }

    /// What cannot be recorded ends the question.
    fn keep(&mut self, recorded: Result<u64, Stop>) {
        if let Err(stop) = recorded {
            self.failed.get_or_insert(stop);
            self.stopping.cancel();
        }
    }

    /// Writes down what is asked, exactly as it is sent.
    fn question(&mut self, mut extra: Value) {
        self.is_asked = true;
        let request = self.request;
        let mut blocks = vec![Block::text(Fidelity::Router, request.prompt.clone())];
        extra["provider"] = request.provider.as_str().into();
        if let Some(role) = &self.asked.role {
            extra["role"] = role.as_str().into();
        }
        if let Some(system) = &request.system_prompt {
            blocks.push(Block::text(Fidelity::Router, system.clone()));
            // Which block holds it: the vocabulary has one type for both.
            extra["system_block"] = 1.into();
        }
        if let Some(session) = request
            .session
            .as_ref()
            .and_then(|session| session.id.as_ref())
        {
            extra["session"] = session.as_str().into();
        }
        let body = Body::UserMessage(blocks);
        let recorded = self
            .run()
            .chronicle
            .record(self.place(), body, with_extra(&extra));
        self.keep(recorded);
    }

    /// Says that another model speaks than before. Sub-agents have models of their own.
    fn notice_model(&mut self, annotations: &Annotations) {
        let (Some(model), None) = (&annotations.model, &annotations.subagent_id) else {
            return;
        };
        let before = self.model.replace(model.clone());
        if let Some(before) = before.filter(|before| before != model) {
            let attributes = json!({ "from": before, "to": model });
            let noted = self.run().chronicle.harness(
                self.place(),
                "model_switch",
                "another_model",
                Severity::Info,
                &attributes,
            );
            self.keep(noted);
        }
    }

    fn count(&mut self, annotations: &Annotations) {
        let run = self.doing.run;
        let Some(added) = run.spending.add(annotations, run.facts.clock.now()) else {
            return;
        };
        run.add_own(added.worth);
        if let Some(money) = added.worth.dollars {
            self.asked.dollars = Some(self.asked.dollars.unwrap_or(Money::ZERO) + money);
        }
        let sum = run.spending.sum();
        run.tell(News::Spent {
            dollars: sum.dollars,
            tokens: sum.tokens,
        });
        if let Some((total, budget)) = added.beyond {
            let why = complaint(total, budget, "run");
            self.spent("run", total, budget);
            if budget.enforce {
                self.over.get_or_insert(Over::Run(why));
                self.stopping.cancel();
            }
        }
        let Some(budget) = self.doing.step.budget else {
            return;
        };
        let total = run.add_to_step(self.doing.place, added.worth);
        if is_beyond(total, budget) && !self.asked.is_over {
            self.asked.is_over = true;
            self.spent("step", total, budget);
            if budget.enforce {
                self.over
                    .get_or_insert(Over::Step(complaint(total, budget, "step")));
                self.stopping.cancel();
            }
        }
    }

    fn spent(&mut self, whose: &str, total: Money, budget: Budget) {
        let attributes = json!({
            "of": whose, "spent_usd": dollars(total), "budget_usd": budget.usd, "enforced": budget.enforce,
        });
        let severity = if budget.enforce {
            Severity::Error
        } else {
            Severity::Warning
        };
        let noted = self.run().chronicle.harness(
            self.place(),
            "budget",
            "budget_exceeded",
            severity,
            &attributes,
        );
        self.keep(noted);
        let text = complaint(total, budget, whose);
        self.run().tell(News::Warning {
            place: self.place(),
            text: &text,
        });
    }
}

impl Hearer for Hearing<'_, '_> {
    fn sent(&mut self, sent: Sent<'_>) {
        let mut extra = json!({});
        match sent {
            Sent::Program { argv, stdin } => {
                let shown: Vec<String> = argv
                    .iter()
                    .map(|argument| shown(argument, self.request))
                    .collect();
                extra["argv"] = json!(shown);
                if let Some(stdin) = stdin {
                    extra["stdin"] = shown_text(stdin, self.request).into();
                }
            }
            Sent::Request { url, .. } => extra["url"] = url.into(),
            Sent::Simulated => extra["simulated"] = true.into(),
        }
        self.question(extra);
    }

    fn event(&mut self, body: Body, mut annotations: Annotations) {
        // Some agents do not name their model; then it is the one that was asked for.
        if annotations.usage.is_some() && annotations.model.is_none() {
            let asked_for = self.request.options.get("model").and_then(Value::as_str);
            annotations.model = asked_for.map(str::to_owned);
        }
        // Stubs send nothing, and what is asked comes before what is answered.
        if !self.is_asked {
            self.question(json!({}));
        }
        self.tools.hear(&body);
        let body = self.tools.as_said(body);
        self.notice_model(&annotations);
        self.count(&annotations);
        let recorded = self.run().chronicle.record(self.place(), body, annotations);
        self.keep(recorded);
    }

    fn text(&mut self, text: &str) {
        self.run().tell(News::Said {
            place: self.place(),
            text,
        });
    }

    fn stderr(&mut self, bytes: &[u8]) {
        let place = self.place();
        self.run().tell(News::Printed {
            place,
            bytes,
            is_error: true,
        });
    }

    fn blob(&mut self, _attachment: &Attachment, bytes: &[u8]) {
        // What can be read may hold a secret, and its hash names it as it was.
        let is_masked = self.run().chronicle.masker.is_some();
        if is_masked && std::str::from_utf8(bytes).is_ok() {
            return;
        }
        if let Some(blobs) = &self.run().chronicle.blobs {
            let kept = blobs.put(bytes).map_err(Stop::storing).map(|_| 0);
            let kept = self.run().chronicle.unless_unrecorded(kept);
            self.keep(kept);
        }
    }
}

/// An argument as the transcript shows it: the prompts are in the message already.
fn shown(argument: &str, request: &AskRequest) -> String {
    shown_text(argument, request)
}

fn shown_text(text: &str, request: &AskRequest) -> String {
    let text = text.replacen(&request.prompt, "{prompt}", 1);
    match request
        .system_prompt
        .as_deref()
        .filter(|system| !system.is_empty())
    {
        Some(system) if text.contains(system) => text.replacen(system, "{system_prompt}", 1),
        _ => text,
    }
}

impl Run {
    /// The text of a role: the body of its `AGENTS.md`.
    pub(super) fn role(
        &self,
        filler: &Filler<'_>,
        role: Option<&Text>,
    ) -> Result<Option<String>, String> {
        let Some(role) = filler.optional(role)? else {
            return Ok(None);
        };
        let path = document(&self.options.places.roles, &role, "AGENTS.md")?;
        let text = read(&path, DOCUMENT_BYTES)?;
        Ok(Some(without_front_matter(&text).trim().to_owned()))
    }

    /// The texts of skills, as agents are given them.
    pub(super) fn skills(&self, filler: &Filler<'_>, skills: &[Text]) -> Result<String, String> {
        let mut texts = Vec::new();
        for skill in skills {
            let name = filler.text(skill)?;
            let path = document(&self.options.places.skills, &name, "SKILL.md")?;
            let text = read(&path, DOCUMENT_BYTES)?;
            let text = without_front_matter(&text).trim();
            texts.push(format!(
                "<skill_content name=\"{name}\">\n{text}\n</skill_content>"
            ));
        }
        Ok(texts.join("\n\n"))
    }
}

/// The document of a role or a skill, in the first directory that has it.
fn document(directories: &[PathBuf], name: &str, file: &str) -> Result<PathBuf, String> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if name.is_empty() || !Path::new(name).components().all(is_plain) {
        return Err(format!("{name:?} is not a name of a directory with {file}"));
    }
    let mut paths = directories
        .iter()
        .map(|directory| directory.join(name).join(file));
    paths.find(|path| path.is_file()).ok_or_else(|| {
        let looked: Vec<String> = directories
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        format!("{name}/{file} is in none of {}", looked.join(", "))
    })
}

/// A document without the `---` block at its beginning.
fn without_front_matter(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("---\n") else {
        return text;
    };
    match rest.find("\n---\n") {
        Some(end) => &rest[end + "\n---\n".len()..],
        None => text,
    }
}
