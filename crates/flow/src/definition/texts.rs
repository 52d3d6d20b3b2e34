//! Every text of a workflow that is filled in or worked out at run time.

use super::{Action, AgentStep, Hook, Items, LoopBody, OnFailure, Step, Text, Workflow};

/// How a text is worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Template,
    Expression,
    /// A template whose text is a whole number, with arithmetic.
    Number,
}

/// A text and what it may name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used<'w> {
    pub(super) text: &'w Text,
    pub(super) how: Use,
    /// Whether the step has run when it is worked out, so that it may name itself.
    pub(super) after: bool,
    /// Whether `loop` is that of the step itself.
    pub(super) in_own_loop: bool,
    /// Whether `error` is defined.
    pub(super) has_error: bool,
}

impl<'w> Used<'w> {
    fn template(text: &'w Text) -> Self {
        Self {
            text,
            how: Use::Template,
            after: false,
            in_own_loop: false,
            has_error: false,
        }
    }

    fn expression(text: &'w Text) -> Self {
        Self {
            how: Use::Expression,
            after: true,
            ..Self::template(text)
        }
    }

    fn after(mut self) -> Self {
        self.after = true;
        self
    }
}

/// The texts of a step.
pub(super) fn of_step(step: &Step) -> Vec<Used<'_>> {
    let mut used: Vec<Used<'_>> = step.texts.iter().map(Used::template).collect();
    match &step.action {
        Action::Agent(agent) => of_agent(agent, &mut used),
        Action::Command(command) => {
            for text in [&command.command, &command.script_file, &command.dir] {
                used.extend(text.as_ref().map(Used::template));
            }
        }
        Action::Terminal(terminal) => used.extend(terminal.message.as_ref().map(Used::template)),
        Action::ForEach(each) => {
            if let Items::Template(text) = &each.items {
                used.push(Used::template(text));
            }
            of_body(&each.body, &mut used);
        }
        Action::While(each) => {
            used.push(Used {
                in_own_loop: true,
                ..Used::expression(&each.condition)
            });
            of_body(&each.body, &mut used);
        }
        Action::CallWorkflow(call) => used.push(Used::template(&call.workflow)),
        Action::Approval(approval) => used.push(Used::template(&approval.message)),
        Action::Wait(wait) => {
            for text in [&wait.duration, &wait.until] {
                used.extend(text.as_ref().map(Used::template));
            }
        }
        Action::Operation(_) | Action::Parallel(_) | Action::Set(_) | Action::Custom(_) => {}
    }
    for transition in &step.transitions {
        used.extend(transition.when.as_ref().map(Used::expression));
    }
    if let Some(OnFailure::Inline {
        message: Some(message),
        ..
    }) = &step.on_failure
    {
        used.push(Used {
            has_error: true,
            ..Used::template(message).after()
        });
    }
    used.extend(
        step.hooks
            .pre
            .iter()
            .map(|hook| Used::template(text_of(hook))),
    );
    used.extend(
        step.hooks
            .post
            .iter()
            .map(|hook| Used::template(text_of(hook)).after()),
    );
    used
}

fn of_agent<'w>(agent: &'w AgentStep, used: &mut Vec<Used<'w>>) {
    used.push(Used::template(&agent.provider));
    for text in [
        &agent.prompt,
        &agent.prompt_file,
        &agent.system_prompt,
        &agent.role,
        &agent.dir,
    ] {
        used.extend(text.as_ref().map(Used::template));
    }
    used.extend(agent.skills.iter().map(Used::template));
    used.extend(
        agent
            .checks
            .iter()
            .map(|check| Used::template(&check.command).after()),
    );
}

fn of_body<'w>(body: &'w LoopBody, used: &mut Vec<Used<'w>>) {
    used.extend(body.max_iterations.as_ref().map(|text| Used {
        how: Use::Number,
        ..Used::template(text)
    }));
    used.extend(body.break_when.as_ref().map(|text| Used {
        in_own_loop: true,
        ..Used::expression(text)
    }));
}

/// The texts of the workflow's hooks.
pub(super) fn of_hooks(workflow: &Workflow) -> Vec<Used<'_>> {
    let hooks = &workflow.hooks;
    let plain = hooks
        .workflow_start
        .iter()
        .chain(&hooks.workflow_end)
        .chain(&hooks.workflow_cancel)
        .map(|hook| Used::template(text_of(hook)).after());
    let failed = hooks.workflow_error.iter().map(|hook| Used {
        has_error: true,
        ..Used::template(text_of(hook)).after()
    });
    plain.chain(failed).collect()
}

fn text_of(hook: &Hook) -> &Text {
    match hook {
        Hook::Log(text) | Hook::Command(text) => text,
    }
}
