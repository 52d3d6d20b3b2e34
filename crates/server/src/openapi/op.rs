//! Operations that are described by hand.

use serde_json::{Map, Value, json};

use super::merge;

/// One operation.
pub(super) struct Op(Map<String, Value>);

/// A reference to a schema.
pub(super) fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A reference to an answer.
pub(super) fn response(name: &str) -> Value {
    json!({ "$ref": format!("#/components/responses/{name}") })
}

/// Who may ask.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    /// Everybody.
    Anybody,
    /// Programs of the same user on loopback, the token, or a key with this scope.
    Local(&'static str),
    /// The token, or a key with this scope.
    Owner(&'static str),
    /// A key with this scope, and no token.
    Key(&'static [&'static str]),
}

impl Who {
    /// As the document says it: any of the list will do.
    pub(super) fn security(self) -> Value {
        match self {
            Self::Anybody => json!([{}]),
            Self::Local(scope) => json!([{}, { "token": [] }, { "key": [scope] }]),
            Self::Owner(scope) => json!([{ "token": [] }, { "key": [scope] }]),
            Self::Key(scopes) => json!([{ "key": scopes }]),
        }
    }
}

impl Op {
    pub(super) fn new(tag: &str, id: &str, summary: &str, who: Who) -> Self {
        let mut op = Map::new();
        op.insert("tags".to_owned(), json!([tag]));
        op.insert("operationId".to_owned(), id.into());
        op.insert("summary".to_owned(), summary.into());
        op.insert("security".to_owned(), who.security());
        op.insert("responses".to_owned(), json!({}));
        Self(op)
    }

    fn parameter(mut self, place: &str, name: &str, about: &str, schema: &Value) -> Self {
        let one = json!({
            "name": name, "in": place, "description": about, "required": place == "path", "schema": schema,
        });
        match self.0.get_mut("parameters") {
            Some(Value::Array(all)) => all.push(one),
            _ => drop(self.0.insert("parameters".to_owned(), json!([one]))),
        }
        self
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is written where it is used"
    )]
    pub(super) fn path(self, name: &str, about: &str, schema: Value) -> Self {
        self.parameter("path", name, about, &schema)
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is written where it is used"
    )]
    pub(super) fn query(self, name: &str, about: &str, schema: Value) -> Self {
        self.parameter("query", name, about, &schema)
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is written where it is used"
    )]
    pub(super) fn header(self, name: &str, about: &str, schema: Value) -> Self {
        self.parameter("header", name, about, &schema)
    }

    /// The parameter that was added last has to be given.
    pub(super) fn required(mut self) -> Self {
        if let Some(Value::Array(all)) = self.0.get_mut("parameters")
            && let Some(last) = all.last_mut()
        {
            last["required"] = true.into();
        }
        self
    }

    pub(super) fn body(mut self, required: bool, kinds: &[(&str, Value)]) -> Self {
        let content = kinds
            .iter()
            .map(|(kind, schema)| ((*kind).to_owned(), json!({ "schema": schema })));
        let content: Map<String, Value> = content.collect();
        self.0.insert(
            "requestBody".to_owned(),
            json!({ "required": required, "content": content }),
        );
        self
    }

    fn put(mut self, status: &str, response: Value) -> Self {
        if let Some(Value::Object(all)) = self.0.get_mut("responses") {
            all.insert(status.to_owned(), response);
        }
        self
    }

    /// An answer without a body.
    pub(super) fn empty(self, status: &str, about: &str) -> Self {
        self.put(status, json!({ "description": about }))
    }

    /// An answer with a body.
    pub(super) fn gives(self, status: &str, about: &str, kinds: &[(&str, Value)]) -> Self {
        let content = kinds
            .iter()
            .map(|(kind, schema)| ((*kind).to_owned(), json!({ "schema": schema })));
        let content: Map<String, Value> = content.collect();
        self.put(status, json!({ "description": about, "content": content }))
    }

    /// An answer with a JSON document.
    pub(super) fn json(self, status: &str, about: &str, schema: Value) -> Self {
        self.gives(status, about, &[("application/json", schema)])
    }

    /// Answers that are described elsewhere, by their status.
    pub(super) fn also(mut self, all: &[(&str, &str)]) -> Self {
        for (status, name) in all {
            self = self.put(status, response(name));
        }
        self
    }

    /// Puts it into the document.
    pub(super) fn at(self, document: &mut Value, method: &str, path: &str) {
        let mut item = Map::new();
        item.insert(method.to_owned(), Value::Object(self.0));
        merge(document, &["paths", path], Value::Object(item));
    }
}
