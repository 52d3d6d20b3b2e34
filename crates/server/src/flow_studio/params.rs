//! What requests say: ids in the path, parameters in the query, and who asks.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Query};
use http::request::Parts;
use quipu_store::Store;
use serde::Deserialize;

use super::Studio;
use super::fault::Fault;
use crate::App;
use crate::access::{MayRead, MayWrite};

/// Somebody who may read, and what they read from.
pub(super) struct Reading {
    pub(super) app: App,
    pub(super) studio: Arc<Studio>,
}

/// Somebody who may change things.
pub(super) struct Writing(pub(super) Reading);

impl Reading {
    fn of(parts: &Parts, app: &App) -> Result<Self, Fault> {
        let studio = parts.extensions.get::<Arc<Studio>>().cloned();
        let studio = studio.ok_or_else(Fault::no_route)?;
        let app = app.clone();
        Ok(Self { app, studio })
    }

    /// Reads files or the store, off the threads that serve sockets.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Studio, &Store) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let studio = Arc::clone(&self.studio);
        self.app.read(move |store| Ok(work(&studio, store))).await?
    }

    /// The same for what may take seconds.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Studio, &Store) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let studio = Arc::clone(&self.studio);
        self.app.work(move |store| Ok(work(&studio, store))).await?
    }
}

impl FromRequestParts<App> for Reading {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Fault> {
        MayRead::from_request_parts(parts, app).await?;
        Self::of(parts, app)
    }
}

impl FromRequestParts<App> for Writing {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Fault> {
        MayWrite::from_request_parts(parts, app).await?;
        Reading::of(parts, app).map(Self)
    }
}

/// The ids in a path. Those that the route does not have are empty.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ids {
    pub(super) id: String,
    pub(super) flow: String,
    pub(super) step: String,
    pub(super) agent: String,
    pub(super) engine: String,
}

impl FromRequestParts<App> for Ids {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Fault> {
        let path = Path::<Self>::from_request_parts(parts, app).await;
        // Such as bytes that are not UTF-8.
        let Path(ids) = path.map_err(|_| Fault::no_route())?;
        for (name, value) in [
            ("run_id", &ids.id),
            ("flow_key", &ids.flow),
            ("step_id", &ids.step),
            ("agent_key", &ids.agent),
            ("engine", &ids.engine),
        ] {
            check(name, value)?;
        }
        Ok(ids)
    }
}

/// The longest id.
const LONGEST: usize = 255;

/// Refuses ids that no file has. What passes is compared with names in directories and never becomes part of a path.
pub(super) fn check(name: &str, value: &str) -> Result<(), Fault> {
    if value.contains("..") {
        return Err(Fault::bad(format!(
            "Invalid {name}: Traversal sequences are not allowed"
        )));
    }
    let is_odd = |c: char| c == '/' || c == '\\' || c.is_control();
    if value.len() > LONGEST || value.contains(is_odd) {
        return Err(Fault::bad(format!(
            "Invalid {name}: at most {LONGEST} bytes, without slashes and control characters"
        )));
    }
    Ok(())
}

/// The parameters of the query. Of several with one name the last counts.
#[derive(Debug, Default)]
pub(super) struct Params(Vec<(String, String)>);

impl FromRequestParts<App> for Params {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Fault> {
        let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let Query(all) = query.map_err(|_| Fault::bad("The query cannot be read"))?;
        Ok(Self(all))
    }
}

impl Params {
    /// A parameter as it was written.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A whole number.
    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, Fault> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let invalid = || {
            let message = "Input should be a valid integer, unable to parse string as an integer";
            Fault::invalid("int_parsing", name, message, text)
        };
        let number = text.trim();
        // `5.0` is a whole number to FastAPI, too.
        let number = match number.split_once('.') {
            Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
            _ => number,
        };
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        let is_negative = number.starts_with('-');
        let most = if is_negative { i64::MIN } else { i64::MAX };
        Ok(Some(number.parse().unwrap_or(most)))
    }

    /// A truth value.
    pub(super) fn truth(&self, name: &str) -> Result<Option<bool>, Fault> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" | "t" | "y" => Ok(Some(true)),
            "false" | "0" | "off" | "no" | "f" | "n" => Ok(Some(false)),
            _ => {
                let message = "Input should be a valid boolean, unable to interpret input";
                Err(Fault::invalid("bool_parsing", name, message, text))
            }
        }
    }
}
