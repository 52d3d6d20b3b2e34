//! The table of tool calls: a row for each, joined with its result.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use quipu_model::{
    Event, Header, Json, ModelCallId, Notes, Place, RunId, Status, SubagentId, Timestamp, ToolCall,
    ToolCallId, ToolResult,
};

use super::column::{Kind, Required, Spec};
use super::events::columns;
use super::table::Table;
use super::values;
use crate::loss::Loss;

columns! {
    RunId = "run_id", Word, Yes;
    CallId = "call_id", Text, Yes;
    Tool = "tool", Word, Yes;
    Input = "input", Text, No;
    Output = "output", Text, No;
    OutputIsJson = "output_is_json", Flag, No;
    Status = "status", Word, No;
    Error = "error", Text, No;
    Started = "started_at", Time, No;
    Ended = "ended_at", Time, No;
    Duration = "duration_ms", Count, No;
    CallSeq = "call_seq", Count, No;
    ResultSeq = "result_seq", Count, No;
    Model = "model", Word, No;
    ModelCall = "model_call", Word, No;
    Agent = "agent", Word, No;
    Subagent = "subagent_id", Word, No;
    Path = "path", Word, Yes;
    Iteration = "iteration", Count, Yes;
    Child = "child_run_id", Word, No;
    Superseded = "is_superseded", Flag, Yes;
}

/// How many calls may wait for their results, and how many bytes they may hold.
const MAX_OPEN: usize = 4_096;
const MAX_BYTES: usize = 16 << 20;

/// A call under way.
#[derive(Debug)]
struct Open {
    seq: u64,
    id: ToolCallId,
    name: String,
    input: Option<Json>,
    at: Option<Timestamp>,
    place: Place,
    model: Option<String>,
    model_call: Option<ModelCallId>,
    subagent: Option<SubagentId>,
    child: Option<RunId>,
    superseded: bool,
}

impl Open {
    fn weight(&self) -> usize {
        let input = self.input.as_ref().map_or(0, |input| input.get().len());
        self.id.len() + self.name.len() + input + 512
    }
}

/// Joins calls with their results.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: BTreeMap<u64, Open>,
    by_id: HashMap<ToolCallId, u64>,
    bytes: usize,
}

/// What a row is made of: a call, its result, or both.
#[derive(Default)]
struct Joined<'a> {
    call: Option<&'a Open>,
    result: Option<(&'a Event, &'a ToolResult)>,
}

impl Calls {
    pub(super) fn called<W: Write + Send>(
        &mut self,
        table: &mut Table<W>,
        header: &Header,
        event: &Event,
        call: &ToolCall,
    ) -> io::Result<()> {
        let notes = &event.annotations;
        let open = Open {
            seq: event.seq,
            id: call.call_id.clone(),
            name: call.name.clone(),
            input: call.input.clone(),
            at: (!notes.flags.undated).then_some(event.timestamp),
            place: event.place.clone(),
            model: notes.model.clone(),
            model_call: notes.model_call.clone(),
            subagent: notes.subagent_id.clone(),
            child: notes.child.clone(),
            superseded: notes.flags.superseded,
        };
        self.bytes += open.weight();
        if !open.id.is_empty() {
            self.by_id.insert(open.id.clone(), open.seq);
        }
        self.open.insert(open.seq, open);
        while self.open.len() > MAX_OPEN || self.bytes > MAX_BYTES {
            self.give_up(table, header)?;
        }
        Ok(())
    }

    pub(super) fn answered<W: Write + Send>(
        &mut self,
        table: &mut Table<W>,
        header: &Header,
        event: &Event,
        result: &ToolResult,
        loss: &mut Loss,
    ) -> io::Result<()> {
        let place = if result.call_id.is_empty() {
            let mut latest = self.open.values().rev();
            let is = |it: &&Open| it.id.is_empty() && it.name == result.name;
            latest.find(is).map(|it| it.seq)
        } else {
            self.by_id.get(&result.call_id).copied()
        };
        let call = place.and_then(|place| self.remove(place));
        if call.is_none() {
            loss.inferred("calls of which only the result is there", event.seq);
        }
        let joined = Joined {
            call: call.as_ref(),
            result: Some((event, result)),
        };
        joined.write(table, header)
    }

    /// Writes the call that has waited the longest, without a result.
    fn give_up<W: Write + Send>(
        &mut self,
        table: &mut Table<W>,
        header: &Header,
    ) -> io::Result<bool> {
        let Some(place) = self.open.first_key_value().map(|(place, _)| *place) else {
            return Ok(false);
        };
        let call = self.remove(place);
        let joined = Joined {
            call: call.as_ref(),
            result: None,
        };
        joined.write(table, header)?;
        Ok(true)
    }

