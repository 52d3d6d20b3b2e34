//! Reading the actions of a template into a tree.

use serde_json::Value;

use super::lex::{Token, Word, lex};
use super::{Fault, MOST_DEPTH, ROOTS, functions};
use crate::names::did_you_mean;

/// A part of a template.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Text(String),
    Action(Pipeline),
    If {
        branches: Vec<(Pipeline, Vec<Node>)>,
        otherwise: Vec<Node>,
    },
    With {
        branches: Vec<(Pipeline, Vec<Node>)>,
        otherwise: Vec<Node>,
    },
    Range {
        over: Pipeline,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Break,
    Continue,
}

/// Commands with `|` between them, and the variables that take the value.
#[derive(Debug, Clone)]
pub(super) struct Pipeline {
    pub(super) at: usize,
    pub(super) variables: Vec<String>,
    /// Whether the variables exist already (`=`), or begin here (`:=`).
    pub(super) assigns: bool,
    pub(super) commands: Vec<Vec<Operand>>,
}

/// One word of a command.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
    /// The names after it, each with a dot before.
    pub(super) fields: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// `.`, the item in a `range` or `with`, else all variables.
    Dot,
    /// `$name`; `$` is all variables.
    Variable(String),
    /// A root without its dot: `inputs.x`.
    Root(String),
    /// A function.
    Function(String),
    /// A constant.
    Constant(Value),
    /// A pipeline in parentheses.
    Parens(Box<Pipeline>),
}

/// A path that a template names: `states`, `build`, `Output`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Its parts.
    pub path: Vec<String>,
}

pub(super) fn parse(source: &str) -> Result<Vec<Node>, Fault> {
    let mut parser = Parser {
        tokens: &lex(source)?,
        position: 0,
        last: 0,
        loops: 0,
        roots: &ROOTS,
    };
    let (nodes, end) = parser.nodes(0)?;
    match end {
        Some(end) => Err(Fault::new(
            end.at,
            format!("{{{{{}}}}} belongs to no if, range or with", end.word),
        )),
        None => Ok(nodes),
    }
}

/// Reads the actions one by one, without putting blocks together: for each its source range, whether a control word
/// begins it, and its pipeline where it has one. `root` is one more name that paths may begin with.
pub(super) fn actions(source: &str, root: &str) -> Result<Vec<LooseAction>, Fault> {
    let tokens = lex(source)?;
    let mut roots: Vec<&str> = ROOTS.to_vec();
    roots.push(root);
    let mut found = Vec::new();
    let mut rest = &tokens[..];
    while let Some(open) = rest.iter().position(|token| token.word == Word::Open) {
        let close = rest[open..]
            .iter()
            .position(|token| token.word == Word::Close)
            .map_or(rest.len(), |at| open + at);
        let inner = &rest[open + 1..close];
        let control = matches!(inner.first(), Some(Token { word: Word::Name(name), .. })
            if CONTROL.contains(&name.as_str()));
        let names_root = inner.iter().any(
            |token| matches!(&token.word, Word::Name(name) | Word::Field(name) if name == root),
        );
        let mut words = inner;
        while let Some(Token {
            word: Word::Name(name),
            ..
        }) = words.first()
            && CONTROL.contains(&name.as_str())
        {
            words = &words[1..];
        }
        if names_root && let (Some(first), Some(last)) = (rest.get(open), rest.get(close)) {
            let mut parser = Parser {
                tokens: words,
                position: 0,
                last: first.at,
                loops: 0,
                roots: &roots,
            };
            let pipeline = parser.pipeline(0)?;
            found.push(LooseAction {
                from: first.at,
                to: last.end,
                control,
                pipeline,
            });
        }
        rest = &rest[(close + 1).min(rest.len())..];
    }
    Ok(found)
}

/// An action on its own.
pub(super) struct LooseAction {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) control: bool,
    pub(super) pipeline: Pipeline,
}

const CONTROL: [&str; 10] = [
    "if", "else", "end", "range", "with", "break", "continue", "define", "template", "block",
];

/// A control word that ends a list of nodes.
struct End {
    word: &'static str,
    at: usize,
}

struct Parser<'r> {
    tokens: &'r [Token],
    position: usize,
    last: usize,
    loops: usize,
    roots: &'r [&'r str],
}

