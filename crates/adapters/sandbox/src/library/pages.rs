//! The pages of the site.

use actix_web::{
    HttpResponse,
    cookie::{Cookie, SameSite},
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY},
    },
};
use uuid::Uuid;

use super::{COOKIE, Visit, loans::LoansPage};
use crate::responses;

const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// What the site says to a reader above a form.
#[derive(Clone, Copy)]
pub(super) enum Notice {
    WrongPassword,
    WrongCode,
    Locked,
}

impl Notice {
    const fn text(self) -> &'static str {
        match self {
            Self::WrongPassword => "اسم المستخدم أو كلمة المرور غير صحيحة.",
            Self::WrongCode => "الرمز غير صحيح.",
            Self::Locked => "تم إيقاف هذا الحساب. راجع المكتبة.",
        }
    }
}

pub(super) fn sign_in(visit: &Visit, notice: Option<Notice>) -> HttpResponse {
    let form = format!(
        r#"<form id="sign-in" method="post" action="/login">{}
<label>اسم المستخدم <input name="user" dir="ltr" autocomplete="username" required tabindex="1"></label>
<label>كلمة المرور <input name="password" type="password" dir="ltr" autocomplete="current-password" required tabindex="2"></label>
<button tabindex="3">تسجيل الدخول</button></form>"#,
        token(visit),
    );
    page(visit, "تسجيل الدخول", &format!("{}{form}", shown(notice)))
}

pub(super) fn code(visit: &Visit, notice: Option<Notice>) -> HttpResponse {
    let form = format!(
        r#"<p id="code-target">أرسلنا رمزًا إلى رقم ينتهي بـ ٥٦.</p>
<form method="post" action="/code">{}
<label>الرمز <input name="code" dir="ltr" inputmode="numeric" autocomplete="one-time-code" required tabindex="1"></label>
<button tabindex="2">متابعة</button></form>"#,
        token(visit),
    );
    page(visit, "أدخل الرمز", &format!("{}{form}", shown(notice)))
}

pub(super) fn card(visit: &Visit) -> HttpResponse {
    let body = "<main id=\"card\"><dl><dt>الاسم</dt><dd id=\"name\">ليلى مثال</dd>\
        <dt>رقم البطاقة</dt><dd id=\"number\"><bdi dir=\"ltr\">LIB-4711</bdi></dd>\
        <dt>العضوية</dt><dd id=\"since\">عضوة منذ ١ أبريل ٢٠١٩</dd>\
        <dt>التأمين</dt><dd id=\"deposit\">\u{200f}١٬٠٠٠٫٠٠\u{a0}ر.س.\u{200f}</dd></dl></main>";
    page(visit, "بطاقة القارئ", body)
}

pub(super) fn loans(visit: &Visit, shown: &LoansPage) -> HttpResponse {
    let rows = shown.loans.iter().map(|loan| {
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            loan.title, loan.due, loan.renewals, loan.fee
        )
    });
    let rows: String = rows.collect();
    let none = if rows.is_empty() { "<p id=\"none\">لا توجد إعارات.</p>" } else { "" };
    let next = shown.next.map_or(String::new(), |number| {
        format!(r#"<nav><a rel="next" href="/loans?page={number}">الصفحة التالية</a></nav>"#)
    });
    let body = format!(
        "<main id=\"loans\"><table><thead><tr><th>العنوان</th><th>تاريخ الإرجاع</th>\
         <th>مرات التمديد</th><th>الرسوم</th></tr></thead><tbody>{rows}</tbody></table>{none}{next}</main>"
    );
    page(visit, "إعاراتي", &body)
}

pub(super) fn expired(visit: &Visit) -> HttpResponse {
    let body = "<main id=\"expired\"><p>انتهت الجلسة لعدم النشاط.</p>\
        <p><a id=\"again\" href=\"/login\">سجّل الدخول مرة أخرى</a></p></main>";
    page(visit, "انتهت الجلسة", body)
}

pub(super) fn maintenance(visit: &Visit) -> HttpResponse {
    let mut response = page(visit, "صيانة", "<p>المكتبة مغلقة للصيانة. عد لاحقًا.</p>");
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// The response to a form of another session.
pub(super) fn stale(visit: &Visit) -> HttpResponse {
    let mut response = page(visit, "خطأ", "<p>انتهت صلاحية النموذج.</p>");
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

pub(super) async fn style() -> HttpResponse {
    responses::stylesheet(include_str!("library.css"))
}

pub(super) fn with_cookie(id: Uuid, mut response: HttpResponse) -> HttpResponse {
    let cookie = Cookie::build(COOKIE, id.to_string()).path("/").http_only(true);
    // A cookie of letters, digits and hyphens is always a valid header value.
    let _ = response.add_cookie(&cookie.same_site(SameSite::Lax).finish());
    response
}

fn shown(notice: Option<Notice>) -> String {
    notice.map_or(String::new(), |notice| {
        format!(r#"<p class="notice" role="alert">{}</p>"#, notice.text())
    })
}

fn token(visit: &Visit) -> String {
    format!(r#"<input type="hidden" name="csrf" value="{}">"#, visit.reader.csrf)
}

fn page(visit: &Visit, title: &str, body: &str) -> HttpResponse {
    let banner = format!(
        r#"<form id="cookies" method="post" action="/cookies">{}<p>نستخدم ملفات تعريف الارتباط.</p><button>موافق</button></form>"#,
        token(visit),
    );
    let banner = if visit.has_read_notice { "" } else { &banner };
    let html = format!(
        "<!doctype html><html lang=\"ar\" dir=\"rtl\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title} – مكتبة أكمي</title>\
         <link rel=\"stylesheet\" href=\"/library.css\"></head><body><header>مكتبة أكمي البلدية</header>\
         <div><h1>{title}</h1>{body}</div>{banner}</body></html>"
    );
    let response = HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .body(html);
    with_cookie(visit.id, response)
}