    /// Writes the calls that have no result.
    pub(super) fn end<W: Write + Send>(
        &mut self,
        table: &mut Table<W>,
        header: &Header,
    ) -> io::Result<()> {
        while self.give_up(table, header)? {}
        *self = Self::default();
        Ok(())
    }

    fn remove(&mut self, place: u64) -> Option<Open> {
        let call = self.open.remove(&place)?;
        self.bytes -= call.weight();
        if self.by_id.get(&call.id) == Some(&place) {
            self.by_id.remove(&call.id);
        }
        Some(call)
    }
}

impl Joined<'_> {
    fn write<W: Write + Send>(&self, table: &mut Table<W>, header: &Header) -> io::Result<()> {
        let result = self.result.map(|(_, result)| result);
        table.text(Col::RunId as usize, header.run_id.as_str());
        table.text_if(Col::Agent as usize, header.agent());
        let id = self.call.map(|call| call.id.as_str());
        let id = id.or(result.map(|it| it.call_id.as_str()));
        table.text(Col::CallId as usize, id.unwrap_or_default());
        let called = self.call.map(|call| call.name.as_str());
        let named = result.map(|it| it.name.as_str());
        let name = called.filter(|name| !name.is_empty()).or(named);
        table.text(Col::Tool as usize, name.unwrap_or_default());
        let input = self.call.and_then(|call| call.input.as_ref());
        let input = input.or(result.and_then(|it| it.input.as_ref()));
        table.text_if(Col::Input as usize, input.map(Json::get));
        if let Some(output) = result.and_then(|it| it.output.as_ref()) {
            table.flag(Col::OutputIsJson as usize, values::is_json(output));
            // Half surrogate pairs are counted where the event is written.
            table.text_with(Col::Output as usize, |to| {
                values::plain(output, to);
            });
        }
        table.text_if(
            Col::Error as usize,
            result.and_then(|it| it.error.as_deref()),
        );
        table.text_if(Col::Status as usize, self.status().map(Status::as_str));
        self.times(table);
        self.where_and_who(table);
        table.end_row()
    }

    fn result_notes(&self) -> Option<&Notes> {
        self.result.map(|(event, _)| &*event.annotations)
    }

    /// How it ended, where that is told or follows from what came back.
    fn status(&self) -> Option<Status> {
        let (event, result) = self.result?;
        let follows = if result.error.is_some() {
            Status::Error
        } else {
            Status::Ok
        };
        Some(event.annotations.status.unwrap_or(follows))
    }

    fn times<W: Write + Send>(&self, table: &mut Table<W>) {
        let started = self.call.and_then(|call| call.at);
        let ended = self.result.and_then(|(event, _)| {
            let dated = !event.annotations.flags.undated;
            dated.then_some(event.timestamp)
        });
        let told = self.result_notes().and_then(|notes| notes.duration_ms);
        let between = started
            .zip(ended)
            .and_then(|(from, to)| u64::try_from(to.as_millisecond() - from.as_millisecond()).ok());
        if let Some(at) = started {
            table.time(Col::Started as usize, at);
        }
        if let Some(at) = ended {
            table.time(Col::Ended as usize, at);
        }
        table.count_if(Col::Duration as usize, told.or(between));
        table.count_if(Col::CallSeq as usize, self.call.map(|call| call.seq));
        let seq = self.result.map(|(event, _)| event.seq);
        table.count_if(Col::ResultSeq as usize, seq);
    }

    fn where_and_who<W: Write + Send>(&self, table: &mut Table<W>) {
        let notes = self.result_notes();
        let model = self.call.and_then(|call| call.model.as_deref());
        let model = model.or(notes.and_then(|notes| notes.model.as_deref()));
        table.text_if(Col::Model as usize, model);
        let call = self.call.and_then(|call| call.model_call.as_deref());
        let call = call.or(notes.and_then(|notes| notes.model_call.as_deref()));
        table.text_if(Col::ModelCall as usize, call);
        let subagent = self.call.and_then(|call| call.subagent.as_deref());
        let subagent = subagent.or(notes.and_then(|notes| notes.subagent_id.as_deref()));
        table.text_if(Col::Subagent as usize, subagent);
        let place = self.call.map(|call| &call.place);
        if let Some(place) = place.or(self.result.map(|(event, _)| &event.place)) {
            table.text(Col::Path as usize, &place.path);
            table.count(Col::Iteration as usize, place.iteration());
        }
        let child = self.call.and_then(|call| call.child.as_ref());
        let child = child.or(notes.and_then(|notes| notes.child.as_ref()));
        table.text_if(Col::Child as usize, child.map(RunId::as_str));
        let superseded = self.call.is_some_and(|call| call.superseded)
            || notes.is_some_and(|notes| notes.flags.superseded);
        table.flag(Col::Superseded as usize, superseded);
    }
}
