//! Filling a template in.

use serde_json::Value;

use super::lex::{Word, lex};
use super::parse::{Kind, Node, Operand, Pipeline, actions, parse};
use super::{Fault, MOST_ITERATIONS, MOST_OUTPUT, ROOTS, Variables, functions, print};
use crate::names::did_you_mean;

pub(super) fn render(nodes: &[Node], variables: &dyn Variables) -> Result<String, Fault> {
    let mut run = Run::new(variables);
    run.nodes(nodes, &Held::Root)?;
    Ok(run.out)
}

pub(super) fn eval(nodes: &[Node], variables: &dyn Variables) -> Result<Value, Fault> {
    match nodes {
        [Node::Action(pipeline)] if pipeline.variables.is_empty() => {
            let mut run = Run::new(variables);
            let held = run.pipeline(pipeline, &Held::Root)?;
            Ok(run.plain(held))
        }
        _ => Ok(Value::String(render(nodes, variables)?)),
    }
}

pub(super) fn fill_root(
    source: &str,
    root: &str,
    variables: &dyn Variables,
) -> Result<Value, Fault> {
    let mut run = Run::new(variables);
    let mut out = String::new();
    let mut from = 0;
    for action in actions(source, root)? {
        out.push_str(&source[from..action.from]);
        from = action.to;
        if !action.control && only_names(&action.pipeline, root) {
            let held = run.pipeline(&action.pipeline, &Held::Root)?;
            let value = run.plain(held);
            if action.from == 0 && action.to == source.len() {
                return Ok(value);
            }
            out.push_str(&print::printed(&value));
            continue;
        }
        let mut at = action.from;
        let mut named = Vec::new();
        operands_of(&action.pipeline, root, &mut named);
        for operand in named {
            let held = run.operand(operand, &Held::Root)?;
            let literal = print::literal(&run.plain(held))
                .ok_or_else(|| Fault::new(operand.at, "a list cannot be written here"))?;
            out.push_str(&source[at..operand.at]);
            out.push_str(&literal);
            at = operand.end;
        }
        out.push_str(&source[at..action.to]);
    }
    out.push_str(&source[from..]);
    Ok(Value::String(out))
}

/// The source with each action filled in that can be; `None` when it has blocks or variables.
pub(super) fn fill_known(source: &str, variables: &dyn Variables) -> Option<String> {
    let tokens = lex(source).ok()?;
    let mut out = String::new();
    let mut open = None;
    for token in &tokens {
        match &token.word {
            Word::Text(text) if open.is_none() => out.push_str(text),
            Word::Open => open = Some(token.at),
            Word::Close => {
                let action = source.get(open.take()?..token.end)?;
                let nodes = parse(action).ok()?;
                let [Node::Action(pipeline)] = nodes.as_slice() else {
                    return None;
                };
                if !pipeline.variables.is_empty() {
                    return None;
                }
                match render(&nodes, variables) {
                    Ok(filled) => out.push_str(&filled),
                    Err(_) => out.push_str(action),
                }
            }
            _ => {}
        }
    }
    Some(out)
}

/// Whether an operand is a path below `root`.
fn is_below(operand: &Operand, root: &str) -> bool {
    match &operand.kind {
        Kind::Dot => operand.fields.first().is_some_and(|field| field == root),
        Kind::Root(name) => name == root,
        _ => false,
    }
}

/// Whether a pipeline names paths below `root`, and no other.
fn only_names(pipeline: &Pipeline, root: &str) -> bool {
    pipeline.variables.is_empty()
        && pipeline
            .commands
            .iter()
            .flatten()
            .all(|operand| match &operand.kind {
                Kind::Constant(_) | Kind::Function(_) => true,
                Kind::Parens(inner) => only_names(inner, root),
                _ => is_below(operand, root),
            })
}

