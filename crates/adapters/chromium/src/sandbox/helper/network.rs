//! The browser's network: a loopback interface, and one listening socket on it.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    net::TcpListener,
    os::fd::AsFd as _,
};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socket_with,
};

use super::super::MissingFeatures;

/// Raises `lo`, the only interface of a new network (rtnetlink(7)).
pub(super) fn loopback_up() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const UP: u32 = 1;
    // `None` is the routing protocol, whose number is zero.
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    let mut message = vec![];
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // Sequence and port; family and kind, both open; the interface, which is the first.
    message.extend([0; 12]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    rustix::io::write(&socket, &message)?;
    let mut answer = [0_u8; 256];
    let length = rustix::io::read(&socket, &mut answer)?;
    // The header of 16 bytes, then the error: 0 or a negative number.
    let error = answer.get(..length).and_then(|answer| answer.get(16..20)?.try_into().ok());
    match error.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Sends the listening socket and the features that the kernel lacks to the service.
pub(super) fn send_listener(listener: &TcpListener, missing: MissingFeatures) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let sockets = [listener.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&sockets));
    let service = rustix::stdio::stdin();
    sendmsg(service, &[IoSlice::new(&[missing.0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
