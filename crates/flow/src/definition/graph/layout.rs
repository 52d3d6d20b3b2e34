//! Layers: each node below those that lead to it, ways back left aside.

use super::Graph;

/// The nodes of each layer, from the top, in the order in which they are drawn.
pub(super) fn layers(graph: &Graph) -> Vec<Vec<usize>> {
    let (order, back) = walk(graph);
    let mut layer = vec![0_usize; graph.nodes.len()];
    let mut ways: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for (number, edge) in graph.edges.iter().enumerate() {
        if !back[number] {
            ways[edge.from].push(edge.to);
        }
    }
    // Each node comes after all that lead to it, so one pass settles every layer.
    for &node in &order {
        for &next in &ways[node] {
            layer[next] = layer[next].max(layer[node] + 1);
        }
    }
    let deepest = layer.iter().max().map_or(0, |deepest| deepest + 1);
    let mut layers = vec![Vec::new(); deepest];
    for &node in &order {
        layers[layer[node]].push(node);
    }
    untangle(graph, &mut layers, &layer);
    layers
}

/// The nodes so that each comes after those that lead to it, and which edges lead back.
fn walk(graph: &Graph) -> (Vec<usize>, Vec<bool>) {
    let mut ways: Vec<Vec<(usize, usize)>> = vec![Vec::new(); graph.nodes.len()];
    for (number, edge) in graph.edges.iter().enumerate() {
        ways[edge.from].push((number, edge.to));
    }
    // The last way is walked first: what is done last comes first.
    for ways in &mut ways {
        ways.reverse();
    }
    let mut back = vec![false; graph.edges.len()];
    // 0: not seen, 1: on the way down, 2: done.
    let mut state = vec![0_u8; graph.nodes.len()];
    let mut done = Vec::with_capacity(graph.nodes.len());
    for first in graph.initial.into_iter().chain(0..graph.nodes.len()) {
        if state[first] != 0 {
            continue;
        }
        state[first] = 1;
        let mut stack = vec![(first, 0)];
        while let Some((node, way)) = stack.pop() {
            let Some(&(number, to)) = ways[node].get(way) else {
                state[node] = 2;
                done.push(node);
                continue;
            };
            stack.push((node, way + 1));
            match state[to] {
                0 => {
                    state[to] = 1;
                    stack.push((to, 0));
                }
                1 => back[number] = true,
                _ => {}
            }
        }
    }
    done.reverse();
    (done, back)
}

/// Puts nodes near the middle of those they hang from, so that fewer ways cross.
fn untangle(graph: &Graph, layers: &mut [Vec<usize>], layer: &[usize]) {
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        if layer[edge.from] < layer[edge.to] {
            above[edge.to].push(edge.from);
        }
    }
    let mut place = vec![0.0_f64; graph.nodes.len()];
    for nodes in layers.iter_mut() {
        let middle = |node: &usize| -> f64 {
            let parents = &above[*node];
            if parents.is_empty() {
                return 0.5;
            }
            let sum: f64 = parents.iter().map(|parent| place[*parent]).sum();
            sum / count(parents.len())
        };
        nodes.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
        let width = count(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            place[*node] = (count(at) + 0.5) / width;
        }
    }
}

/// A number of nodes for arithmetic on places.
pub(super) fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
