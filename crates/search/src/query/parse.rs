//! From words and signs to a condition.

use std::ops::Range;

use super::lex::{Kind, Lexer, Term, Token};
use super::{Clock, Expr, Problem, Query, QueryError, Side, value};

pub(super) fn parse(query: &str, clock: &Clock) -> Result<Expr, QueryError> {
    if query.len() > Query::MAX_BYTES {
        let cut = (0..=Query::MAX_BYTES).rfind(|at| query.is_char_boundary(*at));
        let at = cut.unwrap_or(0)..query.len();
        return Err(QueryError::new(at, Problem::TooLong));
    }
    let mut lexer = Lexer::new(query);
    let next = lexer.next()?;
    let mut parser = Parser {
        lexer,
        next,
        clock,
        terms: 0,
        depth: 0,
    };
    if parser.next.is_none() {
        return Ok(Expr::All);
    }
    let expr = parser.any_of()?;
    match parser.next {
        // All else is taken as far as it goes.
        Some(token) => Err(QueryError::new(token.at, Problem::StrayClose)
            .hint("to look for a parenthesis, quote it")),
        None => Ok(expr),
    }
}

struct Parser<'q, 'c> {
    lexer: Lexer<'q>,
    next: Option<Token<'q>>,
    clock: &'c Clock,
    terms: usize,
    depth: usize,
}

