//! A workflow as a drawing: Mermaid, dot, SVG, or text.

use super::ways::{Why, named};
use super::{Action, OnFailure, Step, Workflow};

mod layout;
mod source;
mod svg;
mod text;

#[cfg(test)]
mod tests;

/// How a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For Markdown pages.
    Mermaid,
    /// For Graphviz.
    Dot,
    /// A picture.
    Svg,
    /// For a terminal.
    Text,
}

impl Format {
    /// The names of the formats.
    pub const NAMES: [&'static str; 4] = ["mermaid", "dot", "svg", "text"];
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "mermaid" => Ok(Self::Mermaid),
            "dot" => Ok(Self::Dot),
            "svg" => Ok(Self::Svg),
            "text" => Ok(Self::Text),
            other => Err(format!(
                "{other:?} is not a format of graphs; there are {}",
                Self::NAMES.join(", ")
            )),
        }
    }
}

/// Writes a workflow as a graph.
pub fn render(workflow: &Workflow, format: Format) -> String {
    let graph = Graph::of(workflow);
    match format {
        Format::Mermaid => source::mermaid(&graph),
        Format::Dot => source::dot(&graph),
        Format::Svg => svg::svg(&graph),
        Format::Text => text::text(&graph),
    }
}

/// Steps and the ways between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The workflow's name.
    pub name: String,
    /// The steps, and an end for each step that ends the run when it fails.
    pub nodes: Vec<GraphNode>,
    /// The ways, by the numbers of nodes.
    pub edges: Vec<GraphEdge>,
    /// The number of the first step.
    pub initial: Option<usize>,
}

/// A node of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    /// The step's name.
    pub name: String,
    /// The kind of step in a word or two.
    pub kind: String,
    /// How it is drawn.
    pub shape: NodeShape,
}

/// How a node is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeShape {
    /// A step that does something.
    Box,
    /// An agent.
    Round,
    /// A person's consent.
    Diamond,
    /// A loop or parallel step, which holds others.
    Group,
    /// Another workflow.
    Call,
    /// The run ends well.
    Success,
    /// The run ends badly.
    Failure,
}

/// A way of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphEdge {
    /// Where it begins.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// When it is taken; empty when always.
    pub label: String,
    /// Whether it leads into a loop or a branch.
    pub inner: bool,
    /// Whether it is taken on a failure.
    pub failure: bool,
}

impl Graph {
    /// The graph of a workflow. Ways to steps that do not exist are left out.
    pub fn of(workflow: &Workflow) -> Self {
        let mut nodes: Vec<GraphNode> = workflow.steps.values().map(node).collect();
        let mut edges = Vec::new();
        for (from, step) in workflow.steps.values().enumerate() {
            for (why, name) in named(step) {
                let Some(to) = workflow.steps.get_index_of(&name.text) else {
                    continue;
                };
                let label = match why {
                    Why::Success | Why::When(None) => String::new(),
                    Why::Failure => "fails".to_owned(),
                    Why::When(Some(when)) => when.to_owned(),
                    Why::Branch => "branch".to_owned(),
                    Why::Body => "each".to_owned(),
                    Why::Complete => "done".to_owned(),
                };
                edges.push(GraphEdge {
                    from,
                    to,
                    label,
                    inner: matches!(why, Why::Branch | Why::Body),
                    failure: why == Why::Failure,
                });
            }
            if let Some(OnFailure::Inline { status, .. }) = &step.on_failure {
                nodes.push(GraphNode {
                    name: format!("exit {status}"),
                    kind: "failure".to_owned(),
                    shape: NodeShape::Failure,
                });
                edges.push(GraphEdge {
                    from,
                    to: nodes.len() - 1,
                    label: "fails".to_owned(),
                    inner: false,
                    failure: true,
                });
            }
        }
        Self {
            name: workflow.name.clone(),
            nodes,
            edges,
            initial: workflow.steps.get_index_of(&workflow.initial.text),
        }
    }
}

fn node(step: &Step) -> GraphNode {
    let (kind, shape) = match &step.action {
        Action::Agent(agent) => (agent.provider.text.clone(), NodeShape::Round),
        Action::Command(_) => ("command".to_owned(), NodeShape::Box),
        Action::Operation(operation) => (operation.operation.text.clone(), NodeShape::Box),
        Action::Terminal(end) if end.failure => ("failure".to_owned(), NodeShape::Failure),
        Action::Terminal(_) => ("success".to_owned(), NodeShape::Success),
        Action::Parallel(_) => ("parallel".to_owned(), NodeShape::Group),
        Action::ForEach(_) => ("for each".to_owned(), NodeShape::Group),
        Action::While(_) => ("while".to_owned(), NodeShape::Group),
        Action::CallWorkflow(call) => (format!("calls {}", call.workflow.text), NodeShape::Call),
        Action::Approval(_) => ("approval".to_owned(), NodeShape::Diamond),
        Action::Set(_) => ("set".to_owned(), NodeShape::Box),
        Action::Wait(_) => ("wait".to_owned(), NodeShape::Box),
        Action::Custom(custom) => (custom.kind.clone(), NodeShape::Box),
    };
    GraphNode {
        name: step.name.clone(),
        kind,
        shape,
    }
}

/// A label on one line, no longer than a drawing bears.
fn short(text: &str, most: usize) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let line = line.trim();
    if line.chars().count() <= most {
        return line.to_owned();
    }
    let mut cut: String = line.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Adds a text to a drawing.
fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    use std::fmt::Write as _;
    // Writing to a string cannot fail.
    out.write_fmt(text).ok();
}
