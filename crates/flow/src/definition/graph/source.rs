//! Graphs for other programs to draw. Nodes are numbered, so that a name is never part of the syntax.

use super::{Graph, NodeShape, add, short};

pub(super) fn mermaid(graph: &Graph) -> String {
    let mut out = String::from("flowchart TD\n");
    for (number, node) in graph.nodes.iter().enumerate() {
        let (open, close) = match node.shape {
            NodeShape::Box => ("[", "]"),
            NodeShape::Round => ("(", ")"),
            NodeShape::Diamond => ("{", "}"),
            NodeShape::Group => ("{{", "}}"),
            NodeShape::Call => ("[[", "]]"),
            NodeShape::Success | NodeShape::Failure => ("([", "])"),
        };
        let name = in_mermaid(&short(&node.name, 60));
        let kind = in_mermaid(&short(&node.kind, 40));
        line(
            &mut out,
            format_args!("  n{number}{open}\"{name}<br/><small>{kind}</small>\"{close}"),
        );
    }
    if let Some(first) = graph.initial {
        line(&mut out, format_args!("  start(( )) --> n{first}"));
    }
    for edge in &graph.edges {
        let arrow = if edge.inner { "-.->" } else { "-->" };
        let label = match short(&edge.label, 60) {
            label if label.is_empty() => String::new(),
            label => format!("|\"{}\"|", in_mermaid(&label)),
        };
        line(
            &mut out,
            format_args!("  n{} {arrow}{label} n{}", edge.from, edge.to),
        );
    }
    for (shape, style) in [
        (NodeShape::Success, "stroke:#2a7d46"),
        (NodeShape::Failure, "stroke:#b3261e"),
    ] {
        for (number, node) in graph.nodes.iter().enumerate() {
            if node.shape == shape {
                line(&mut out, format_args!("  style n{number} {style}"));
            }
        }
    }
    out
}

/// A text inside quotes. Mermaid has entities with `#`; everything with a meaning in it or in HTML becomes one.
fn in_mermaid(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        if c.is_alphanumeric() || " _-.,:!?'=/+*()".contains(c) || !c.is_ascii() {
            out.push(c);
        } else {
            add(&mut out, format_args!("#{};", u32::from(c)));
        }
        out
    })
}

pub(super) fn dot(graph: &Graph) -> String {
    let mut out = String::new();
    line(
        &mut out,
        format_args!("digraph \"{}\" {{", in_dot(&short(&graph.name, 100))),
    );
    out.push_str(
        "  node [fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
    );
    for (number, node) in graph.nodes.iter().enumerate() {
        let style = match node.shape {
            NodeShape::Box => "shape=box",
            NodeShape::Round => "shape=box, style=rounded",
            NodeShape::Diamond => "shape=diamond",
            NodeShape::Group => "shape=hexagon",
            NodeShape::Call => "shape=component",
            NodeShape::Success => "shape=oval, color=\"#2a7d46\"",
            NodeShape::Failure => "shape=oval, color=\"#b3261e\"",
        };
        line(
            &mut out,
            format_args!(
                "  n{number} [label=\"{}\\n{}\", {style}];",
                in_dot(&short(&node.name, 60)),
                in_dot(&short(&node.kind, 40))
            ),
        );
    }
    if let Some(first) = graph.initial {
        line(
            &mut out,
            format_args!("  start [shape=point];\n  start -> n{first};"),
        );
    }
    for edge in &graph.edges {
        let mut attributes = format!("label=\"{}\"", in_dot(&short(&edge.label, 60)));
        if edge.inner {
            attributes.push_str(", style=dashed");
        }
        if edge.failure {
            attributes.push_str(", color=\"#b3261e\"");
        }
        line(
            &mut out,
            format_args!("  n{} -> n{} [{attributes}];", edge.from, edge.to),
        );
    }
    out.push_str("}\n");
    out
}

fn in_dot(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    add(out, text);
    out.push('\n');
}
