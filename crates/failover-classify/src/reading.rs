//! One level of a signal, read: what rows are held against.

use crate::compile::{Compiled, Row, is_spelled};
use crate::facts;
use crate::fields::{self, Fields};
use crate::lower::Lower;
use crate::rule::Matcher;
use crate::scan::Found;
use crate::source::Source;
use crate::view::{self, View};
use crate::weights::{Met, Weighed};
use crate::words::Heard;
use crate::{RetryHint, Signal, Tokens, hints};
use std::cell::{Cell, OnceCell};

/// Memory of readings, used again for the next one on the same thread: a body that is read allocates nothing.
#[derive(Default)]
pub(crate) struct Scratch {
    view: View,
    fields: Fields,
    found: Found,
    /// Of each code: 0 if it is absent, [`BESIDE`], or the number of the field plus [`FIRST_FIELD`].
    code_at: Vec<u32>,
    /// The codes that are present.
    codes: Vec<u32>,
    /// The text without spaces, if it may be a complete answer.
    squeezed: Vec<u8>,
    /// What is met while words are weighed.
    met: Cell<Met>,
}

/// The code stands beside the body: in a header, or as the signal's own.
const BESIDE: u32 = 1;
const FIRST_FIELD: u32 = 2;
/// A thread keeps no more memory than about this many bytes until its next reading; a hostile body may need more.
const KEPT: usize = 1 << 20;

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Lends the thread's memory.
pub(crate) fn with_scratch<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
    let mut scratch = SCRATCH.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let result = work(&mut scratch);
    if scratch.view.memory() + scratch.found.memory() <= KEPT {
        // A thread that is ending keeps nothing.
        let _ = SCRATCH.try_with(|place| place.set(Some(scratch)));
    }
    result
}

/// Something is present; and where in the view, if it stands in the text.
#[derive(Clone, Copy)]
pub(crate) struct Present {
    pub(crate) span: Option<(usize, usize)>,
}

/// A signal without its causes, and all that was found in it.
pub(crate) struct Reading<'a> {
    pub(crate) signal: Signal<'a>,
    pub(crate) source: Source<'a>,
    /// The status that counts: the signal's own, or one read from the text.
    pub(crate) status: Option<u16>,
    compiled: &'a Compiled,
    scratch: &'a Scratch,
    hint: OnceCell<Option<RetryHint>>,
    pub(crate) bare: OnceCell<bool>,
    pub(crate) prose: OnceCell<bool>,
    pub(crate) empty_answer: OnceCell<bool>,
    pub(crate) plain: OnceCell<bool>,
    pub(crate) weighed: OnceCell<Option<Weighed>>,
    text: OnceCell<&'a str>,
}

