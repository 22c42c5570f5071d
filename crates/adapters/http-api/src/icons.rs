//! The icons of notification channels, of the sandbox platforms, and of platforms without one, as SVG
//! images.

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, HeaderName, HeaderValue},
    web,
};

use super::{error::ApiError, methods::reading};

/// Partners show icons on pages of their own (Fetch Standard, section 3.7).
const RESOURCE_POLICY: (HeaderName, HeaderValue) = (
    HeaderName::from_static("cross-origin-resource-policy"),
    HeaderValue::from_static("cross-origin"),
);
const CACHE: (HeaderName, &str) = (CACHE_CONTROL, "public, max-age=86400");

/// An image of 24 by 24 units, drawn in lines.
macro_rules! lines {
    ($lines:literal) => {
        concat!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 24 24\" fill=\"none\" ",
            "stroke=\"#1f4fd8\" stroke-width=\"2\">",
            $lines,
            "</svg>"
        )
    };
}

/// File names and images.
const ICONS: [(&str, &str); 7] = [
    (
        "email.svg",
        lines!(
            "<rect x=\"3\" y=\"5\" width=\"18\" height=\"14\" rx=\"2\"/><path d=\"m3 7 9 6 9-6\"/>"
        ),
    ),
    ("whatsapp.svg", lines!("<path d=\"M12 3a9 9 0 1 1-4.5 16.8L3 21l1.2-4.5A9 9 0 0 1 12 3z\"/>")),
    (
        "sms.svg",
        lines!("<rect x=\"7\" y=\"2\" width=\"10\" height=\"20\" rx=\"2\"/><path d=\"M11 18h2\"/>"),
    ),
    (
        "platform.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\">\
         <rect width=\"32\" height=\"32\" rx=\"8\" fill=\"#5b6472\"/>\
         <path d=\"M8 9h16v14H8zM8 14h16\" fill=\"none\" stroke=\"#fff\" stroke-width=\"2\"/></svg>",
    ),
    (
        "acme-sandbox.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\">\
         <rect width=\"32\" height=\"32\" rx=\"8\" fill=\"#7a1fa2\"/>\
         <path d=\"M8 24 16 7l8 17h-4l-4-9-4 9z\" fill=\"#fff\"/></svg>",
    ),
    (
        "acme-shop.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\">\
         <rect width=\"32\" height=\"32\" rx=\"8\" fill=\"#b4540a\"/>\
         <path d=\"M8 12h16l-2 13H10z\" fill=\"#fff\"/>\
         <path d=\"M12 14v-3a4 4 0 0 1 8 0v3\" fill=\"none\" stroke=\"#fff\" stroke-width=\"2\"/></svg>",
    ),
    (
        "acme-library.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\">\
         <rect width=\"32\" height=\"32\" rx=\"8\" fill=\"#0b6b46\"/>\
         <path d=\"M7 9q5-2 9 1 4-3 9-1v14q-5-2-9 1-4-3-9-1z\" fill=\"#fff\"/></svg>",
    ),
];

/// The base URL of the service, without a trailing slash.
#[derive(Clone)]
pub(super) struct PublicUrl(pub(super) String);

impl PublicUrl {
    /// Returns the absolute URL of an icon, which is relative if the service itself serves it.
    pub(super) fn icon(&self, icon: &str) -> String {
        if icon.starts_with('/') { format!("{}{icon}", self.0) } else { icon.to_owned() }
    }
}

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config.route("/icons/{file}", reading().to(icon));
}

async fn icon(file: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (_, image) = ICONS.iter().find(|(name, _)| *name == *file).ok_or(ApiError::NotFound)?;
    let mut response = HttpResponse::Ok();
    response.insert_header(CACHE).insert_header(RESOURCE_POLICY).content_type("image/svg+xml");
    Ok(response.body(*image))
}

#[cfg(test)]
mod tests {
    use domain::platform::NEUTRAL_ICON;

    use super::*;

    #[actix_web::test]
    async fn platforms_without_an_icon_of_their_own_have_one() {
        let file = NEUTRAL_ICON.strip_prefix("/icons/").unwrap();
        let response = icon(web::Path::from(file.to_owned())).await.unwrap();
        assert!(response.status().is_success());
    }
}
