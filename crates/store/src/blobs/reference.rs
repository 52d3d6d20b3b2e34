//! What a trace says of bytes that are kept outside of it: the payload of a `blob_ref`.

use quipu_model::Json;
use quipu_model::json::{Kind, Node, Tape};

use super::phash::{ALGORITHM, DHash};
use super::{BlobId, mime};

/// The payload of a `blob_ref` record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobRef {
    /// What kind of file it is.
    pub mime: String,
    /// How large it is.
    pub size_bytes: u64,
    /// Its name.
    pub blob_id: BlobId,
    /// Where it is, as a URI. Of any store.
    pub uri: Option<String>,
    /// What it looks like, where it is a picture.
    pub phash: Option<DHash>,
    /// What a model makes of it: `{model, dim, vec}`. Carried as it stands; the numbers are not ours.
    pub embedding: Option<Json>,
}

impl BlobRef {
    /// For these bytes, which somebody may have said to be of some type. With what they look like, where
    /// they are a picture that can be read.
    pub fn of(bytes: &[u8], said: Option<&str>) -> Self {
        let blob_id = BlobId::of(bytes);
        Self {
            mime: mime::settle(bytes, said),
            size_bytes: bytes.len() as u64,
            blob_id,
            uri: Some(blob_id.uri()),
            phash: hash(bytes),
            embedding: None,
        }
    }

    /// Reads a payload. `None` when it lacks what every reference has: a type, a size, a name.
    pub fn read(payload: Node<'_>) -> Option<Self> {
        let phash = payload.get("phash").filter(|it| {
            let algorithm = it.get("algo");
            algorithm.is_some_and(|algorithm| algorithm.is(ALGORITHM))
        });
        let embedding = payload.get("embedding");
        Some(Self {
            mime: payload.text("mime")?.into_owned(),
            size_bytes: payload.get("size_bytes")?.as_u64()?,
            blob_id: payload.text("blob_id")?.parse().ok()?,
            uri: payload.text("uri").map(Into::into),
            phash: phash.and_then(|it| it.text("hex")?.parse().ok()),
            embedding: embedding
                .filter(|it| it.kind() == Kind::Object)
                .map(|it| it.raw().into()),
        })
    }

    /// The payload as JSON.
    #[expect(
        clippy::missing_panics_doc,
        reason = "what is made of JSON values is JSON"
    )]
    pub fn to_json(&self) -> Json {
        let string = |text: &str| Json::string(text).get().to_owned();
        let mut text = format!(
            "{{\"mime\":{},\"size_bytes\":{},\"blob_id\":\"{}\"",
            string(&self.mime),
            self.size_bytes,
            self.blob_id.prefixed(),
        );
        if let Some(uri) = &self.uri {
            text += ",\"uri\":";
            text += &string(uri);
        }
        if let Some(hash) = self.phash {
            let hash = format!(",\"phash\":{{\"algo\":\"{ALGORITHM}\",\"hex\":\"{hash}\"}}");
            text += &hash;
        }
        if let Some(embedding) = &self.embedding {
            text.push_str(",\"embedding\":");
            text.push_str(embedding.get());
        }
        text.push('}');
        // However deep an embedding nests: it was read before.
        let mut tape = Tape::new();
        let whole = tape.read(&text, usize::MAX);
        whole.expect("made of JSON values").raw().into()
    }
}

/// What bytes look like, where they are a picture and pictures can be read.
pub(crate) fn hash(bytes: &[u8]) -> Option<DHash> {
    #[cfg(feature = "images")]
    {
        super::phash::of_image(bytes).ok()
    }
    #[cfg(not(feature = "images"))]
    {
        let _ = bytes;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<BlobRef> {
        BlobRef::read(Tape::new().read(text, 100).unwrap())
    }

    #[test]
    fn reads_what_it_writes() {
        let mut reference = BlobRef::of(b"%PDF-1.7", Some("text/plain"));
        assert_eq!(reference.mime, "application/pdf");
        assert_eq!(read(reference.to_json().get()).unwrap(), reference);
        // Numbers stay as they are written.
        let vector = r#"{"model":"clip","dim":2,"vec":[0.1000,1e-7]}"#;
        reference.embedding = Some(Json::parse(vector).unwrap());
        reference.phash = Some(DHash(7));
        let text = reference.to_json();
        assert!(text.get().ends_with(&format!(",\"embedding\":{vector}}}")));
        assert!(
            text.get()
                .contains(r#""phash":{"algo":"dhash64","hex":"0000000000000007"}"#)
        );
        assert_eq!(read(text.get()).unwrap(), reference);
    }

    #[test]
    fn what_names_no_blob_is_no_reference() {
        for wrong in [
            "{}",
            r#"{"mime":"a/b","size_bytes":1,"blob_id":"sha256:12"}"#,
            r#"{"mime":"a/b","size_bytes":-1,"blob_id":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#,
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