impl<'q> Parser<'q, '_> {
    fn kind(&self) -> Option<&Kind<'q>> {
        self.next.as_ref().map(|token| &token.kind)
    }

    /// Takes the next piece, and looks at the one behind it.
    fn take(&mut self) -> Result<Option<Token<'q>>, QueryError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn any_of(&mut self) -> Result<Expr, QueryError> {
        let mut parts = vec![self.all_of(None)?];
        while matches!(self.kind(), Some(Kind::Or)) {
            let or = self.take()?;
            parts.push(self.all_of(or)?);
        }
        Ok(Expr::or(parts))
    }

    fn all_of(&mut self, mut behind: Option<Token<'q>>) -> Result<Expr, QueryError> {
        let mut parts = Vec::new();
        loop {
            parts.push(self.term(behind.take())?);
            match self.kind() {
                None | Some(Kind::Or | Kind::Close) => return Ok(Expr::and(parts)),
                Some(Kind::And) => behind = self.take()?,
                Some(_) => {}
            }
        }
    }

    /// What may be negated. `behind` is the operator that it has to follow.
    fn term(&mut self, mut behind: Option<Token<'q>>) -> Result<Expr, QueryError> {
        let mut negations = 0_usize;
        while matches!(self.kind(), Some(Kind::Not | Kind::Minus)) {
            behind = self.take()?;
            negations += 1;
        }
        let (expr, grouped) = match self.next.take() {
            Some(Token {
                kind: Kind::Open,
                at,
            }) => (self.group(&at)?, true),
            Some(Token {
                kind: Kind::Term(term),
                at,
            }) => (self.leaf(term, at)?, false),
            other => {
                self.next = other;
                return Err(self.missing(behind.as_ref()));
            }
        };
        let near = matches!(self.kind(), Some(Kind::Near(_)));
        match (near, grouped, negations) {
            (false, ..) if negations % 2 == 1 => Ok(Expr::not(expr)),
            (false, ..) => Ok(expr),
            (true, true, _) => Err(self.no_side()),
            (true, false, 0) => self.near(expr),
            (true, false, _) => Err(self
                .no_side()
                .hint("to rule both out, put them into parentheses: -(one NEAR other)")),
        }
    }

    /// What stands between the parenthesis that was taken and the one that closes it.
    fn group(&mut self, open: &Range<usize>) -> Result<Expr, QueryError> {
        if self.depth == Query::MAX_DEPTH {
            return Err(QueryError::new(open.clone(), Problem::TooDeep));
        }
        let unclosed = || {
            QueryError::new(open.clone(), Problem::OpenGroup)
                .hint("to look for a parenthesis, quote it")
        };
        self.next = self.lexer.next()?;
        let first = self.next.as_ref().ok_or_else(unclosed)?;
        if first.kind == Kind::Close {
            return Err(
                QueryError::new(open.start..first.at.end, Problem::EmptyGroup)
                    .hint("to look for parentheses, quote them"),
            );
        }
        self.depth += 1;
        let expr = self.any_of()?;
        self.depth -= 1;
        // Nothing else ends it than a parenthesis, or the query.
        self.take()?.map(|_| expr).ok_or_else(unclosed)
    }

    /// A term that was taken. What is wrong with it is told before what is wrong behind it.
    fn leaf(&mut self, term: Term<'q>, at: Range<usize>) -> Result<Expr, QueryError> {
        self.terms += match &term {
            Term::Filter { values, .. } => values.len(),
            _ => 1,
        };
        if self.terms > Query::MAX_TERMS {
            return Err(QueryError::new(at, Problem::TooManyTerms));
        }
        let expr = match term {
            Term::Filter { field, values } => value::filter(field, values, self.clock)?,
            Term::Phrase { text, prefix, slop } => Expr::Phrase {
                text: text.into_owned(),
                prefix,
                slop,
            },
            Term::Word { text, prefix } => Expr::Word {
                text: text.to_owned(),
                prefix,
            },
        };
        self.next = self.lexer.next()?;
        Ok(expr)
    }

    /// Pairs of neighbours: `a NEAR b NEAR c` is `(a NEAR b) (b NEAR c)`.
    fn near(&mut self, first: Expr) -> Result<Expr, QueryError> {
        let mut pairs = Vec::new();
        let mut left = side(first).ok_or_else(|| self.no_side())?;
        while let Some(Kind::Near(distance)) = self.kind() {
            let distance = *distance;
            let wrong = self.no_side();
            self.take()?;
            let Some(Token {
                kind: Kind::Term(term),
                at,
            }) = self.next.take()
            else {
                return Err(wrong);
            };
            let right = side(self.leaf(term, at)?).ok_or(wrong)?;
            let before = std::mem::replace(&mut left, right.clone());
            pairs.push(Expr::Near {
                left: before,
                right,
                distance,
            });
        }
        Ok(Expr::and(pairs))
    }

    /// The `NEAR` that is next lacks one of its sides.
    fn no_side(&self) -> QueryError {
        let at = self.next.as_ref().map(|token| token.at.clone());
        QueryError::new(at.unwrap_or_default(), Problem::NearSide).hint(
            "without *, ~, -, filters and parentheses; to look for the word, quote it: \"NEAR\"",
        )
    }

    /// Something should stand here, after an operator or before one.
    fn missing(&self, behind: Option<&Token<'q>>) -> QueryError {
        let (token, what): (_, fn(_) -> _) = match (behind, &self.next) {
            (Some(behind), _) => (behind, Problem::NothingAfter),
            (None, Some(next)) if next.kind == Kind::Close => {
                return QueryError::new(next.at.clone(), Problem::StrayClose)
                    .hint("to look for a parenthesis, quote it");
            }
            (None, Some(next)) if matches!(next.kind, Kind::Near(_)) => return self.no_side(),
            (None, Some(next)) => (next, Problem::NothingBefore),
            // Whoever asks for a term has seen that there is something.
            (None, None) => return QueryError::new(0..0, Problem::EmptyGroup),
        };
        let (sign, text) = match token.kind {
            Kind::Or => ("OR", "\"OR\""),
            Kind::And => ("AND", "\"AND\""),
            Kind::Not => ("NOT", "\"NOT\""),
            _ => ("-", "\"-\""),
        };
        QueryError::new(token.at.clone(), what(sign))
            .hint(format!("to look for the text, quote it: {text}"))
    }
}

fn side(expr: Expr) -> Option<Side> {
    match expr {
        Expr::Word {
            text,
            prefix: false,
        } => Some(Side::Word(text)),
        Expr::Phrase {
            text,
            prefix: false,
            slop: 0,
        } => Some(Side::Phrase(text)),
        _ => None,
    }
}
