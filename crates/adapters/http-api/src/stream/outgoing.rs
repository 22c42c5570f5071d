//! The messages to the page, as JSON; see `docs/stream-protocol.md`.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use domain::webhook::wire_time;
use ports::{
    browser::{DialogKind, PageState, RefusedAction},
    driving::{Guest, GuestAnswer, Handover, SessionSnapshot, ShareItem, ValueKind},
};
use qrcode::{Color, QrCode};
use serde_json::{Value, json};

pub(super) fn state(view: &SessionSnapshot, now: DateTime<Utc>) -> Value {
    let prompt = view.prompt.as_ref().map(|prompt| {
        json!({
            "number": prompt.number,
            "kind": prompt.kind,
            "text": prompt.text,
            "left": (prompt.deadline - now).num_milliseconds().max(0),
            "translated": prompt.translated,
            "share": prompt.share.iter().map(share_item).collect::<Vec<_>>(),
            "witnessed": prompt.witnessed,
        })
    });
    let outcome = view.outcome.as_ref().map(|outcome| {
        let labels: Vec<_> = outcome.shared.iter().map(|item| &item.label).collect();
        let attested: Vec<_> = outcome.shared.iter().map(|item| item.attested).collect();
        json!({
            "text": outcome.text,
            "code": outcome.code,
            "at": outcome.at.map(wire_time),
            "shared": labels,
            "attested": attested,
            "missing": outcome.missing,
        })
    });
    json!({
        "t": "state",
        "status": view.status,
        "progress": view.progress,
        "platform": view.platform,
        "place": view.place,
        "guest": view.guest,
        "prompt": prompt,
        "outcome": outcome,
    })
}

fn share_item(item: &ShareItem) -> Value {
    let kind = match item.kind {
        ValueKind::Text => "text",
        ValueKind::Number => "number",
        ValueKind::Boolean => "boolean",
    };
    json!({
        "label": item.label,
        "kind": kind,
        "value": item.value,
        "format": item.format,
        "currency": item.currency,
        "attested": item.attested,
    })
}

/// The state that a guest receives.
pub(super) fn guest(guest: &Guest) -> Value {
    let answer = guest.answer.map(|answer| match answer {
        GuestAnswer::WrongCode => "wrong_code",
        GuestAnswer::TooManyDevices => "too_many_devices",
        GuestAnswer::LinkSent => "link_sent",
        GuestAnswer::LinkNotSent => "link_not_sent",
        GuestAnswer::NotApproved => "not_approved",
        GuestAnswer::Unavailable => "unavailable",
    });
    json!({
        "t": "guest",
        "status": guest.status,
        "progress": guest.progress,
        "platform": guest.platform,
        "channel": guest.has_channel,
        "asking": guest.asking,
        "answer": answer,
    })
}

pub(super) fn scene(scene: &PageState) -> Value {
    let fields = scene.fields.iter().map(|field| {
        json!([
            field.place,
            field.kind,
            field.input_mode,
            field.autocomplete,
            field.label,
            field.error,
        ])
    });
    let dialog = scene.dialog.as_ref().map(|dialog| {
        let kind = match dialog.kind {
            DialogKind::Alert => "alert",
            DialogKind::Confirm => "confirm",
            DialogKind::Prompt => "prompt",
            DialogKind::Leave => "leave",
        };
        json!({ "id": dialog.id, "kind": kind, "message": dialog.message })
    });
    let refused = scene.refused.map(|(what, count)| {
        let what = match what {
            RefusedAction::Upload => "upload",
            RefusedAction::Download => "download",
            RefusedAction::Elsewhere => "elsewhere",
        };
        json!({ "what": what, "count": count })
    });
    json!({
        "t": "scene",
        "fields": fields.collect::<Vec<_>>(),
        "focused": scene.focused,
        "dialog": dialog,
        "refused": refused,
        "pages": scene.pages,
        "unreachable": scene.unreachable,
    })
}

/// Returns a QR code (ISO/IEC 18004) that opens the session on another device, with its size in
/// modules and the dark modules as an SVG path, and the code for typing. `None` if the link is too
/// long for a QR code.
pub(super) fn code(handover: &Handover) -> Option<Value> {
    let code = QrCode::new(&handover.link).ok()?;
    let size = code.width();
    let dark = code.to_colors().into_iter().enumerate().filter(|(_, color)| *color == Color::Dark);
    let path = dark.fold(String::new(), |mut path, (at, _)| {
        // Writing to a string does not fail.
        let _ = write!(path, "M{} {}h1v1h-1z", at % size, at / size);
        path
    });
    Some(json!({ "t": "code", "size": size, "path": path, "code": handover.code }))
}
