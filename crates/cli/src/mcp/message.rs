//! Messages of JSON-RPC 2.0.

use serde_json::{Map, Value, json};

pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const INTERNAL_ERROR: i32 = -32603;
/// Of this server: too many calls at the same time.
pub(crate) const TOO_MANY_CALLS: i32 = -32000;
/// Of the protocol since 2026-07-28.
pub(crate) const UNSUPPORTED_REVISION: i32 = -32022;

/// An error object.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Fault {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

impl Fault {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// A message of the client.
#[derive(PartialEq, Debug)]
pub(crate) enum Message {
    /// `id` is a string or a number. `params` is an object, or null.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// A response to a request of the server.
    Response,
    /// A line of white space.
    Empty,
}

impl Message {
    /// Parses one line.
    ///
    /// # Errors
    /// The error object, with the id of the request if it is known.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, (Option<Value>, Fault)> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::Empty);
        }
        // Nesting of more than 128 levels is an error as well.
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| (None, Fault::new(PARSE_ERROR, format!("not JSON: {error}"))))?;
        let invalid = |id: Option<Value>, text: &str| (id, Fault::new(INVALID_REQUEST, text));
        let mut object = match value {
            Value::Object(object) => object,
            Value::Array(_) => return Err(invalid(None, "batches are not supported: one message per line")),
            _ => return Err(invalid(None, "a message is an object")),
        };
        let id = match object.remove("id") {
            id @ (None | Some(Value::String(_) | Value::Number(_))) => id,
            Some(_) => return Err(invalid(None, "an id is a string or a number")),
        };
        if object.get("jsonrpc") != Some(&Value::from("2.0")) {
            return Err(invalid(id, "jsonrpc must be \"2.0\""));
        }
        let method = match object.remove("method") {
            Some(Value::String(method)) => method,
            None if object.contains_key("result") || object.contains_key("error") => {
                return Ok(Self::Response);
            }
            _ => return Err(invalid(id, "method must be a string")),
        };
        let params = match object.remove("params") {
            None => Value::Null,
            Some(params @ (Value::Object(_) | Value::Null)) => params,
            Some(_) if id.is_some() => {
                return Err((id, Fault::new(INVALID_PARAMS, "params must be an object")));
            }
            // A notification has no answer, not even an error.
            Some(_) => Value::Null,
        };
        Ok(match id {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification { method, params },
        })
    }
}

/// The response to the request with this id. MCP omits the id of a request that could not be read, where
/// JSON-RPC has null.
pub(crate) fn response(id: Option<&Value>, answer: Result<Value, Fault>) -> Value {
    let mut response = Map::new();
    response.insert("jsonrpc".to_owned(), json!("2.0"));
    if let Some(id) = id {
        response.insert("id".to_owned(), id.clone());
    }
    match answer {
        Ok(result) => response.insert("result".to_owned(), result),
        Err(fault) => {
            let mut error = json!({ "code": fault.code, "message": fault.message });
            if let Some(data) = fault.data {
                error["data"] = data;
            }
            response.insert("error".to_owned(), error)
        }
    };
    Value::Object(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_responses_differ_by_their_members() {
        let parse = |text: &str| Message::parse(text.as_bytes());
        let method = "m".to_owned();
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","id":"7","method":"m","params":{"a":1}}"#),
            Ok(Message::Request { id: json!("7"), method: method.clone(), params: json!({"a": 1}) })
        );
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","method":"m","params":[1]}"#),
            Ok(Message::Notification { method, params: Value::Null })
        );
        assert_eq!(parse(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), Ok(Message::Response));
        assert_eq!(parse(" \r"), Ok(Message::Empty));
    }

    #[test]
    fn errors_name_the_request_if_they_can() {
        let deep = "[".repeat(100_000);
        for (text, id, code) in [
            ("{", None, PARSE_ERROR),
            ("\u{feff}{}", None, PARSE_ERROR),
            (deep.as_str(), None, PARSE_ERROR),
            ("[]", None, INVALID_REQUEST),
            ("3", None, INVALID_REQUEST),
            ("{}", None, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, None, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, None, INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, Some(json!(1)), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, Some(json!(1)), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some(json!(1)), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, Some(json!(1)), INVALID_PARAMS),
        ] {
            let (found, fault) = Message::parse(text.as_bytes()).expect_err("it is wrong");
            assert_eq!((found, fault.code), (id, code), "{:.60}", text);
        }
        assert_eq!(Message::parse(b"{\"a\":\"\xff\"}").expect_err("not UTF-8").1.code, PARSE_ERROR);
    }
}