impl Reading<'_> {
    pub(crate) fn view(&self) -> &View {
        &self.scratch.view
    }

    /// The view as text.
    pub(crate) fn text(&self) -> &str {
        self.text.get_or_init(|| std::str::from_utf8(self.scratch.view.bytes()).unwrap_or_default())
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.scratch.fields
    }

    pub(crate) fn heard(&self) -> &Heard {
        &self.scratch.found.heard
    }

    pub(crate) fn met(&self) -> &Cell<Met> {
        &self.scratch.met
    }

    pub(crate) fn squeezed(&self) -> &[u8] {
        &self.scratch.squeezed
    }

    /// When to come back. Read when first asked for: most failures say nothing of it, or it does not matter.
    pub(crate) fn hint(&self) -> Option<&RetryHint> {
        self.hint.get_or_init(|| hints::read(self)).as_ref()
    }

    pub(crate) fn tokens(&self) -> Option<Tokens> {
        self.heard().tally.tokens()
    }

    /// Where a phrase stands in the view.
    fn phrase(&self, id: u32) -> Option<(usize, usize)> {
        self.compiled.phrase(id, (self.view(), &self.source), &self.scratch.found)
    }

    /// Bytes and matches looked at if every phrase is asked for: what a bound on work is held against.
    pub(crate) fn steps(&self) -> u64 {
        self.compiled.begin(&self.scratch.found, u32::MAX);
        (0..).zip(&self.compiled.phrases).for_each(|(id, _)| _ = self.phrase(id));
        let read = self.source.head.len() + self.source.tail.as_ref().map_or(0, |(_, text)| text.len());
        self.scratch.found.steps.get() + read as u64
    }

    /// Rows that may hold, in the order of precedence. Where a code speaks for a row, phrases are first looked for only as
    /// far as rows up to that one ask for them: it holds nearly always, and nobody looks further.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = usize> {
        let found = &self.scratch.found;
        let mut last = self.first_by_code();
        self.compiled.begin(found, last);
        let mut from = 0;
        std::iter::from_fn(move || {
            let mut row = found.next_row(from);
            if last != u32::MAX && row.is_none_or(|row| row > last as usize) {
                last = u32::MAX;
                self.compiled.begin(found, last);
                row = found.next_row(from);
            }
            from = row? + 1;
            row
        })
    }

    /// The first row that a code speaks for, of those that fit the signal.
    fn first_by_code(&self) -> u32 {
        let Compiled { rows_of_code, rows_of_codes, rows, .. } = self.compiled;
        let lists = self.scratch.codes.iter().filter_map(|code| rows_of_code.get(*code as usize));
        let spoken_for = lists.flat_map(|list| list.of(rows_of_codes)).copied();
        let fits = |row: &u32| rows.get(*row as usize).is_some_and(|row| self.fits(&row.rule.matcher));
        spoken_for.filter(fits).min().unwrap_or(u32::MAX)
    }

    /// Whether what stands beside the text is what a row asks for.
    fn fits(&self, matcher: &Matcher) -> bool {
        matcher.status.is_none_or(|set| set.holds(self.status))
            && (matcher.providers.is_empty()
                || matcher.providers.iter().any(|name| is_provider(&self.signal, name)))
            && (matcher.surfaces.is_empty() || matcher.surfaces.contains(&self.signal.surface))
    }

    /// Whether one of these codes is present.
    fn code(&self, ids: &[u32]) -> Option<Present> {
        let place = |id: &u32| self.scratch.code_at.get(*id as usize).copied().filter(|place| *place > 0);
        let place = ids.iter().filter_map(place).min()?;
        let span = place.checked_sub(FIRST_FIELD).and_then(|index| self.scratch.fields.span(index as usize));
        Some(Present { span })
    }

    /// Whether a row holds, and what of it stands in the text (in bytes of the view).
    pub(crate) fn row<'r>(&self, row: &'r Row) -> Option<(&'r Row, Option<(usize, usize)>)> {
        let matcher: &Matcher = &row.rule.matcher;
        let signal = &self.signal;
        // Such rows ask for little else, and one of many holds.
        if row.rule.family.is_weighed() && !matcher.facts.first().is_some_and(|fact| self.holds(*fact)) {
            return None;
        }
        if !self.fits(matcher) {
            return None;
        }
        // Found already, while phrases are followed when they are asked for.
        let code = if row.codes.is_empty() { None } else { Some(self.code(&row.codes)?) };
        if self.code(&row.no_codes).is_some() {
            return None;
        }
        let phrase = |id: &u32| self.phrase(*id);
        let mut span = None;
        if !row.any.is_empty() {
            span = Some(row.any.iter().filter_map(phrase).min()?);
        }
        for id in &row.all {
            let found = phrase(id)?;
            span = span.or(Some(found));
        }
        if row.none.iter().any(|id| phrase(id).is_some()) {
            return None;
        }
        span = span.or(code.and_then(|code| code.span));
        if let Some((name, part)) = matcher.header {
            let has = signal.headers.iter().any(|(key, value)| {
                key.eq_ignore_ascii_case(name) && view::find_ignore_case_or_empty(value, part)
            });
            if !has {
                return None;
            }
        }
        if !matcher.facts.iter().all(|fact| self.holds(*fact)) {
            return None;
        }
        if row.rule.family.is_weighed() {
            span = span.or_else(|| self.strongest());
        }
        Some((row, span))
    }
}

fn is_provider(signal: &Signal<'_>, name: &str) -> bool {
    signal.provider.is_some_and(|provider| {
        view::has_at(provider, 0, name)
            && provider.as_bytes().get(name.len()).is_none_or(|next| *next == b'-')
    })
}

