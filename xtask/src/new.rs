//! `new provider NAME`: an adapter crate that builds, and passes conformance once two functions are filled in.

use crate::run::{Faults, Outcome, root};
use std::fs;
use std::path::Path;

/// The crate's files and what goes into them.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("provider/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("provider/lib.rs.txt")),
    ("src/adapter.rs", include_str!("provider/adapter.rs.txt")),
    ("src/map.rs", include_str!("provider/map.rs.txt")),
    ("src/decode.rs", include_str!("provider/decode.rs.txt")),
    ("tests/conformance.rs", include_str!("provider/conformance.rs.txt")),
];

/// Where a line for the new crate belongs: the file, and what its neighbors begin with.
const LISTS: &[(&str, &str)] =
    &[("Cargo.toml", "failover-provider-"), ("README.md", "| `failover-provider-")];

/// Writes the crate that the arguments name.
pub(crate) fn main(args: &[String]) -> Outcome {
    let [kind, name] = args else {
        return Err(Faults::one("usage: cargo xtask new provider NAME"));
    };
    if kind != "provider" {
        return Err(Faults::one(format!("there is no template for a {kind}: `provider` is one")));
    }
    provider(&root(), name)?;
    println!("wrote crates/failover-provider-{name}; fill in `map` and `Decoder::read`, then run");
    println!("  cargo test -p failover-provider-{name}");
    Ok(())
}

/// Writes an adapter crate into the workspace at `root`, and lists it where crates are listed.
pub(crate) fn provider(root: &Path, name: &str) -> Outcome {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !starts || !name.bytes().all(plain) || name.ends_with('-') {
        return Err(Faults::one(format!(
            "{name:?} is no name for a crate: lower-case letters, digits and hyphens"
        )));
    }
    let home = root.join("crates").join(format!("failover-provider-{name}"));
    if home.exists() {
        return Err(Faults::one(format!("{} is there already", home.display())));
    }
    for (file, template) in FILES {
        let path = home.join(file);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| io(folder, &error))?;
        }
        fs::write(&path, filled(template, name)).map_err(|error| io(&path, &error))?;
    }
    let lines = [
        format!(
            "failover-provider-{name} = {{ path = \"crates/failover-provider-{name}\", version = \"0.1.0\" }}"
        ),
        format!("| `failover-provider-{name}` | {} |", title(name)),
    ];
    for ((file, neighbor), line) in LISTS.iter().zip(lines) {
        let path = root.join(file);
        let text = fs::read_to_string(&path).map_err(|error| io(&path, &error))?;
        let listed = list(&text, neighbor, &line)
            .ok_or_else(|| Faults::one(format!("{file}: no line begins with {neighbor:?}")))?;
        fs::write(&path, listed).map_err(|error| io(&path, &error))?;
    }
    Ok(())
}

fn io(path: &Path, error: &std::io::Error) -> Faults {
    Faults::one(format!("{}: {error}", path.display()))
}

fn filled(template: &str, name: &str) -> String {
    template
        .replace("{{name}}", name)
        .replace("{{Name}}", &title(name))
        .replace("{{module}}", &name.replace('-', "_"))
}

/// A type's name: `MyVendor` for `my-vendor`.
fn title(name: &str) -> String {
    let words = name.split('-').filter_map(|word| {
        let (first, rest) = word.split_at_checked(1)?;
        Some(first.to_ascii_uppercase() + rest)
    });
    words.collect()
}

/// The text with a line behind the last one that begins like its neighbors.
fn list(text: &str, neighbor: &str, line: &str) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().rposition(|known| known.starts_with(neighbor))?;
    lines.insert(last + 1, line);
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_types_and_modules() {
        let text = filled("{{name}} {{Name}} {{module}}", "my-vendor-2");
        assert_eq!(text, "my-vendor-2 MyVendor2 my_vendor_2");
    }

    #[test]
    fn a_line_goes_behind_its_neighbors() {
        let text = "a-1\na-2\nb\n";
        assert_eq!(list(text, "a-", "a-3").as_deref(), Some("a-1\na-2\na-3\nb\n"));
        assert_eq!(list(text, "c-", "c"), None);
    }

    // spec: P-6
    #[test]
    fn the_example_outside_is_the_template_with_its_two_functions_filled_in() {
        for (file, template) in
            FILES.iter().filter(|(file, _)| !file.contains("map") && !file.contains("decode"))
        {
            if *file == "Cargo.toml" {
                continue;
            }
            let example = crate::run::text(&format!("fixtures/outside-provider/{file}")).unwrap();
            assert_eq!(example, filled(template, "acme"), "{file}");
        }
    }
}
