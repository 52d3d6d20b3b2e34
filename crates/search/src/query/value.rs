//! What the values of filters mean.

use quipu_model::{Money, Status};

use super::error::clip;
use super::lex::{Value, nearest};
use super::{Clock, Comparison, Expr, Field, Filter, Has, Pattern, Problem, QueryError, Role};
use crate::when;

/// The condition that a filter is: one of its values.
pub(super) fn filter(
    field: Field,
    values: Vec<Value<'_>>,
    clock: &Clock,
) -> Result<Expr, QueryError> {
    let single = matches!(field, Field::Since | Field::Until | Field::Cost);
    if let (true, [first, .., last]) = (single, values.as_slice()) {
        let error = QueryError::new(first.at.start..last.at.end, Problem::OneValue(field));
        return Err(match field {
            Field::Cost => error.hint("write 1.50 with a point, a range as 1..5"),
            _ => error,
        });
    }
    let alternatives = values
        .into_iter()
        .map(|value| condition(field, value, clock));
    alternatives.collect::<Result<_, _>>().map(Expr::or)
}

fn condition(field: Field, value: Value<'_>, clock: &Clock) -> Result<Expr, QueryError> {
    let pattern = |make: fn(Pattern) -> Filter| {
        let text = value.text.clone().into_owned();
        Ok(make(if value.prefix {
            Pattern::Prefix(text)
        } else {
            Pattern::Exact(text)
        }))
    };
    let filter = match field {
        Field::Agent => pattern(Filter::Agent),
        Field::Model => pattern(Filter::Model),
        Field::Tool => pattern(Filter::Tool),
        Field::Project => pattern(Filter::Project),
        Field::Branch => pattern(Filter::Branch),
        _ if value.prefix => return Err(no_star(field, &value)),
        Field::Path => Ok(Filter::Path(value.text.into_owned())),
        Field::Session => Ok(Filter::Session(value.text.into_owned())),
        Field::Title => Ok(Filter::Title(value.text.into_owned())),
        Field::Since => time(&value, when::since(&value.text, clock)).map(Filter::Since),
        Field::Until => time(&value, when::until(&value.text, clock)).map(Filter::Until),
        Field::Role => member(
            field,
            &value,
            Role::from_word,
            words(Role::ALL, Role::as_str),
        )
        .map(Filter::Role),
        Field::Has => {
            member(field, &value, Has::from_word, words(Has::ALL, Has::as_str)).map(Filter::Has)
        }
        Field::Status => {
            let status = |word: &str| Status::from_word(&word.to_ascii_lowercase());
            let known = words(Status::ALL, Status::as_str);
            member(field, &value, status, known).map(Filter::Status)
        }
        Field::Cost => return cost(&value),
    };
    filter.map(Expr::Filter)
}

fn no_star(field: Field, value: &Value<'_>) -> QueryError {
    let end = value.at.end;
    let error = QueryError::new(end - 1..end, Problem::NoStar(field));
    match field {
        Field::Session => error.hint("the beginning of an id is enough as it is"),
        Field::Path => error.hint("some of the names in a path are enough as they are"),
        _ => error,
    }
}

fn time<T>(value: &Value<'_>, read: Result<T, when::WhenError>) -> Result<T, QueryError> {
    read.map_err(|error| {
        let hint = error.hint();
        QueryError::new(value.at.clone(), error).hint(hint)
    })
}

fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|member| word(*member)).collect()
}

/// A value that is one of a few words.
fn member<T>(
    field: Field,
    value: &Value<'_>,
    look_up: impl Fn(&str) -> Option<T>,
    known: Vec<&'static str>,
) -> Result<T, QueryError> {
    look_up(&value.text).ok_or_else(|| {
        let word = clip(&value.text);
        let error = QueryError::new(value.at.clone(), Problem::UnknownWord { field, word });
        let list = known.join(", ");
        match nearest(&value.text, known.into_iter()) {
            Some(near) => error.hint(format!("did you mean {near}? there are {list}")),
            None => error.hint(format!("there are {list}")),
        }
    })
}

/// `>1.50`, `<= $2`, `1..5`, `..5`, `1..`, `=0`, `3`.
fn cost(value: &Value<'_>) -> Result<Expr, QueryError> {
    let compared = |comparison, sum| Expr::Filter(Filter::Cost(comparison, sum));
    if let Some((least, most)) = value.text.split_once("..") {
        let end = |text: &str| match text.trim() {
            "" => Ok(None),
            text => sum(text, value).map(Some),
        };
        let (least, most) = (end(least)?, end(most)?);
        if matches!((least, most), (Some(least), Some(most)) if least > most) {
            return Err(QueryError::new(value.at.clone(), Problem::EmptyRange));
        }
        if (least, most) == (None, None) {
            return Err(no_sum(&value.text, value));
        }
        let least = least.map(|sum| compared(Comparison::AtLeast, sum));
        let most = most.map(|sum| compared(Comparison::AtMost, sum));
        return Ok(Expr::and(least.into_iter().chain(most).collect()));
    }
    let signed = Comparison::ALL.into_iter().find_map(|comparison| {
        let text = value.text.strip_prefix(comparison.as_str())?;
        Some((comparison, text))
    });
    let (comparison, text) = signed.unwrap_or((Comparison::Equal, &value.text));
    Ok(compared(comparison, sum(text.trim(), value)?))
}

fn sum(text: &str, value: &Value<'_>) -> Result<Money, QueryError> {
    let digits = text.strip_prefix('$').unwrap_or(text);
    // Nothing costs less than nothing: a minus was meant for something else.
    let sum = Money::parse(digits).filter(|_| !digits.starts_with('-'));
    sum.ok_or_else(|| no_sum(text, value))
}

fn no_sum(text: &str, value: &Value<'_>) -> QueryError {
    QueryError::new(value.at.clone(), Problem::NoSum(clip(text)))
        .hint("write cost:>1.50, cost:<=2 or cost:1..5")
}