fn operands_of<'p>(pipeline: &'p Pipeline, root: &str, found: &mut Vec<&'p Operand>) {
    for operand in pipeline.commands.iter().flatten() {
        match &operand.kind {
            Kind::Parens(inner) => operands_of(inner, root, found),
            _ if is_below(operand, root) => found.push(operand),
            _ => {}
        }
    }
}

/// A value at work: all variables, which are looked up one by one, or a value.
#[derive(Clone)]
enum Held {
    Root,
    Value(Value),
}

/// How a list of nodes ended.
#[derive(PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
}

struct Run<'v> {
    variables: &'v dyn Variables,
    scope: Vec<(String, Held)>,
    out: String,
    iterations: usize,
}

impl<'v> Run<'v> {
    fn new(variables: &'v dyn Variables) -> Self {
        Self {
            variables,
            scope: Vec::new(),
            out: String::new(),
            iterations: 0,
        }
    }

    fn nodes(&mut self, nodes: &[Node], dot: &Held) -> Result<Flow, Fault> {
        let declared = self.scope.len();
        let mut flow = Flow::On;
        for node in nodes {
            flow = self.node(node, dot)?;
            if flow != Flow::On {
                break;
            }
        }
        self.scope.truncate(declared);
        Ok(flow)
    }

    fn node(&mut self, node: &Node, dot: &Held) -> Result<Flow, Fault> {
        match node {
            Node::Text(text) => self.write(text, 0)?,
            Node::Action(pipeline) => {
                let held = self.pipeline(pipeline, dot)?;
                if pipeline.variables.is_empty() {
                    let value = self.plain(held);
                    self.write(&print::printed(&value), pipeline.at)?;
                }
            }
            Node::If {
                branches,
                otherwise,
            } => return self.branches(branches, otherwise, dot, false),
            Node::With {
                branches,
                otherwise,
            } => return self.branches(branches, otherwise, dot, true),
            Node::Range {
                over,
                body,
                otherwise,
            } => return self.range(over, body, otherwise, dot),
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn branches(
        &mut self,
        branches: &[(Pipeline, Vec<Node>)],
        otherwise: &[Node],
        dot: &Held,
        rebinds: bool,
    ) -> Result<Flow, Fault> {
        let declared = self.scope.len();
        for (condition, body) in branches {
            let held = self.pipeline(condition, dot)?;
            let holds = match &held {
                Held::Root => true,
                Held::Value(value) => functions::truth(value),
            };
            if holds {
                let flow = self.nodes(body, if rebinds { &held } else { dot })?;
                self.scope.truncate(declared);
                return Ok(flow);
            }
        }
        let flow = self.nodes(otherwise, dot)?;
        self.scope.truncate(declared);
        Ok(flow)
    }

    fn range(
        &mut self,
        over: &Pipeline,
        body: &[Node],
        otherwise: &[Node],
        dot: &Held,
    ) -> Result<Flow, Fault> {
        let declared = self.scope.len();
        let held = self.pipeline_value(over, dot)?;
        let pairs: Box<dyn Iterator<Item = (Value, Value)>> = match self.plain(held) {
            Value::Array(items) => Box::new(
                items
                    .into_iter()
                    .enumerate()
                    .map(|(at, item)| (Value::from(at), item)),
            ),
            Value::Object(map) => {
                let mut entries: Vec<(String, Value)> = map.into_iter().collect();
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                Box::new(
                    entries
                        .into_iter()
                        .map(|(key, value)| (Value::String(key), value)),
                )
            }
            Value::Null => Box::new(std::iter::empty()),
            Value::Number(number) if number.is_i64() => {
                let most = number.as_i64().unwrap_or_default();
                Box::new((0..most).map(|at| (Value::from(at), Value::from(at))))
            }
            other => {
                return Err(Fault::new(
                    over.at,
                    format!(
                        "range goes over lists and maps, not over {}",
                        print::kind(&other)
                    ),
                ));
            }
        };
        let mut any = false;
        for (key, item) in pairs {
            any = true;
            self.iterations += 1;
            if self.iterations > MOST_ITERATIONS {
                return Err(Fault::new(
                    over.at,
                    format!("more than {MOST_ITERATIONS} iterations"),
                ));
            }
            match over.variables.as_slice() {
                [value] => self.bind(value, Held::Value(item.clone()), over)?,
                [index, value] => {
                    self.bind(index, Held::Value(key), over)?;
                    self.bind(value, Held::Value(item.clone()), over)?;
                }
                _ => {}
            }
            let flow = self.nodes(body, &Held::Value(item))?;
            self.scope.truncate(declared);
            if flow == Flow::Break {
                break;
            }
        }
        if any {
            Ok(Flow::On)
        } else {
            self.nodes(otherwise, dot)
        }
    }

    fn write(&mut self, text: &str, at: usize) -> Result<(), Fault> {
        if self.out.len() + text.len() > MOST_OUTPUT {
            return Err(Fault::new(
                at,
                format!("the text is longer than {} MiB", MOST_OUTPUT >> 20),
            ));
        }
        self.out.push_str(text);
        Ok(())
    }

    /// A pipeline's value, which its variables take.
    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Held) -> Result<Held, Fault> {
        let held = self.pipeline_value(pipeline, dot)?;
        match pipeline.variables.as_slice() {
            [] => {}
            [name] => self.bind(name, held.clone(), pipeline)?,
            _ => {
                return Err(Fault::new(
                    pipeline.at,
                    "two variables are taken by range only",
                ));
            }
        }
        Ok(held)
    }

    fn pipeline_value(&mut self, pipeline: &Pipeline, dot: &Held) -> Result<Held, Fault> {
        let mut last: Option<Held> = None;
        for command in &pipeline.commands {
            last = Some(self.command(command, dot, last)?);
        }
        last.ok_or_else(|| Fault::new(pipeline.at, "a value is missing here"))
    }

    fn bind(&mut self, name: &str, held: Held, pipeline: &Pipeline) -> Result<(), Fault> {
        if pipeline.assigns {
            let slot = self.scope.iter_mut().rev().find(|(known, _)| known == name);
            match slot {
                Some((_, slot)) => *slot = held,
                None => return Err(undefined(pipeline.at, &format!("${name}"), None)),
            }
        } else {
            self.scope.push((name.to_owned(), held));
        }
        Ok(())
    }

    fn command(
        &mut self,
        command: &[Operand],
        dot: &Held,
        piped: Option<Held>,
    ) -> Result<Held, Fault> {
        let Some((first, arguments)) = command.split_first() else {
            return Err(Fault::new(0, "a value is missing here"));
        };
        let Kind::Function(name) = &first.kind else {
            if let Some(argument) = arguments.first() {
                return Err(Fault::new(
                    argument.at,
                    "only functions take arguments; this is after a value",
                ));
            }
            return self.operand(first, dot);
        };
        self.call(name, first.at, arguments, dot, piped)
    }

    fn call(
        &mut self,
        name: &str,
        at: usize,
        arguments: &[Operand],
        dot: &Held,
        piped: Option<Held>,
    ) -> Result<Held, Fault> {
        // These two stop at the first argument that decides.
        if matches!(name, "and" | "or") {
            let mut last = None;
            for argument in arguments {
                let held = self.operand(argument, dot)?;
                let value = self.plain(held);
                let decided = functions::truth(&value) == (name == "or");
                last = Some(value);
                if decided {
                    break;
                }
            }
            if let Some(piped) = piped
                && last
                    .as_ref()
                    .is_none_or(|value| functions::truth(value) != (name == "or"))
            {
                last = Some(self.plain(piped));
            }
            return last
                .map(Held::Value)
                .ok_or_else(|| Fault::new(at, format!("{name} needs a value")));
        }
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for argument in arguments {
            let held = self.operand(argument, dot)?;
            values.push(self.plain(held));
        }
        if let Some(piped) = piped {
            values.push(self.plain(piped));
        }
        functions::call(name, &values, self.variables)
            .map(Held::Value)
            .map_err(|message| Fault::new(at, format!("{name}: {message}")))
    }

    fn operand(&mut self, operand: &Operand, dot: &Held) -> Result<Held, Fault> {
        let begin = match &operand.kind {
            Kind::Dot => dot.clone(),
            Kind::Variable(name) if name.is_empty() => Held::Root,
            Kind::Variable(name) => self
                .scope
                .iter()
                .rev()
                .find(|(known, _)| known == name)
                .map(|(_, held)| held.clone())
                .ok_or_else(|| {
                    let known = self.scope.iter().map(|(name, _)| name.as_str());
                    undefined(operand.at, &format!("${name}"), did_you_mean(name, known))
                })?,
            Kind::Root(root) => {
                let mut path = vec![root.as_str()];
                path.extend(operand.fields.iter().map(String::as_str));
                return self.look_up(&path, operand.at);
            }
            Kind::Function(name) => return self.call(name, operand.at, &[], dot, None),
            Kind::Constant(value) => Held::Value(value.clone()),
            Kind::Parens(inner) => self.pipeline(inner, dot)?,
        };
        if operand.fields.is_empty() {
            return Ok(begin);
        }
        let path: Vec<&str> = operand.fields.iter().map(String::as_str).collect();
        match begin {
            Held::Root => self.look_up(&path, operand.at),
            Held::Value(value) => walk(value, &path)
                .map(Held::Value)
                .map_err(|(near, missing)| undefined(operand.at, &missing, near)),
        }
    }

    /// A path from the variables.
    fn look_up(&self, path: &[&str], at: usize) -> Result<Held, Fault> {
        if let Some(value) = self.variables.value(path) {
            return Ok(Held::Value(value));
        }
        // Variables need not look into values: the longest part that is known is walked here.
        for known in (2..path.len()).rev() {
            if let Some(value) = self.variables.value(&path[..known])
                && let Ok(value) = walk(value, &path[known..])
            {
                return Ok(Held::Value(value));
            }
        }
        Err(undefined(at, &path.join("."), self.near(path)))
    }

    /// What a path that is not defined may have meant.
    fn near(&self, path: &[&str]) -> Option<String> {
        let root = *path.first()?;
        if !ROOTS.contains(&root) {
            return did_you_mean(root, ROOTS);
        }
        for length in 1..path.len() {
            if self.variables.value(&path[..=length]).is_none()
                && let Some(Value::Object(map)) = self.variables.value(&path[..length])
            {
                return did_you_mean(path[length], map.keys().map(String::as_str));
            }
        }
        None
    }

    /// The value itself. All variables become an object.
    fn plain(&self, held: Held) -> Value {
        match held {
            Held::Value(value) => value,
            Held::Root => Value::Object(
                ROOTS
                    .iter()
                    .filter_map(|root| Some(((*root).to_owned(), self.variables.value(&[root])?)))
                    .collect(),
            ),
        }
    }
}

fn undefined(at: usize, name: &str, hint: Option<String>) -> Fault {
    Fault {
        hint,
        ..Fault::new(at, format!("undefined variable: {name}"))
    }
}

/// Goes from a value along names; on a miss what may have been meant, and the path that is missing.
fn walk(mut value: Value, path: &[&str]) -> Result<Value, (Option<String>, String)> {
    for (depth, name) in path.iter().enumerate() {
        let next = match &mut value {
            Value::Object(map) => map.get_mut(*name).map(Value::take),
            _ => None,
        };
        let Some(next) = next else {
            let near = match &value {
                Value::Object(map) => did_you_mean(name, map.keys().map(String::as_str)),
                _ => None,
            };
            return Err((near, path[..=depth].join(".")));
        };
        value = next;
    }
    Ok(value)
}
