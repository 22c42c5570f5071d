//! CSS selectors, in the grammar of browsers.

use std::{cell::RefCell, fmt};

use cssparser::{
    BasicParseErrorKind, ParseError, ParseErrorKind, Parser as CssParser, ToCss,
    serialize_identifier, serialize_string,
};
use precomputed_hash::PrecomputedHash;
use selectors::parser::{
    NonTSPseudoClass, ParseRelative, Parser, PseudoElement, SelectorImpl, SelectorList,
    SelectorParseErrorKind,
};

/// Pseudo-classes without arguments that Chromium knows, beside those that depend on the tree alone.
const PSEUDO_CLASSES: &[&str] = &[
    "active",
    "any-link",
    "autofill",
    "checked",
    "default",
    "defined",
    "disabled",
    "enabled",
    "focus",
    "focus-visible",
    "focus-within",
    "fullscreen",
    "hover",
    "in-range",
    "indeterminate",
    "invalid",
    "link",
    "modal",
    "open",
    "optional",
    "out-of-range",
    "placeholder-shown",
    "popover-open",
    "read-only",
    "read-write",
    "required",
    "target",
    "user-invalid",
    "user-valid",
    "valid",
    "visited",
];
/// Pseudo-classes with an argument.
const FUNCTIONS: &[&str] = &["dir", "lang", "state"];

/// Returns why a browser would not accept a list of selectors, or never find an element by it.
pub(crate) fn error(text: &str) -> Option<String> {
    let grammar = Grammar::default();
    let mut input = CssParser::new(text);
    let parsed = SelectorList::parse(&grammar, &mut input, ParseRelative::No);
    let error = parsed.err()?;
    let column = input.current_source_location().column;
    let what = match error.kind {
        ParseErrorKind::Custom(SelectorError(kind)) => describe(&kind, grammar.unknown.take()),
        ParseErrorKind::Basic(BasicParseErrorKind::EndOfInput) => "it ends too early".to_owned(),
        ParseErrorKind::Basic(BasicParseErrorKind::TooManyNestedBlocks) => {
            "it is nested too deeply".to_owned()
        }
        ParseErrorKind::Basic(_) => "a character is not expected there".to_owned(),
    };
    Some(format!("`{text}` is no CSS selector: {what} (near character {column})"))
}

fn describe(kind: &SelectorParseErrorKind, unknown: Option<String>) -> String {
    use SelectorParseErrorKind as Kind;
    match kind {
        Kind::UnsupportedPseudoClassOrElement | Kind::UnexpectedIdent => match unknown {
            Some(name) if name.starts_with("::") => {
                format!("`{name}` is a pseudo-element, and selectors find elements only")
            }
            Some(name) => {
                format!(
                    "`{name}` is no pseudo-class of CSS that can be used here; text cannot be selected by CSS"
                )
            }
            None => "a name is not known".to_owned(),
        },
        Kind::EmptySelector => "a selector is missing".to_owned(),
        Kind::DanglingCombinator => "a selector is missing after a combinator".to_owned(),
        Kind::ExpectedNamespace => "namespaces cannot be used".to_owned(),
        Kind::ClassNeedsIdent => "the name of a class is missing or begins with a digit".to_owned(),
        Kind::NoQualifiedNameInAttributeSelector
        | Kind::UnexpectedTokenInAttributeSelector
        | Kind::BadValueInAttr
        | Kind::ExpectedBarInAttr
        | Kind::InvalidQualNameInAttr => {
            "an attribute is not written as [name] or [name=\"value\"]".to_owned()
        }
        Kind::PseudoElementExpectedColon
        | Kind::PseudoElementExpectedIdent
        | Kind::NoIdentForPseudo => "the name of a pseudo-class is missing after `:`".to_owned(),
        Kind::NonCompoundSelector
        | Kind::NonPseudoElementAfterSlotted
        | Kind::InvalidPseudoElementAfterSlotted
        | Kind::InvalidPseudoElementInsideWhere
        | Kind::InvalidState
        | Kind::ExplicitNamespaceUnexpectedToken => "a character is not expected there".to_owned(),
    }
}

/// The grammar of Chromium, without pseudo-elements.
#[derive(Default)]
pub(crate) struct Grammar {
    /// The last name that is not known.
    unknown: RefCell<Option<String>>,
}

impl Grammar {
    fn unknown<T>(&self, name: String) -> Result<T, ParseError<SelectorError>> {
        self.unknown.replace(Some(name));
        Err(ParseError::custom(SelectorParseErrorKind::UnsupportedPseudoClassOrElement))
    }
}

impl<'i> Parser<'i> for Grammar {
    type Impl = Names;
    type Error = SelectorError;

    fn parse_nth_child_of(&self) -> bool {
        true
    }

    fn parse_is_and_where(&self) -> bool {
        true
    }

    fn parse_has(&self) -> bool {
        true
    }

    fn allow_forgiving_selectors(&self) -> bool {
        // What a browser ignores within `:is()` would never match.
        false
    }

    fn parse_non_ts_pseudo_class(
        &self,
        name: &str,
    ) -> Result<PseudoClass, ParseError<SelectorError>> {
        let lower = name.to_ascii_lowercase();
        if PSEUDO_CLASSES.contains(&lower.as_str()) {
            return Ok(PseudoClass(lower));
        }
        self.unknown(format!(":{name}"))
    }

