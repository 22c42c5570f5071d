//! Resending a link.

use actix_web::http::Method;
use ports::driving::{
    MockSessionService,
    NotifyError::{NoChannel, NoMore, NotFound, Over, TooSoon},
};

use super::{PATH, call};

#[actix_web::test]
async fn a_link_is_sent_again() {
    let path = format!("{PATH}/resend-notification");
    for (done, expected) in [
        (Ok(()), "200 OK {\"status\":\"success\",\"data\":{\"sessionId\""),
        (Err(NotFound), "404 Not Found"),
        (Err(NoChannel), "409 Conflict"),
        (Err(Over), "409 Conflict"),
        (Err(NoMore), "409 Conflict"),
        (Err(TooSoon { retry_after: 7 }), "429 Too Many Requests"),
    ] {
        let mut service = MockSessionService::new();
        service.expect_notify_again().return_once(|_, _| done);
        let answer = call(service, &Method::POST, &path, None).await;
        assert!(answer.starts_with(expected), "{answer}");
    }
}
