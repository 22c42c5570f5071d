//! A team's branding, which applicants see on the embed page and in mails.

use std::{fmt, str::FromStr, sync::Arc};

use crate::https_url::HttpsUrl;

pub const MAX_BRAND_NAME_CHARS: usize = 60;
/// The maximum size of a logo file, since phones fetch it with the embed page over mobile networks.
pub const MAX_LOGO_BYTES: usize = 8000;
/// The maximum width and height of a logo: even a small file can decode to an image that exhausts
/// memory.
pub const MAX_LOGO_PIXELS: u32 = 1024;
/// The contrast ratio from which white text is legible (WCAG 2.2, success criterion 1.4.3).
const MIN_CONTRAST: f64 = 4.5;

/// A team's name, colour, logo and privacy policy, each optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Brand {
    pub name: Option<BrandName>,
    pub colour: Option<Colour>,
    pub logo: Option<Logo>,
    /// The page on which the team says what it does with an applicant's data.
    pub privacy_url: Option<HttpsUrl>,
}

/// The name that a team shows to applicants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrandName(String);

impl BrandName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BrandName {
    type Err = InvalidBrand;

    fn from_str(text: &str) -> Result<Self, InvalidBrand> {
        let text = text.trim();
        let fits = (1..=MAX_BRAND_NAME_CHARS).contains(&text.chars().count());
        if fits && !text.contains(char::is_control) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidBrand::Name)
    }
}

/// A colour on which white text is legible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour([u8; 3]);

impl Colour {
    /// Returns the contrast ratio to white (WCAG 2.2).
    fn contrast(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = self.0.map(linear);
        1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(out, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl FromStr for Colour {
    type Err = InvalidBrand;

    fn from_str(text: &str) -> Result<Self, InvalidBrand> {
        let digits = text.trim().strip_prefix('#').ok_or(InvalidBrand::Colour)?;
        if digits.len() != 6 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(InvalidBrand::Colour);
        }
        let number = u32::from_str_radix(digits, 16).map_err(|_| InvalidBrand::Colour)?;
        let [_, red, green, blue] = number.to_be_bytes();
        let colour = Self([red, green, blue]);
        if colour.contrast() < MIN_CONTRAST { Err(InvalidBrand::Faint) } else { Ok(colour) }
    }
}

/// An image in the PNG format, which all browsers and mail programs show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logo(Arc<[u8]>);

impl Logo {
    /// Reads a file.
    ///
    /// # Errors
    /// The file is not a PNG (W3C, Portable Network Graphics, sections 5.2 and 11.2.1), or is too
    /// large.
    pub fn read(file: &[u8]) -> Result<Self, InvalidBrand> {
        const PREFIX: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        if file.len() > MAX_LOGO_BYTES {
            return Err(InvalidBrand::LargeLogo);
        }
        let rest = file.strip_prefix(PREFIX).ok_or(InvalidBrand::Logo)?;
        let (width, rest) = rest.split_first_chunk().ok_or(InvalidBrand::Logo)?;
        let height = rest.first_chunk().ok_or(InvalidBrand::Logo)?;
        let fits = |side: &[u8; 4]| (1..=MAX_LOGO_PIXELS).contains(&u32::from_be_bytes(*side));
        if !fits(width) || !fits(height) {
            return Err(InvalidBrand::LargeLogo);
        }
        Ok(Self(file.into()))
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBrand {
    #[error("enter a name of 1 to {MAX_BRAND_NAME_CHARS} characters on one line")]
    Name,
    #[error("enter a color as a hex value such as #1f4fd8")]
    Colour,
    #[error("white text isn't readable on this color. Choose a darker one")]
    Faint,
    #[error("enter the https address of your privacy policy")]
    PrivacyUrl,
    #[error("the logo must be a PNG image")]
    Logo,
    #[error(
        "the logo can have up to {MAX_LOGO_BYTES} bytes and {MAX_LOGO_PIXELS} × {MAX_LOGO_PIXELS} pixels"
    )]
    LargeLogo,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_has_enough_contrast_to_white_text() {
        assert_eq!("#1F4fd8".parse::<Colour>().unwrap().to_string(), "#1f4fd8");
        // The lightest grey with enough contrast, and the next lighter one.
        assert!("#767676".parse::<Colour>().is_ok());
        assert_eq!("#777777".parse::<Colour>(), Err(InvalidBrand::Faint));
        for invalid in ["", "red", "#12345", "#1234567", "#+12345", "1f4fd8", "#1f4fd8;x"] {
            assert_eq!(invalid.parse::<Colour>(), Err(InvalidBrand::Colour), "{invalid}");
        }
    }

    #[test]
    fn a_logo_is_a_png_of_bounded_size() {
        let png = |width: u32, height: u32| {
            let prefix: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
            [prefix, &width.to_be_bytes(), &height.to_be_bytes(), b"rest"].concat()
        };
        assert_eq!(Logo::read(&png(1, 1024)).unwrap().bytes(), png(1, 1024));
        for (width, height) in [(0, 1), (1, 0), (1025, 1), (1, u32::MAX)] {
            let read = Logo::read(&png(width, height));
            assert_eq!(read, Err(InvalidBrand::LargeLogo), "{width} {height}");
        }
        assert_eq!(
            Logo::read(&[png(1, 1), vec![0; 10_000]].concat()),
            Err(InvalidBrand::LargeLogo)
        );
        for invalid in [&b""[..], b"GIF89a", b"<svg onload='x'>", &png(1, 1)[..20]] {
            assert_eq!(Logo::read(invalid), Err(InvalidBrand::Logo));
        }
    }

    #[test]
    fn a_name_is_one_line_of_bounded_length() {
        assert_eq!(" Lender ".parse::<BrandName>().unwrap().as_str(), "Lender");
        for invalid in ["", " ", "a\r\nBcc: b", &"é".repeat(61)] {
            assert_eq!(invalid.parse::<BrandName>(), Err(InvalidBrand::Name), "{invalid}");
        }
    }
}
