//! Whose request it is, by its header `Authorization`. For any request of an API, not only for submissions.

use super::{KeyEntry, Keys, Refused, Scope, SecretKey};
use crate::protocol::{Code, Refusal};

/// Whose request it is. `header` is the value of `Authorization`.
///
/// # Errors
///
/// The refusal to answer with; [`Code::status`] has the status. With 401 belongs `WWW-Authenticate: Bearer`.
pub fn authenticate(keys: &dyn Keys, header: Option<&str>) -> Result<KeyEntry, Refusal> {
    let presented = header.and_then(|value| {
        let (scheme, key) = value.trim().split_once(' ')?;
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        SecretKey::parse(key).ok().filter(|_| is_bearer)
    });
    let unknown = || {
        let message = "a submission key is needed: Authorization: Bearer qk_…";
        Refusal::new(Code::Unauthorized, message)
    };
    match keys.check(&presented.ok_or_else(unknown)?) {
        Ok(entry) => Ok(entry),
        Err(Refused::Unknown) => Err(unknown()),
        Err(refused @ Refused::Revoked(_)) => Err(Refusal::new(Code::Revoked, refused.to_string())),
        Err(refused @ Refused::Expired(_)) => Err(Refusal::new(Code::Expired, refused.to_string())),
        Err(Refused::Unavailable) => {
            let message = "the server cannot look up keys; try again later";
            Err(Refusal::new(Code::Internal, message))
        }
    }
}

/// Whether a key may do this.
///
/// # Errors
///
/// It may not: `forbidden`, naming the scope.
pub fn allow(key: &KeyEntry, scope: Scope) -> Result<(), Refusal> {
    if key.may(scope) {
        return Ok(());
    }
    let message = format!("this key may not do that; it needs the scope `{scope}`");
    Err(Refusal::new(Code::Forbidden, message))
}

/// Whose request it is, when that key may do this.
///
/// # Errors
///
/// As of [`authenticate`] and [`allow`].
pub fn authorize(keys: &dyn Keys, header: Option<&str>, scope: Scope) -> Result<KeyEntry, Refusal> {
    let entry = authenticate(keys, header)?;
    allow(&entry, scope)?;
    Ok(entry)
}