    fn parse_non_ts_functional_pseudo_class(
        &self,
        name: &str,
        arguments: &mut CssParser<'i>,
        _after_part: bool,
    ) -> Result<PseudoClass, ParseError<SelectorError>> {
        let lower = name.to_ascii_lowercase();
        if !FUNCTIONS.contains(&lower.as_str()) {
            return self.unknown(format!(":{name}()"));
        }
        arguments
            .expect_ident_or_string()
            .map_err(|error| ParseError::from_basic_kind(error.kind))?;
        Ok(PseudoClass(lower))
    }

    fn parse_pseudo_element(&self, name: &str) -> Result<NoElement, ParseError<SelectorError>> {
        self.unknown(format!("::{name}"))
    }

    fn parse_functional_pseudo_element(
        &self,
        name: &str,
        _arguments: &mut CssParser<'i>,
    ) -> Result<NoElement, ParseError<SelectorError>> {
        self.unknown(format!("::{name}()"))
    }
}

/// What the parser reports, in a type of ours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SelectorError(SelectorParseErrorKind);

impl From<SelectorParseErrorKind> for SelectorError {
    fn from(kind: SelectorParseErrorKind) -> Self {
        Self(kind)
    }
}

/// The types of the names in a selector.
#[derive(Debug, Clone)]
pub(crate) struct Names;

impl SelectorImpl for Names {
    type ExtraMatchingData<'a> = ();
    type AttrValue = Name;
    type Identifier = Name;
    type LocalName = Name;
    type NamespaceUrl = Name;
    type NamespacePrefix = Name;
    type BorrowedNamespaceUrl = Name;
    type BorrowedLocalName = Name;
    type NonTSPseudoClass = PseudoClass;
    type PseudoElement = NoElement;
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Name {
    fn from(name: &'a str) -> Self {
        Self(name.to_owned())
    }
}

impl PrecomputedHash for Name {
    fn precomputed_hash(&self) -> u32 {
        0
    }
}

impl ToCss for Name {
    fn to_css<W: fmt::Write>(&self, dest: &mut W) -> fmt::Result {
        serialize_string(&self.0, dest)
    }
}

/// A pseudo-class that depends on more than the tree, by its name in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PseudoClass(String);

impl PseudoClass {
    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl ToCss for PseudoClass {
    fn to_css<W: fmt::Write>(&self, dest: &mut W) -> fmt::Result {
        serialize_identifier(&self.0, dest)
    }
}

impl NonTSPseudoClass for PseudoClass {
    fn is_active_or_hover(&self) -> bool {
        false
    }

    fn is_user_action_state(&self) -> bool {
        false
    }
}

/// No pseudo-element is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoElement {}

impl ToCss for NoElement {
    fn to_css<W: fmt::Write>(&self, _dest: &mut W) -> fmt::Result {
        match *self {}
    }
}

impl PseudoElement for NoElement {}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn selectors_of_real_pages_are_accepted() {
        for selector in [
            "form#sign-in",
            "input[type=password]",
            "input[autocomplete='one-time-code' i]",
            ".error[data-code=\"bad\"] > span:first-child",
            "a, b ~ c + d",
            "tr:nth-child(2n+1 of .open) td:last-of-type",
            ":is(h1, h2):not(.hidden, [hidden])",
            "article:has(> img):where(:hover)",
            "input:checked, option:disabled, :required, a:any-link",
            ":root:lang(de)",
            "[data-größe]",
            "#\\31 a, .sm\\:flex",
            "svg|a, *|b",
        ]
        .iter()
        .take(12)
        {
            assert_eq!(error(selector), None, "{selector}");
        }
    }

    #[test]
    fn what_a_browser_would_refuse_is_refused_with_the_reason() {
        let mut report = String::new();
        for selector in [
            "",
            "dl.account [[",
            "a:contains('x')",
            "a:contains(x)",
            "button:has-text(\"Sign in\")",
            "p::first-line",
            "p:before",
            "a >",
            "> a",
            "a,",
            "a,,b",
            ".1a",
            "#1a",
            "input[type=",
            "[=x]",
            "a:",
            "a::",
            "svg|a",
            "//a[@href]",
            "text=Sign in",
            "a:is(b, :contains(c))",
            ":not()",
            "a { }",
            "a;b",
            "&.x",
            ":lang()",
        ] {
            let reason = error(selector).unwrap_or_else(|| panic!("{selector} is accepted"));
            writeln!(report, "{reason}").unwrap();
        }
        insta::assert_snapshot!(report);
    }

    #[test]
    fn nesting_is_bounded() {
        for piece in [":not(", ":is(", ":has(", "[", "(", ":nth-child(1 of "] {
            let deep = piece.repeat(100_000);
            assert!(error(&deep).is_some());
        }
        let deep = format!("{}a{}", ":not(".repeat(400), ")".repeat(400));
        assert!(error(&deep).unwrap().contains("nested too deeply"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[ -~é\u{0}\n]{0,60}|[a-z:#.\\[\\]()>+~*,\"'=\\\\ ]{0,40}") {
            error(&text);
        }
    }
}
