//! The messages from the page, as JSON, with the bounds of all their values.

use ports::{
    browser::{Device, Input, MouseButton, MouseKind, Scale, TouchKind, TouchPoint, Viewport},
    driving::{ClientCommand, JoinRequest},
};
use serde::Deserialize;

/// The maximum length of one text, for example a pasted one.
const MAX_TEXT_CHARS: usize = 10_000;
const MAX_COMPOSITION_CHARS: usize = 500;
const MAX_VALUE_CHARS: usize = 64;
const MAX_URL_CHARS: usize = 2048;
const MAX_ANSWER_CHARS: usize = 1000;
const MAX_TOUCH_POINTS: usize = 5;

/// The first message of the page.
#[derive(Deserialize)]
pub(super) struct Hello {
    token: String,
    secret: String,
    code: Option<String>,
    width: u16,
    height: u16,
    /// Device pixels per CSS pixel of the applicant's screen.
    #[serde(default)]
    ratio: f32,
    #[serde(default)]
    touch: bool,
    #[serde(default)]
    dark: bool,
    #[serde(default)]
    still: bool,
    language: Option<String>,
}

impl Hello {
    pub(super) fn into_join_request(self) -> JoinRequest {
        let device = self.device();
        let Self { token, secret, code, language, .. } = self;
        JoinRequest { token, secret, code, device, language }
    }

    fn device(&self) -> Device {
        let viewport = Viewport::within(self.width, self.height);
        let is_fine = self.ratio >= 1.5 && viewport.may_be_fine();
        let scale = if is_fine { Scale::Two } else { Scale::One };
        Device { viewport, scale, touch: self.touch, dark: self.dark, reduced_motion: self.still }
    }
}

