//! What only its origin understands, on its way through the client and back: signatures of reasoning, encrypted items.
//!
//! A field of the client's dialect that takes any text carries it, behind a mark. A body with such a text is not
//! passed on as it is: its next target may be another one, and the mark means nothing to anybody else.

use failover_provider::{Dialect, Home, Json, Opaque, Origin};
use failover_types::ProviderId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

const MARK: &str = "failover:";
const ITEM: &str = "failover:item:";

/// What stands behind the mark.
#[derive(Deserialize, Serialize)]
struct Carried<'a> {
    origin: Cow<'a, Origin>,
    name: Cow<'a, str>,
    value: Cow<'a, Json>,
}

/// A parameter of a dialect.
pub(super) fn parameter(dialect: Dialect, name: &str, value: Json) -> Opaque {
    Opaque::new(Home::Dialect(dialect), name, value)
}

/// Something in the client's history that is bound to whose answer it was.
pub(super) fn history(dialect: Dialect, name: &str, value: Json) -> Opaque {
    Opaque::new(Home::History(dialect), name, value)
}

/// Whether it is from the provider that the client asked, and so may stand in the client's history as it is.
pub(super) fn is_of(opaque: &Opaque, asked: Option<&ProviderId>) -> bool {
    opaque.origin().is_some_and(|origin| Some(&origin.provider) == asked)
}

/// The text for the client that carries a proof. What is bound to a credential stays here: its name is nobody's
/// business.
pub(super) fn wrap(proof: &Opaque) -> Option<String> {
    text(MARK, proof)
}

/// The text for the client that carries a whole item.
pub(super) fn wrap_item(item: &Opaque) -> Option<String> {
    text(ITEM, item)
}

fn text(mark: &str, opaque: &Opaque) -> Option<String> {
    let origin = opaque.origin()?;
    if origin.profile.is_some() {
        return None;
    }
    let (name, value) = (Cow::Borrowed(opaque.name.as_str()), Cow::Borrowed(&opaque.value));
    let json = serde_json::to_string(&Carried { origin: Cow::Borrowed(origin), name, value }).ok()?;
    Some(format!("{mark}{json}"))
}

fn read(json: &str) -> Option<Opaque> {
    let Carried { origin, name, value } = serde_json::from_str(json).ok()?;
    Some(Opaque::new(origin.into_owned(), name, value.into_owned()))
}

/// Whether a text is one of ours.
pub(super) fn is_ours(text: &str) -> bool {
    text.starts_with(MARK)
}

/// The proof that a text carries; `None` where it carries none, or was tampered with.
pub(super) fn unwrap(text: &str) -> Option<Opaque> {
    read(text.strip_prefix(MARK)?)
}

/// The item that a text carries.
pub(super) fn unwrap_item(text: &str) -> Option<Opaque> {
    read(text.strip_prefix(ITEM)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_out_comes_back() {
        let origin = Origin::new(ProviderId::new("acme").unwrap()).with_model("m");
        let sent = Opaque::new(origin, "signature", Json::parse(r#"{"b":1.0,"a":"é\n"}"#).unwrap());
        assert_eq!(unwrap(&wrap(&sent).unwrap()).as_ref(), Some(&sent));
        assert_eq!(unwrap(&wrap_item(&sent).unwrap()), None);
        assert_eq!(unwrap_item(&wrap_item(&sent).unwrap()), Some(sent));
        assert!(is_ours("failover:") && !is_ours("EqQB"));
        assert_eq!(unwrap("failover:"), None);
        assert_eq!(unwrap("failover:{\"origin\":7}"), None);
    }

    #[test]
    fn what_is_bound_to_a_credential_stays() {
        let profile = "acme:ada@example.com".parse().unwrap();
        let origin = Origin::new(ProviderId::new("acme").unwrap()).with_profile(profile);
        assert_eq!(wrap(&Opaque::new(origin, "x", Json::parse("1").unwrap())), None);
    }
}
