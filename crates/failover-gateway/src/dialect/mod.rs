//! The dialects that clients speak: request in, answer, stream and error out. Pure: bytes and values, no I/O.