/// A message from the page. **Invariant:** no `Debug`: keys and text may be a password.
#[derive(Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum ClientMessage {
    /// A frame was drawn.
    Ack {
        seq: u32,
    },
    /// A frame could not be drawn; the page requests a complete one.
    Refresh,
    /// The applicant wants to continue on another device.
    Handover,
    Mouse {
        k: Mouse,
        x: f64,
        y: f64,
        button: u8,
        buttons: u8,
        clicks: u8,
        modifiers: u8,
    },
    Wheel {
        x: f64,
        y: f64,
        dx: f64,
        dy: f64,
        modifiers: u8,
    },
    Key {
        down: bool,
        key: String,
        code: String,
        key_code: u16,
        repeat: bool,
        modifiers: u8,
    },
    Touch {
        k: Touch,
        points: Vec<Finger>,
        modifiers: u8,
    },
    /// Text that was typed, pasted or filled in by the applicant's own device.
    Text {
        text: String,
    },
    Compose {
        text: String,
    },
    Fill {
        value: String,
    },
    /// Requests the outline of the remote page.
    Outline,
    /// Activates a control of the outline.
    Activate {
        node: u32,
    },
    Answer {
        dialog: u32,
        accept: bool,
        text: String,
    },
    Close,
    /// Loads the remote page again.
    Reload,
    /// Goes back to the previous remote page.
    Back,
    /// The space for the page has changed.
    Size {
        width: u16,
        height: u16,
    },
    Share {
        prompt: u32,
        share: bool,
    },
    /// The address that the applicant entered.
    CustomUrl {
        prompt: u32,
        url: String,
    },
    Cancel,
    /// The applicant starts another attempt.
    Retry,
    /// The applicant starts no other attempt.
    Decline,
    /// The applicant acts at the page while another attempt is offered.
    Present,
    /// Whether the guest with this number may join.
    Admit {
        number: u8,
        allow: bool,
    },
    /// From a guest: a code that admits it.
    Code {
        code: String,
    },
    /// From a guest: a request for admission by the active viewer.
    Ask,
    /// From a guest: a request for a new link over the session's channel.
    Send,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mouse {
    Move,
    Down,
    Up,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Touch {
    Start,
    Move,
    End,
    Cancel,
}

#[derive(Deserialize)]
pub(super) struct Finger {
    id: u8,
    x: f64,
    y: f64,
}

impl ClientMessage {
    /// Returns the command if all its values are within bounds.
    pub(super) fn into_command(self) -> Option<ClientCommand> {
        let place = |x: f64, y: f64| {
            (0.0..=4096.0).contains(&x).then_some(x).zip((0.0..=4096.0).contains(&y).then_some(y))
        };
        let input = match self {
            Self::Ack { .. } | Self::Refresh | Self::Handover => return None,
            Self::Share { prompt, share } => {
                return Some(ClientCommand::Share { prompt, agreed: share });
            }
            Self::CustomUrl { prompt, url } => {
                let url = within(url, MAX_URL_CHARS)?;
                return Some(ClientCommand::CustomUrl { prompt, url });
            }
            Self::Cancel => return Some(ClientCommand::Cancel),
            Self::Outline => return Some(ClientCommand::Outline),
            Self::Retry => return Some(ClientCommand::Retry),
            Self::Decline => return Some(ClientCommand::DeclineRetry),
            Self::Present => return Some(ClientCommand::Present),
            Self::Admit { number, allow } => {
                return Some(ClientCommand::Admit { number, allowed: allow });
            }
            Self::Code { code } => return within(code, MAX_VALUE_CHARS).map(ClientCommand::Redeem),
            Self::Ask => return Some(ClientCommand::Ask),
            Self::Send => return Some(ClientCommand::SendLink),
            Self::Mouse { k, x, y, button, buttons, clicks, modifiers } => {
                let (x, y) = place(x, y)?;
                let (kind, button) = match k {
                    Mouse::Move => (MouseKind::Moved, MouseButton::None),
                    Mouse::Down => (MouseKind::Pressed, mouse_button(button)?),
                    Mouse::Up => (MouseKind::Released, mouse_button(button)?),
                };
                let (buttons, modifiers) = (buttons & 7, modifiers & 15);
                Input::Mouse { kind, x, y, button, buttons, clicks: clicks.min(3), modifiers }
            }
            Self::Wheel { x, y, dx, dy, modifiers } => {
                let (x, y) = place(x, y)?;
                let clamp = |delta: f64| delta.clamp(-5000.0, 5000.0);
                Input::Wheel { x, y, dx: clamp(dx), dy: clamp(dy), modifiers: modifiers & 15 }
            }
            Self::Key { down, key, code, key_code, repeat, modifiers } => {
                if key.len() > 32 || code.len() > 32 {
                    return None;
                }
                Input::Key { down, key, code, key_code, repeat, modifiers: modifiers & 15 }
            }
            Self::Touch { k, points, modifiers } => {
                let kind = match k {
                    Touch::Start => TouchKind::Started,
                    Touch::Move => TouchKind::Moved,
                    Touch::End => TouchKind::Ended,
                    Touch::Cancel => TouchKind::Cancelled,
                };
                let points = points.into_iter().take(MAX_TOUCH_POINTS).map(|finger| {
                    let (x, y) = place(finger.x, finger.y)?;
                    Some(TouchPoint { id: finger.id, x, y })
                });
                let points = points.collect::<Option<_>>()?;
                Input::Touch { kind, points, modifiers: modifiers & 15 }
            }
            Self::Text { text } => Input::Text(within(text, MAX_TEXT_CHARS)?),
            Self::Compose { text } => Input::Composing(within(text, MAX_COMPOSITION_CHARS)?),
            Self::Fill { value } => Input::Fill(within(value, MAX_VALUE_CHARS)?),
            Self::Activate { node } => Input::Activate(node),
            Self::Answer { dialog, accept, text } => {
                Input::Answer { dialog, accept, text: within(text, MAX_ANSWER_CHARS)? }
            }
            Self::Close => Input::ClosePage,
            Self::Reload => Input::Reload,
            Self::Back => Input::Back,
            Self::Size { width, height } => Input::Resize(Viewport::within(width, height)),
        };
        Some(ClientCommand::Input(input))
    }
}

fn within(text: String, max_chars: usize) -> Option<String> {
    (text.chars().count() <= max_chars).then_some(text)
}

const fn mouse_button(button: u8) -> Option<MouseButton> {
    match button {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    }
}
