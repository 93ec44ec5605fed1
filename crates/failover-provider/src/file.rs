//! What a request shows besides texts and images: documents and recordings.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A document or a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct File {
    /// Where it is.
    pub source: FileSource,
    /// Its name, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Where a file is. One that a provider stores is none: it is bound to that provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "every adapter must map every source")]
pub enum FileSource {
    /// Fetched by the provider.
    Url(String),
    /// In the request itself.
    Base64 {
        /// Media type: `application/pdf`.
        media_type: String,
        /// The bytes, in standard base64.
        data: String,
    },
    /// A plain text.
    Text(String),
}

/// Endings of names and the media types that they stand for; the first row that fits counts.
const KINDS: &[(&str, &str)] = &[
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("wav", "audio/wav"),
    ("wav", "audio/x-wav"),
    ("mp3", "audio/mpeg"),
    ("mp3", "audio/mp3"),
    ("flac", "audio/flac"),
    ("ogg", "audio/ogg"),
    ("m4a", "audio/mp4"),
];

/// The media type that the ending of a name or an address tells.
fn told_by(name: &str) -> Option<&'static str> {
    let path = name.split(['?', '#']).next()?;
    let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    KINDS.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known)).map(|(_, media_type)| *media_type)
}

impl File {
    /// A file from its source.
    pub fn new(source: FileSource) -> Self {
        Self { source, name: None }
    }

    /// A file that is written into a request: a `data:` URL, an address, or base64, which is a PDF unless its name says
    /// otherwise.
    pub fn written(text: String, name: Option<String>) -> Self {
        let inline = text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let source = match inline {
            Some((media, data)) => {
                let media_type = media.split(';').next().unwrap_or_default().to_owned();
                FileSource::Base64 { media_type, data: data.to_owned() }
            }
            None if text.contains("://") => FileSource::Url(text),
            None => {
                let media_type = name.as_deref().and_then(told_by).unwrap_or("application/pdf").to_owned();
                FileSource::Base64 { media_type, data: text }
            }
        };
        Self { source, name }
    }

    /// Gives it a name.
    #[must_use]
    pub fn with_name(mut self, name: Option<String>) -> Self {
        self.name = name;
        self
    }

    /// Its media type, where it is given, or told by the ending of its address.
    pub fn media_type(&self) -> Option<&str> {
        match &self.source {
            FileSource::Url(url) => told_by(url),
            FileSource::Base64 { media_type, .. } => Some(media_type),
            FileSource::Text(_) => Some("text/plain"),
        }
    }

    /// How names of its kind end: `pdf`.
    pub fn ending(&self) -> Option<&'static str> {
        let own = self.media_type()?;
        KINDS.iter().find(|(_, media_type)| own.eq_ignore_ascii_case(media_type)).map(|(ending, _)| *ending)
    }

    /// Whether it is heard, not read.
    pub fn is_audio(&self) -> bool {
        self.media_type().is_some_and(|media_type| media_type.starts_with("audio/"))
    }

    /// Whether it is a plain text that comes with the request: any API has a place for that.
    pub fn is_text(&self) -> bool {
        match &self.source {
            FileSource::Url(_) => false,
            FileSource::Base64 { media_type, .. } => {
                media_type.starts_with("text/") || matches!(self.ending(), Some("json" | "xml"))
            }
            FileSource::Text(_) => true,
        }
    }

    /// The text of a plain one.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match &self.source {
            FileSource::Text(text) => Some(Cow::Borrowed(text)),
            FileSource::Base64 { data, .. } if self.is_text() => {
                String::from_utf8(decoded(data)?).ok().map(Cow::Owned)
            }
            FileSource::Base64 { .. } | FileSource::Url(_) => None,
        }
    }

    /// The text of a plain one under its name: for APIs that have no place for files.
    pub fn as_text(&self) -> Option<String> {
        let text = self.text()?;
        Some(match &self.name {
            Some(name) => format!("{name}:\n\n{text}"),
            None => text.into_owned(),
        })
    }

    /// Its name, or one for its kind.
    pub fn file_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("document.{}", self.ending().unwrap_or("pdf")))
    }

    /// Its address, or all of it as one.
    pub fn as_url(&self) -> Option<String> {
        match &self.source {
            FileSource::Url(url) => Some(url.clone()),
            FileSource::Base64 { media_type, data } => Some(format!("data:{media_type};base64,{data}")),
            FileSource::Text(_) => None,
        }
    }
}

/// The bytes of standard base64, with or without what fills it up.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for letter in text.trim_end_matches('=').bytes().filter(|letter| !letter.is_ascii_whitespace()) {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn base64(media_type: &str, data: &str) -> FileSource {
        FileSource::Base64 { media_type: media_type.into(), data: data.into() }
    }

    // spec: P-5
    #[test_case("data:application/pdf;name=a.pdf;base64,eA==", None, &base64("application/pdf", "eA=="); "a data URL")]
    #[test_case("https://a.example/b.pdf", None, &FileSource::Url("https://a.example/b.pdf".into()); "an address")]
    #[test_case("eA==", Some("a.CSV"), &base64("text/csv", "eA=="); "bare, and named")]
    #[test_case("eA==", None, &base64("application/pdf", "eA=="); "bare")]
    fn files_are_read_as_they_are_written(text: &str, name: Option<&str>, expected: &FileSource) {
        assert_eq!(&File::written(text.to_owned(), name.map(str::to_owned)).source, expected);
    }

    // spec: P-5
    #[test_case(base64("text/csv", "YSxiCjEsMg=="), Some("t:\n\na,b\n1,2"); "a table")]
    #[test_case(base64("text/plain", "w6k"), Some("t:\n\né"); "not filled up")]
    #[test_case(base64("text/plain", "*"), None; "no base64")]
    #[test_case(base64("application/pdf", "YQ=="), None; "no text")]
    #[test_case(FileSource::Text("x".into()), Some("t:\n\nx"); "a text")]
    fn plain_ones_can_be_read_anywhere(source: FileSource, expected: Option<&str>) {
        let file = File::new(source).with_name(Some("t".into()));
        assert_eq!(file.as_text().as_deref(), expected);
    }

    #[test_case(FileSource::Url("https://a.example/b.WAV?x=1".into()), Some("wav"), true)]
    #[test_case(base64("audio/x-wav", ""), Some("wav"), true)]
    #[test_case(base64("audio/mpeg", ""), Some("mp3"), true)]
    #[test_case(base64("application/pdf", ""), Some("pdf"), false)]
    #[test_case(FileSource::Url("https://a.example/b".into()), None, false)]
    fn kinds_are_told(source: FileSource, ending: Option<&str>, audio: bool) {
        let file = File::new(source);
        assert_eq!((file.ending(), file.is_audio()), (ending, audio));
    }
}
