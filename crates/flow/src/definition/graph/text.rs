//! A graph for a terminal: each step once, from the top, with the ways that lead from it.

use super::layout::layers;
use super::{Graph, NodeShape, add, short};

pub(super) fn text(graph: &Graph) -> String {
    let mut out = format!("{}\n", short(&graph.name, 100));
    let mut ways: Vec<Vec<&super::GraphEdge>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        ways[edge.from].push(edge);
    }
    for number in layers(graph).into_iter().flatten() {
        let node = &graph.nodes[number];
        let sign = match node.shape {
            NodeShape::Box => "▪",
            NodeShape::Round => "●",
            NodeShape::Diamond => "◆",
            NodeShape::Group => "⬡",
            NodeShape::Call => "▣",
            NodeShape::Success => "✔",
            NodeShape::Failure => "✘",
        };
        let first = if graph.initial == Some(number) {
            " ← begins here"
        } else {
            ""
        };
        add(
            &mut out,
            format_args!(
                "{sign} {} ({}){first}\n",
                short(&node.name, 60),
                short(&node.kind, 40)
            ),
        );
        let count = ways[number].len();
        for (at, edge) in ways[number].iter().enumerate() {
            let corner = if at + 1 == count { "└" } else { "├" };
            let label = match short(&edge.label, 60) {
                label if label.is_empty() => String::new(),
                label => format!(" {label}"),
            };
            let arrow = if edge.inner { "┄" } else { "─" };
            add(
                &mut out,
                format_args!(
                    "  {corner}{arrow}{label} → {}\n",
                    short(&graph.nodes[edge.to].name, 60)
                ),
            );
        }
    }
    out
}
