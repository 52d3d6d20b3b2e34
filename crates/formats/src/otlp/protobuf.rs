//! The same request in the other encoding: some endpoints take nothing but protobuf.
//!
//! A line of JSON is turned into the message that it stands for. Only what the writer writes is known here;
//! other fields of the protocol are passed over.

use serde_json::Value;

/// Why a text is no request.
#[derive(Debug, thiserror::Error)]
pub enum NotARequest {
    /// It is not JSON.
    #[error("an OTLP request that is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// A field holds what it cannot.
    #[error("an OTLP request whose field {0} does not hold what it should")]
    Field(&'static str),
}

/// Turns an `ExportTraceServiceRequest` in JSON, such as a line that was written here, into protobuf.
///
/// # Errors
///
/// When it is no such request.
pub fn protobuf(request: &[u8]) -> Result<Vec<u8>, NotARequest> {
    let request: Value = serde_json::from_slice(request).map_err(NotARequest::NotJson)?;
    let mut out = Message::default();
    for resource_spans in list(&request, "resourceSpans")? {
        let mut of_resource = Message::default();
        let mut resource = Message::default();
        resource.attributes(1, &resource_spans["resource"])?;
        of_resource.message(1, &resource);
        for scope_spans in list(resource_spans, "scopeSpans")? {
            let mut of_scope = Message::default();
            let mut scope = Message::default();
            scope.text(1, &scope_spans["scope"], "name")?;
            scope.text(2, &scope_spans["scope"], "version")?;
            of_scope.message(1, &scope);
            for span in list(scope_spans, "spans")? {
                of_scope.message(2, &message(span)?);
            }
            of_scope.text(3, scope_spans, "schemaUrl")?;
            of_resource.message(2, &of_scope);
        }
        out.message(1, &of_resource);
    }
    Ok(out.0)
}

fn message(span: &Value) -> Result<Message, NotARequest> {
    let mut out = Message::default();
    out.id(1, span, "traceId")?;
    out.id(2, span, "spanId")?;
    out.id(4, span, "parentSpanId")?;
    out.text(5, span, "name")?;
    out.number(6, span, "kind")?;
    out.nanos(7, span, "startTimeUnixNano")?;
    out.nanos(8, span, "endTimeUnixNano")?;
    out.attributes(9, span)?;
    for event in list(span, "events")? {
        let mut told = Message::default();
        told.nanos(1, event, "timeUnixNano")?;
        told.text(2, event, "name")?;
        told.attributes(3, event)?;
        out.message(11, &told);
    }
    for link in list(span, "links")? {
        let mut to = Message::default();
        to.id(1, link, "traceId")?;
        to.id(2, link, "spanId")?;
        to.attributes(4, link)?;
        out.message(13, &to);
    }
    let mut status = Message::default();
    status.text(2, &span["status"], "message")?;
    status.number(3, &span["status"], "code")?;
    out.message(15, &status);
    Ok(out)
}

/// The values of a list; none where there is no list.
fn list<'a>(of: &'a Value, field: &'static str) -> Result<&'a [Value], NotARequest> {
    match &of[field] {
        Value::Null => Ok(&[]),
        Value::Array(values) => Ok(values),
        _ => Err(NotARequest::Field(field)),
    }
}

/// A whole number, which the mapping writes as a string where it has 64 bits.
fn whole<T: std::str::FromStr>(value: &Value, field: &'static str) -> Result<T, NotARequest> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    };
    number.ok_or(NotARequest::Field(field))
}

/// Fields of a message, one behind another.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// How a field is written.
#[derive(Debug, Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
}

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn tag(&mut self, field: u64, wire: Wire) {
        self.varint(field << 3 | wire as u64);
    }

    /// Its bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// A whole number, unless it is zero.
    pub(super) fn number_of(&mut self, field: u64, number: u64) {
        if number != 0 {
            self.tag(field, Wire::Varint);
            self.varint(number);
        }
    }

    pub(super) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, Wire::Bytes);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// A text, unless it is empty: that is what a field says that is not there.
    fn text(&mut self, field: u64, of: &Value, name: &'static str) -> Result<(), NotARequest> {
        match &of[name] {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => self.bytes(field, text.as_bytes()),
            _ => return Err(NotARequest::Field(name)),
        }
        Ok(())
    }

    fn id(&mut self, field: u64, of: &Value, name: &'static str) -> Result<(), NotARequest> {
        let wrong = || NotARequest::Field(name);
        match &of[name] {
            Value::Null => return Ok(()),
            Value::String(hex) => {
                let digits = hex.as_bytes().chunks(2).map(|pair| {
                    let pair = std::str::from_utf8(pair).ok()?;
                    u8::from_str_radix(pair, 16).ok()
                });
                let id: Option<Vec<u8>> = digits.collect();
                self.bytes(field, &id.ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }

    fn number(&mut self, field: u64, of: &Value, name: &'static str) -> Result<(), NotARequest> {
        if of[name].is_null() {
            return Ok(());
        }
        let number: u64 = whole(&of[name], name)?;
        if number != 0 {
            self.tag(field, Wire::Varint);
            self.varint(number);
        }
        Ok(())
    }

    fn nanos(&mut self, field: u64, of: &Value, name: &'static str) -> Result<(), NotARequest> {
        let nanos: u64 = whole(&of[name], name)?;
        if nanos != 0 {
            self.tag(field, Wire::Fixed64);
            self.0.extend_from_slice(&nanos.to_le_bytes());
        }
        Ok(())
    }

    fn attributes(&mut self, field: u64, of: &Value) -> Result<(), NotARequest> {
        for attribute in list(of, "attributes")? {
            let mut pair = Self::default();
            pair.text(1, attribute, "key")?;
            let mut value = Self::default();
            value.any(&attribute["value"])?;
            pair.message(2, &value);
            self.message(field, &pair);
        }
        Ok(())
    }

    /// The value of an attribute. A text that is empty is written: here it is not the same as nothing.
    fn any(&mut self, value: &Value) -> Result<(), NotARequest> {
        if let Value::String(text) = &value["stringValue"] {
            self.bytes(1, text.as_bytes());
        } else if let Value::Bool(flag) = &value["boolValue"] {
            self.tag(2, Wire::Varint);
            self.varint(u64::from(*flag));
        } else if !value["intValue"].is_null() {
            let number: i64 = whole(&value["intValue"], "intValue")?;
            self.tag(3, Wire::Varint);
            self.varint(number.cast_unsigned());
        } else if let Some(number) = value["doubleValue"].as_f64() {
            self.tag(4, Wire::Fixed64);
            self.0.extend_from_slice(&number.to_le_bytes());
        } else if value["arrayValue"].is_object() {
            let mut values = Self::default();
            for item in list(&value["arrayValue"], "values")? {
                let mut one = Self::default();
                one.any(item)?;
                values.message(1, &one);
            }
            self.message(5, &values);
        } else {
            return Err(NotARequest::Field("value"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_groups_of_seven_bits() {
        let mut message = Message::default();
        for number in [0, 127, 128, 300, u64::MAX] {
            message.varint(number);
        }
        assert_eq!(message.0[..6], [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(message.0.len(), 6 + 10);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in [
            "",
            "{",
            r#"{"resourceSpans":1}"#,
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"xx"}]}]}]}"#,
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":-1}]}]}]}"#,
            r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":{}}]}}]}"#,
            r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":{"intValue":"x"}}]}}]}"#,
        ] {
            assert!(protobuf(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(protobuf(b"{}").unwrap(), b"");
    }
}
