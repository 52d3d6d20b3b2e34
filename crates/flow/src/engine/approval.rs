//! Waiting for a person's consent.

use std::sync::PoisonError;

use quipu_model::{Severity, hex};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::history::key;
use super::state::StepState;
use super::step::{Doing, Done};
use super::{EngineError, Pause, Question, Stop, Verdict};
use crate::definition::{Action, ApprovalStep};

impl Doing<'_> {
    /// Asks a person who is there, takes the verdict that the run was resumed with, or pauses the run.
    pub(super) async fn approval(&self, message: &str) -> Result<Done, Stop> {
        let Action::Approval(step) = &self.step.action else {
            return Ok(Done::default());
        };
        let run = self.run;
        // Who approves is who runs this program, not who began the run.
        let user = run.options.user.clone();
        if let Some(verdict) = self.verdict() {
            let request = hash(&verdict.token);
            if let Err(why) = may_consent(step, &user, &run.starter) {
                self.say("approval_refused", Severity::Warning, &request, &user)?;
                // The request stands: somebody who may can still answer it.
                return Err(Stop::Paused(Pause {
                    path: self.place.label(),
                    message: message.to_owned(),
                    approvers: step.approvers.clone(),
                    token: verdict.token,
                    refused: Some(why),
                }));
            }
            return self.decided(verdict.consents, &request, &user);
        }
        if let (Some(person), Ok(())) =
            (&run.options.person, may_consent(step, &user, &run.starter))
        {
            let asking = person.consents(Question {
                run: &run.facts.run_id,
                place: self.place,
                text: message,
            });
            let said = tokio::select! {
                said = asking => said,
                () = self.cancel.cancelled() => return Err(Stop::Cancelled),
            };
            if let Some(consents) = said {
                return self.decided(consents, "", &user);
            }
        }
        let token = new_token()?;
        let attributes = json!({
            "request": hash(&token), "message": message, "approvers": step.approvers,
            "not_starter": step.not_starter,
        });
        run.chronicle.harness(
            self.place,
            "guardrail",
            "approval_requested",
            Severity::Info,
            &attributes,
        )?;
        Err(Stop::Paused(Pause {
            path: self.place.label(),
            message: message.to_owned(),
            approvers: step.approvers.clone(),
            token,
            refused: None,
        }))
    }

    /// The verdict that the run was resumed with, if it is for this step. It is used once.
    fn verdict(&self) -> Option<Verdict> {
        let history = self.run.history.as_ref()?;
        let mut verdict = self
            .run
            .verdict
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let request = hash(&verdict.as_ref()?.token);
        let asked = history.requests.get(&request)?;
        if *asked == key(self.place) {
            return verdict.take();
        }
        None
    }

    fn decided(&self, consents: bool, request: &str, user: &str) -> Result<Done, Stop> {
        if consents {
            self.say("approval_granted", Severity::Info, request, user)?;
            let mut state = StepState::said(format!("approved by {user}"));
            state.data.insert("approved_by".to_owned(), user.into());
            return Ok(state.into());
        }
        self.say("approval_denied", Severity::Warning, request, user)?;
        Ok(Done {
            state: StepState::failed(format!("denied by {user}")),
            is_final: true,
        })
    }

    fn say(&self, name: &str, severity: Severity, request: &str, user: &str) -> Result<(), Stop> {
        let attributes = json!({ "request": request, "by": user });
        self.run
            .chronicle
            .harness(self.place, "guardrail", name, severity, &attributes)?;
        Ok(())
    }
}

fn may_consent(step: &ApprovalStep, user: &str, starter: &str) -> Result<(), String> {
    may_approve(&step.approvers, step.not_starter, user, starter)
}

/// Whether somebody may consent, or why not.
pub(super) fn may_approve(
    approvers: &[String],
    not_starter: bool,
    user: &str,
    starter: &str,
) -> Result<(), String> {
    if not_starter && user == starter {
        return Err(format!(
            "{user} started the run; somebody else has to approve"
        ));
    }
    if approvers.is_empty() || approvers.iter().any(|approver| approver == user) {
        return Ok(());
    }
    Err(format!(
        "{user} may not approve; {} may",
        approvers.join(", ")
    ))
}

fn new_token() -> Result<String, Stop> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Stop::Broken(EngineError::Environment(format!(
            "no random numbers: {error}"
        )))
    })?;
    Ok(hex::encode(&bytes))
}

/// What a transcript keeps of a token.
pub(super) fn hash(token: &str) -> String {
    hex::encode(&Sha256::digest(token.trim().as_bytes()))
}