impl Parser<'_> {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.position)?;
        self.position += 1;
        self.last = token.end;
        Some(token.clone())
    }

    fn peek(&self) -> Option<&Word> {
        self.tokens.get(self.position).map(|token| &token.word)
    }

    fn here(&self) -> usize {
        self.tokens
            .get(self.position)
            .map_or(self.last, |token| token.at)
    }

    fn expect_close(&mut self) -> Result<(), Fault> {
        let at = self.here();
        match self.next() {
            Some(Token {
                word: Word::Close, ..
            }) => Ok(()),
            _ => Err(Fault::new(at, "}} was expected here")),
        }
    }

    /// Nodes up to the end, or to an `else` or `end`, which is taken with the words up to it but not after it.
    fn nodes(&mut self, depth: usize) -> Result<(Vec<Node>, Option<End>), Fault> {
        let mut nodes = Vec::new();
        loop {
            let Some(token) = self.next() else {
                return Ok((nodes, None));
            };
            let at = token.at;
            if depth > MOST_DEPTH {
                return Err(Fault::new(
                    at,
                    format!("blocks are nested deeper than {MOST_DEPTH}"),
                ));
            }
            if let Word::Text(text) = token.word {
                nodes.push(Node::Text(text));
                continue;
            }
            let control = match self.peek() {
                Some(Word::Name(name)) => CONTROL.iter().find(|word| *word == name).copied(),
                _ => None,
            };
            let Some(control) = control else {
                nodes.push(Node::Action(self.pipeline(0)?));
                self.expect_close()?;
                continue;
            };
            self.next();
            match control {
                "else" | "end" => return Ok((nodes, Some(End { word: control, at }))),
                "if" => {
                    let (branches, otherwise) = self.branches("if", at, depth)?;
                    nodes.push(Node::If {
                        branches,
                        otherwise,
                    });
                }
                "with" => {
                    let (branches, otherwise) = self.branches("with", at, depth)?;
                    nodes.push(Node::With {
                        branches,
                        otherwise,
                    });
                }
                "range" => nodes.push(self.range(at, depth)?),
                "break" | "continue" => {
                    if self.loops == 0 {
                        return Err(Fault::new(at, format!("{control} belongs inside a range")));
                    }
                    self.expect_close()?;
                    nodes.push(if control == "break" {
                        Node::Break
                    } else {
                        Node::Continue
                    });
                }
                _ => {
                    return Err(Fault::new(
                        at,
                        format!("{control} is not available in workflow files"),
                    ));
                }
            }
        }
    }

    #[allow(clippy::type_complexity)]
    fn branches(
        &mut self,
        word: &str,
        at: usize,
        depth: usize,
    ) -> Result<(Vec<(Pipeline, Vec<Node>)>, Vec<Node>), Fault> {
        let mut branches = Vec::new();
        loop {
            let condition = self.pipeline(0)?;
            self.expect_close()?;
            let (body, end) = self.nodes(depth + 1)?;
            branches.push((condition, body));
            match end {
                Some(End { word: "end", .. }) => {
                    self.expect_close()?;
                    return Ok((branches, Vec::new()));
                }
                Some(_) => {
                    if matches!(self.peek(), Some(Word::Name(name)) if name == word) {
                        self.next();
                        continue;
                    }
                    self.expect_close()?;
                    let otherwise = self.closed(word, at, depth)?;
                    return Ok((branches, otherwise));
                }
                None => return Err(Fault::new(at, format!("this {word} has no {{{{end}}}}"))),
            }
        }
    }

    fn closed(&mut self, word: &str, at: usize, depth: usize) -> Result<Vec<Node>, Fault> {
        let (nodes, end) = self.nodes(depth + 1)?;
        match end {
            Some(End { word: "end", .. }) => {
                self.expect_close()?;
                Ok(nodes)
            }
            Some(end) => Err(Fault::new(
                end.at,
                format!("this {word} has an else already"),
            )),
            None => Err(Fault::new(at, format!("this {word} has no {{{{end}}}}"))),
        }
    }

    fn range(&mut self, at: usize, depth: usize) -> Result<Node, Fault> {
        let over = self.pipeline(0)?;
        self.expect_close()?;
        self.loops += 1;
        let (body, end) = self.nodes(depth + 1)?;
        self.loops -= 1;
        let otherwise = match end {
            Some(End { word: "end", .. }) => {
                self.expect_close()?;
                Vec::new()
            }
            Some(_) => {
                self.expect_close()?;
                self.closed("range", at, depth)?
            }
            None => return Err(Fault::new(at, "this range has no {{end}}")),
        };
        Ok(Node::Range {
            over,
            body,
            otherwise,
        })
    }

    fn pipeline(&mut self, depth: usize) -> Result<Pipeline, Fault> {
        let at = self.here();
        if depth > MOST_DEPTH {
            return Err(Fault::new(
                at,
                format!("parentheses are nested deeper than {MOST_DEPTH}"),
            ));
        }
        let (variables, assigns) = self.declaration()?;
        let mut commands = Vec::new();
        loop {
            commands.push(self.command(depth)?);
            if self.peek() == Some(&Word::Pipe) {
                self.next();
            } else {
                break;
            }
        }
        for command in commands.iter().skip(1) {
            if !matches!(command.first(), Some(Operand { kind: Kind::Function(_), fields, .. }) if fields.is_empty())
            {
                let at = command.first().map_or(at, |operand| operand.at);
                return Err(Fault::new(at, "a function must come after |"));
            }
        }
        Ok(Pipeline {
            at,
            variables,
            assigns,
            commands,
        })
    }

    /// `$x :=`, `$x =` or `$i, $x :=`, where they begin a pipeline.
    fn declaration(&mut self) -> Result<(Vec<String>, bool), Fault> {
        let mut ahead = self.tokens[self.position..].iter().map(|token| &token.word);
        let mut names = Vec::new();
        loop {
            match ahead.next() {
                Some(Word::Variable(name)) if names.len() < 2 => names.push(name.clone()),
                _ => return Ok((Vec::new(), false)),
            }
            let assigns = match ahead.next() {
                Some(Word::Comma) => continue,
                Some(Word::Declare) => false,
                Some(Word::Assign) => true,
                _ => return Ok((Vec::new(), false)),
            };
            if names.iter().any(String::is_empty) {
                return Err(Fault::new(self.here(), "$ itself cannot be assigned"));
            }
            self.position += names.len() * 2;
            return Ok((names, assigns));
        }
    }

    fn command(&mut self, depth: usize) -> Result<Vec<Operand>, Fault> {
        let mut operands: Vec<Operand> = Vec::new();
        loop {
            let at = self.here();
            if matches!(
                self.peek(),
                None | Some(Word::Close | Word::Pipe | Word::CloseParen)
            ) {
                if operands.is_empty() {
                    return Err(Fault::new(at, "a value is missing here"));
                }
                return Ok(operands);
            }
            let operand = self.operand(depth)?;
            operands.push(operand);
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Operand, Fault> {
        let at = self.here();
        let Some(token) = self.next() else {
            return Err(Fault::new(at, "a value is missing here"));
        };
        let mut fields = Vec::new();
        let kind = match token.word {
            Word::Dot => Kind::Dot,
            Word::Field(name) => {
                fields.push(name);
                Kind::Dot
            }
            Word::Variable(name) => Kind::Variable(name),
            Word::Str(text) => Kind::Constant(Value::String(text)),
            Word::Int(number) => Kind::Constant(number.into()),
            Word::Float(number) => Kind::Constant(number.into()),
            Word::Name(name) => match name.as_str() {
                "true" => Kind::Constant(true.into()),
                "false" => Kind::Constant(false.into()),
                "nil" => Kind::Constant(Value::Null),
                _ if functions::exists(&name) => Kind::Function(name),
                _ if self.roots.contains(&name.as_str()) => Kind::Root(name),
                _ => {
                    let known = functions::NAMES.iter().chain(self.roots).copied();
                    return Err(Fault {
                        hint: did_you_mean(&name, known).or_else(|| {
                            Some(format!("to take an input, write {{{{.inputs.{name}}}}}"))
                        }),
                        ..Fault::new(at, format!("{name} is not a function"))
                    });
                }
            },
            Word::OpenParen => {
                let inner = self.pipeline(depth + 1)?;
                let closing = self.here();
                match self.next() {
                    Some(Token {
                        word: Word::CloseParen,
                        ..
                    }) => Kind::Parens(Box::new(inner)),
                    _ => return Err(Fault::new(closing, "this ( has no )")),
                }
            }
            _ => return Err(Fault::new(at, "a value was expected here")),
        };
        while let Some(Token {
            word: Word::Field(name),
            glued: true,
            end,
            ..
        }) = self.tokens.get(self.position)
        {
            fields.push(name.clone());
            self.position += 1;
            self.last = *end;
        }
        if matches!(kind, Kind::Constant(_) | Kind::Function(_)) && !fields.is_empty() {
            return Err(Fault::new(at, format!("this has no field {}", fields[0])));
        }
        Ok(Operand {
            at,
            end: self.last,
            kind,
            fields,
        })
    }
}

/// Collects the paths that begin at the variables. `at_root` says whether `.` is all variables here.
pub(super) fn references(nodes: &[Node], at_root: bool, found: &mut Vec<(Reference, usize)>) {
    for node in nodes {
        match node {
            Node::Text(_) | Node::Break | Node::Continue => {}
            Node::Action(pipeline) => pipeline_references(pipeline, at_root, found),
            Node::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    pipeline_references(condition, at_root, found);
                    references(body, at_root, found);
                }
                references(otherwise, at_root, found);
            }
            Node::With {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    pipeline_references(condition, at_root, found);
                    references(body, false, found);
                }
                references(otherwise, at_root, found);
            }
            Node::Range {
                over,
                body,
                otherwise,
            } => {
                pipeline_references(over, at_root, found);
                references(body, false, found);
                references(otherwise, at_root, found);
            }
        }
    }
}

fn pipeline_references(pipeline: &Pipeline, at_root: bool, found: &mut Vec<(Reference, usize)>) {
    for command in &pipeline.commands {
        for operand in command {
            let path = match &operand.kind {
                Kind::Dot if at_root && !operand.fields.is_empty() => operand.fields.clone(),
                Kind::Variable(name) if name.is_empty() && !operand.fields.is_empty() => {
                    operand.fields.clone()
                }
                Kind::Root(root) => {
                    let mut path = vec![root.clone()];
                    path.extend(operand.fields.iter().cloned());
                    path
                }
                Kind::Parens(inner) => {
                    pipeline_references(inner, at_root, found);
                    continue;
                }
                _ => continue,
            };
            found.push((Reference { path }, operand.at));
        }
    }
}