impl Compiled {
    /// Reads a signal; its causes are left aside.
    pub(crate) fn read<'a>(&'a self, signal: Signal<'a>, scratch: &'a mut Scratch) -> Reading<'a> {
        let source = Source::of(signal.body);
        scratch.view.read(&source);
        scratch.fields.read(&scratch.view, &source);
        self.scan(&scratch.view, &mut scratch.found);
        facts::squeeze(scratch.view.bytes(), scratch.found.heard.answer, &mut scratch.squeezed);
        bare_codes(&source, scratch);
        scratch.fields.classes(&scratch.view, &source);
        self.mark_codes(&signal, scratch);
        for code in &scratch.codes {
            let rows = self.rows_of_code.get(*code as usize).copied().unwrap_or_default();
            rows.of(&self.rows_of_codes).iter().for_each(|row| scratch.found.row(*row));
        }
        let own = signal.code.and_then(|code| code.parse().ok()).filter(|code| (400..600).contains(code));
        // A relay's 5xx around the 4xx that it was answered with.
        let inner = |status| scratch.fields.status().filter(|inner| *inner < 500).unwrap_or(status);
        let told = signal.status.filter(|status| *status >= 400);
        let told = told.map(|status| if status >= 500 { inner(status) } else { status });
        let status = told.or(own);
        let status = status.or_else(|| scratch.fields.status()).or(signal.status);
        Reading {
            signal,
            source,
            status,
            compiled: self,
            scratch,
            hint: OnceCell::new(),
            bare: OnceCell::new(),
            prose: OnceCell::new(),
            empty_answer: OnceCell::new(),
            plain: OnceCell::new(),
            weighed: OnceCell::new(),
            text: OnceCell::new(),
        }
    }

    fn mark_codes(&self, signal: &Signal<'_>, scratch: &mut Scratch) {
        for code in scratch.codes.drain(..) {
            if let Some(place) = scratch.code_at.get_mut(code as usize) {
                *place = 0;
            }
        }
        if scratch.code_at.len() < self.codes.len() {
            scratch.code_at.resize(self.codes.len(), 0);
        }
        let (code_at, codes) = (&mut scratch.code_at, &mut scratch.codes);
        let mut mark = |value: &str, found_at: u32| {
            for id in self.codes.of(value) {
                if let Some(place) = code_at.get_mut(id as usize).filter(|place| **place == 0) {
                    *place = found_at;
                    codes.push(id);
                }
            }
        };
        for code in signal.code.into_iter().chain(header_codes(signal)) {
            mark(Lower::<{ fields::LONGEST }>::of(code).as_str(), BESIDE);
        }
        for (index, ((value, _), found_at)) in scratch.fields.codes().zip(FIRST_FIELD..).enumerate() {
            if !scratch.fields.codes().take(index).any(|(earlier, _)| earlier == value) {
                mark(value, found_at);
            }
        }
    }
}

/// Codes that cannot be ordinary words count wherever they stand.
fn bare_codes(source: &Source<'_>, scratch: &mut Scratch) {
    scratch.found.codes.sort_unstable_by_key(|hit| (hit.literal, hit.start));
    for hit in &scratch.found.codes {
        let span = (hit.start as usize, hit.end as usize);
        // A true space settles it most often.
        let space = scratch.view.slice(span.0..span.1).iter().position(|byte| *byte == b' ');
        if space.is_some_and(|at| source.byte(scratch.view.origin(span.0 + at)) == Some(b' ')) {
            continue;
        }
        let (start, end) = scratch.view.origins(span);
        let (word, around) = (source.cut(start, end), source.cut(start.saturating_sub(1), end + 2));
        // The view folds `_` and `-`: only the source knows how the word is written, and whether it ends here.
        if !word.contains(' ') && is_spelled(word) && stands_alone(around, word) {
            scratch.fields.code(word, span);
        }
    }
}

/// Headers that carry a code.
fn header_codes<'a>(signal: &Signal<'a>) -> impl Iterator<Item = &'a str> {
    const NAMES: [&str; 4] = ["x-amzn-errortype", "x-ms-error-code", "x-error-code", "grpc-status"];
    signal
        .headers
        .iter()
        .filter(|(name, _)| NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)))
        .filter_map(|(_, value)| value.split([':', ',']).next().map(str::trim))
}

/// Whether `word` stands in `around`, written exactly so, with no letter, digit, `_` or `-` beside it, and no dot that
/// a longer code goes on behind.
fn stands_alone(around: &str, word: &str) -> bool {
    let (around, word) = (around.as_bytes(), word.as_bytes());
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let Some(at) = around.windows(word.len()).position(|window| window == word) else { return false };
    let before = at.checked_sub(1).and_then(|before| around.get(before));
    let after = around.get(at + word.len()..).unwrap_or_default();
    let goes_on =
        after.first().is_some_and(joins) || after.first() == Some(&b'.') && after.get(1).is_some_and(joins);
    !before.is_some_and(joins) && !goes_on
}
