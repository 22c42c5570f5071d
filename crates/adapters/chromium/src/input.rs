//! The applicant's input as DevTools commands.

use ports::browser::{Input, MouseButton, MouseKind, TouchKind};
use serde_json::{Value, json};

/// Returns the command that performs this input in the page; `None` if it is not a single command.
pub(crate) fn command(input: &Input) -> Option<(&'static str, Value)> {
    Some(match input {
        Input::Mouse { kind, x, y, button, buttons, clicks, modifiers } => (
            "Input.dispatchMouseEvent",
            json!({
                "type": match kind {
                    MouseKind::Moved => "mouseMoved",
                    MouseKind::Pressed => "mousePressed",
                    MouseKind::Released => "mouseReleased",
                },
                "x": x, "y": y, "buttons": buttons, "clickCount": clicks, "modifiers": modifiers,
                "button": match button {
                    MouseButton::None => "none",
                    MouseButton::Left => "left",
                    MouseButton::Middle => "middle",
                    MouseButton::Right => "right",
                },
            }),
        ),
        Input::Wheel { x, y, dx, dy, modifiers } => (
            "Input.dispatchMouseEvent",
            json!({
                "type": "mouseWheel", "x": x, "y": y, "deltaX": dx, "deltaY": dy,
                "modifiers": modifiers,
            }),
        ),
        Input::Key { down, key, code, key_code, repeat, modifiers } => {
            let text = inserted_text(key, *modifiers).filter(|_| *down);
            let kind = match (down, &text) {
                (true, Some(_)) => "keyDown",
                (true, None) => "rawKeyDown",
                (false, _) => "keyUp",
            };
            let mut params = json!({
                "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": key_code,
                "autoRepeat": repeat, "modifiers": modifiers,
            });
            if let (Some(text), Some(object)) = (text, params.as_object_mut()) {
                object.insert("text".into(), text.into());
            }
            ("Input.dispatchKeyEvent", params)
        }
        Input::Touch { kind, points, modifiers } => {
            let points: Vec<_> = points
                .iter()
                .map(|point| json!({ "id": point.id, "x": point.x, "y": point.y }))
                .collect();
            let kind = match kind {
                TouchKind::Started => "touchStart",
                TouchKind::Moved => "touchMove",
                TouchKind::Ended => "touchEnd",
                TouchKind::Cancelled => "touchCancel",
            };
            let touch = json!({ "type": kind, "touchPoints": points, "modifiers": modifiers });
            ("Input.dispatchTouchEvent", touch)
        }
        Input::Text(text) => ("Input.insertText", json!({ "text": text })),
        Input::Composing(text) => {
            // Chromium counts in UTF-16 code units, as JavaScript does.
            let end = text.encode_utf16().count();
            let composing = json!({ "text": text, "selectionStart": end, "selectionEnd": end });
            ("Input.imeSetComposition", composing)
        }
        Input::Fill(_) | Input::Answer { .. } | Input::ClosePage | Input::Resize(_) => return None,
    })
}

/// Returns the text that a key inserts, if any: a single character, or a line break. With Control or
/// Meta held a key is a command (bits 2 and 4 of the protocol's modifiers).
fn inserted_text(key: &str, modifiers: u8) -> Option<String> {
    if key == "Enter" {
        return Some("\r".to_owned());
    }
    let is_command = modifiers & 0b110 != 0;
    let single = key.chars().count() == 1;
    (single && !is_command).then(|| key.to_owned())
}
