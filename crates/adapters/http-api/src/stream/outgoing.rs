//! The messages to the page, as JSON; see `docs/stream-protocol.md`.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use domain::webhook::wire_time;
use ports::{
    browser::{
        Checked, DialogKind, OutlineEntry, OutlineRole, PageOutline, PageState, RefusedAction,
    },
    driving::{
        Guest, GuestAnswer, Handover, SessionSnapshot, ShareContent, ShareItem, ShareTable,
        ShownValue, ValueKind, ValueStyle,
    },
};
use qrcode::{Color, QrCode};
use serde_json::{Map, Value, json};

/// Bytes of an outline as JSON.
const MAX_OUTLINE_BYTES: usize = 32 * 1024;
/// Bytes of an outline without its entries, or more.
const OUTLINE_FRAME_BYTES: usize = 64;

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
            "unconfirmed": prompt.unconfirmed,
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
    let failure = view.failure.as_ref().map(|failure| {
        json!({ "text": failure.text, "code": failure.code, "left": failure.attempts_left })
    });
    json!({
        "t": "state",
        "status": view.status,
        "progress": view.progress,
        "platform": view.platform,
        "place": view.place,
        "waitMinutes": view.wait_minutes,
        "guest": view.guest,
        "prompt": prompt,
        "failure": failure,
        "outcome": outcome,
    })
}

fn share_item(item: &ShareItem) -> Value {
    let (label, attested) = (&item.label, item.attested);
    match &item.content {
        ShareContent::Value { value, style } => json!({
            "label": label,
            "kind": value_kind(value.kind),
            "value": value.text,
            "format": style.format,
            "currency": style.currency,
            "attested": attested,
        }),
        ShareContent::Object(table) => share_table("object", label, table),
        ShareContent::List(table) => share_table("list", label, table),
    }
}

fn share_table(kind: &str, label: &str, table: &ShareTable) -> Value {
    let column = |(label, style): &(String, ValueStyle)| json!({ "label": label, "format": style.format, "currency": style.currency });
    let cell = |cell: &Option<ShownValue>| {
        cell.as_ref().map(|value| json!({ "kind": value_kind(value.kind), "value": value.text }))
    };
    let row = |row: &Vec<Option<ShownValue>>| row.iter().map(cell).collect::<Vec<_>>();
    json!({
        "label": label,
        "kind": kind,
        "columns": table.columns.iter().map(column).collect::<Vec<_>>(),
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
        "attested": false,
    })
}

const fn value_kind(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text => "text",
        ValueKind::Number => "number",
        ValueKind::Boolean => "boolean",
    }
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
        "navigation": scene.navigation,
        "pages": scene.pages,
        "unreachable": scene.unreachable,
    })
}

/// The outline of the remote page, up to [`MAX_OUTLINE_BYTES`]; without one, `entries` is null.
pub(super) fn outline(outline: Option<&PageOutline>) -> Value {
    let Some(PageOutline { entries, is_cut }) = outline else {
        return json!({ "t": "outline", "entries": null, "cut": false });
    };
    let mut bytes = OUTLINE_FRAME_BYTES;
    let sent: Vec<_> = entries
        .iter()
        .map(outline_entry)
        .take_while(|entry| {
            // With the comma that follows.
            bytes = bytes.saturating_add(entry.to_string().len()).saturating_add(1);
            bytes <= MAX_OUTLINE_BYTES
        })
        .collect();
    let is_cut = *is_cut || sent.len() < entries.len();
    json!({ "t": "outline", "entries": sent, "cut": is_cut })
}

/// An entry has the members that say something about it.
fn outline_entry(entry: &OutlineEntry) -> Value {
    let OutlineEntry { role, name, value, node, state } = entry;
    let mut members = Map::from_iter([
        ("role".to_owned(), outline_role(*role).into()),
        ("name".to_owned(), name.as_str().into()),
    ]);
    let mut add = |member: &str, value: Option<Value>| {
        members.extend(value.map(|value| (member.to_owned(), value)));
    };
    if let OutlineRole::Heading(level) = role {
        add("level", Some((*level).into()));
    }
    add("value", value.as_deref().map(Value::from));
    add("node", node.map(Value::from));
    add("required", state.required.then_some(true.into()));
    add("invalid", state.invalid.then_some(true.into()));
    add("disabled", state.disabled.then_some(true.into()));
    add(
        "checked",
        state.checked.map(|checked| match checked {
            Checked::Yes => true.into(),
            Checked::No => false.into(),
            Checked::Mixed => "mixed".into(),
        }),
    );
    add("expanded", state.expanded.map(Value::from));
    add("focused", state.focused.then_some(true.into()));
    Value::Object(members)
}

const fn outline_role(role: OutlineRole) -> &'static str {
    match role {
        OutlineRole::Heading(_) => "heading",
        OutlineRole::Text => "text",
        OutlineRole::Link => "link",
        OutlineRole::Button => "button",
        OutlineRole::Field => "field",
        OutlineRole::Checkbox => "checkbox",
        OutlineRole::Radio => "radio",
        OutlineRole::Combobox => "combobox",
        OutlineRole::Image => "image",
        OutlineRole::Alert => "alert",
        OutlineRole::Dialog => "dialog",
        OutlineRole::ListItem => "list_item",
    }
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

#[cfg(test)]
mod tests {
    use ports::browser::ControlState;

    use super::*;

    #[test]
    fn an_entry_has_the_members_that_say_something() {
        let state = ControlState {
            required: true,
            invalid: true,
            disabled: true,
            checked: Some(Checked::Mixed),
            expanded: Some(false),
            focused: true,
        };
        let value = Some("two".to_owned());
        let full = OutlineEntry { value, node: Some(7), state, ..entry(OutlineRole::Combobox) };
        let page = PageOutline {
            entries: vec![entry(OutlineRole::Heading(2)), entry(OutlineRole::ListItem), full],
            is_cut: false,
        };
        let expected = json!({ "t": "outline", "cut": false, "entries": [
            { "role": "heading", "name": "a name", "level": 2 },
            { "role": "list_item", "name": "a name" },
            { "role": "combobox", "name": "a name", "value": "two", "node": 7, "required": true,
              "invalid": true, "disabled": true, "checked": "mixed", "expanded": false, "focused": true },
        ] });
        assert_eq!(outline(Some(&page)), expected);
        assert_eq!(outline(None), json!({ "t": "outline", "entries": null, "cut": false }));
    }

    #[test]
    fn an_outline_has_32_kib_at_most() {
        for letter in ["\u{1f600}", "\"", "a"] {
            let name = letter.repeat(PageOutline::MAX_TEXT_CHARS);
            let state = ControlState { checked: Some(Checked::No), ..ControlState::default() };
            let node = Some(u32::MAX);
            let entry = OutlineEntry { name, node, state, ..entry(OutlineRole::Checkbox) };
            let entries = vec![entry; PageOutline::MAX_ENTRIES];
            let sent = outline(Some(&PageOutline { entries, is_cut: false }));
            let bytes = sent.to_string().len();
            assert!((31 * 1024..=MAX_OUTLINE_BYTES).contains(&bytes), "{bytes} bytes");
            assert_eq!(sent["cut"], true);
        }
    }

    fn entry(role: OutlineRole) -> OutlineEntry {
        let name = "a name".to_owned();
        OutlineEntry { role, name, value: None, node: None, state: ControlState::default() }
    }
}
