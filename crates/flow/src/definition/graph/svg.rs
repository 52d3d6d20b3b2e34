//! A graph as a picture. It has no scripts, links or styles from elsewhere.

use super::layout::{count, layers};
use super::{Graph, GraphNode, NodeShape, add, short};

const WIDTH: f64 = 180.0;
const HEIGHT: f64 = 48.0;
const BESIDE: f64 = 40.0;
const BELOW: f64 = 56.0;
const EDGE: f64 = 24.0;

pub(super) fn svg(graph: &Graph) -> String {
    let layers = layers(graph);
    let widest = layers.iter().map(Vec::len).max().unwrap_or(1).max(1);
    // Ways back go round on the right.
    let width = EDGE * 2.0 + count(widest) * (WIDTH + BESIDE) + BESIDE;
    let height = EDGE * 2.0 + count(layers.len().max(1)) * (HEIGHT + BELOW) - BELOW + 20.0;
    let mut places = vec![(0.0, 0.0); graph.nodes.len()];
    for (row, nodes) in layers.iter().enumerate() {
        let wide = count(nodes.len()) * (WIDTH + BESIDE) - BESIDE;
        let left = (width - BESIDE - wide) / 2.0;
        for (column, node) in nodes.iter().enumerate() {
            places[*node] = (
                left + count(column) * (WIDTH + BESIDE) + WIDTH / 2.0,
                EDGE + 20.0 + count(row) * (HEIGHT + BELOW) + HEIGHT / 2.0,
            );
        }
    }
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"13\">\n<title>{}</title>\n",
        escaped(&short(&graph.name, 100))
    );
    out.push_str("<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0 8 4 0 8z\" fill=\"#555\"/></marker></defs>\n");
    if let Some(first) = graph.initial {
        let (x, y) = places[first];
        let top = y - HEIGHT / 2.0;
        add(
            &mut out,
            format_args!(
                "<circle cx=\"{x:.0}\" cy=\"{:.0}\" r=\"5\" fill=\"#555\"/>\n<path d=\"M{x:.0} {:.0}V{top:.0}\" stroke=\"#555\" marker-end=\"url(#arrow)\"/>\n",
                top - 20.0,
                top - 15.0
            ),
        );
    }
    for edge in &graph.edges {
        let ((x1, y1), (x2, y2)) = (places[edge.from], places[edge.to]);
        let colour = if edge.failure { "#b3261e" } else { "#555" };
        let dashes = if edge.inner {
            " stroke-dasharray=\"5 4\""
        } else {
            ""
        };
        let (path, (x, y)) = if y2 > y1 {
            let (from, to) = (y1 + HEIGHT / 2.0, y2 - HEIGHT / 2.0);
            let bend = f64::midpoint(from, to);
            (
                format!("M{x1:.0} {from:.0}C{x1:.0} {bend:.0} {x2:.0} {bend:.0} {x2:.0} {to:.0}"),
                (x1 * 0.35 + x2 * 0.65, from * 0.35 + to * 0.65),
            )
        } else {
            let (from, to) = (x1 + WIDTH / 2.0, x2 + WIDTH / 2.0);
            let out = from.max(to) + BESIDE;
            (
                format!("M{from:.0} {y1:.0}C{out:.0} {y1:.0} {out:.0} {y2:.0} {to:.0} {y2:.0}"),
                (out - BESIDE / 4.0, f64::midpoint(y1, y2)),
            )
        };
        add(
            &mut out,
            format_args!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\"{dashes} marker-end=\"url(#arrow)\"/>\n"
            ),
        );
        let label = short(&edge.label, 28);
        if !label.is_empty() {
            add(
                &mut out,
                format_args!(
                    "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{colour}\" stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>\n",
                    escaped(&label)
                ),
            );
        }
    }
    for (node, place) in graph.nodes.iter().zip(&places) {
        draw(&mut out, node, *place);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, node: &GraphNode, (x, y): (f64, f64)) {
    let (left, top) = (x - WIDTH / 2.0, y - HEIGHT / 2.0);
    let (right, bottom) = (x + WIDTH / 2.0, y + HEIGHT / 2.0);
    let style = match node.shape {
        NodeShape::Success => "fill=\"#e8f5ec\" stroke=\"#2a7d46\"",
        NodeShape::Failure => "fill=\"#fbeae9\" stroke=\"#b3261e\"",
        NodeShape::Diamond => "fill=\"#fff6dd\" stroke=\"#8a6d00\"",
        NodeShape::Round => "fill=\"#eaf1fb\" stroke=\"#2f5fa8\"",
        _ => "fill=\"#fafafa\" stroke=\"#555\"",
    };
    let rect = |rx: f64| {
        format!(
            "<rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"{WIDTH:.0}\" height=\"{HEIGHT:.0}\" rx=\"{rx:.0}\" {style}/>"
        )
    };
    let shape = match node.shape {
        NodeShape::Box => rect(2.0),
        NodeShape::Round => rect(12.0),
        NodeShape::Success | NodeShape::Failure => rect(HEIGHT / 2.0),
        NodeShape::Diamond => format!(
            "<path d=\"M{x:.0} {:.0} {:.0} {y:.0} {x:.0} {:.0} {:.0} {y:.0}z\" {style}/>",
            top - 6.0,
            right + 6.0,
            bottom + 6.0,
            left - 6.0
        ),
        NodeShape::Group => format!(
            "<path d=\"M{:.0} {top:.0}H{:.0}L{right:.0} {y:.0} {:.0} {bottom:.0}H{:.0}L{left:.0} {y:.0}z\" {style}/>",
            left + 14.0,
            right - 14.0,
            right - 14.0,
            left + 14.0
        ),
        NodeShape::Call => format!(
            "{}<path d=\"M{:.0} {top:.0}V{bottom:.0}M{:.0} {top:.0}V{bottom:.0}\" stroke=\"#555\"/>",
            rect(0.0),
            left + 8.0,
            right - 8.0
        ),
    };
    add(
        out,
        format_args!(
            "<g>{shape}<text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text><text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#666\">{}</text></g>\n",
            y - 2.0,
            escaped(&short(&node.name, 22)),
            y + 14.0,
            escaped(&short(&node.kind, 26))
        ),
    );
}

/// A text in XML. Characters that XML forbids were removed before.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
        out
    })
}
