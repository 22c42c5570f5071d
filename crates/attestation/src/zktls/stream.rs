//! The blocks of one direction's data, record by record.

use crate::{
    http::selective::Hidden,
    refusal::Refusal,
    tls::{APPLICATION_DATA, HANDSHAKE, open::nonce},
    zk::{BLOCK, Block, Class, Side},
};

/// Builds the blocks of one direction, record by record.
pub(super) struct Stream<'a> {
    side: Side,
    iv: [u8; 12],
    /// All bytes of the direction, and the number of bytes in the records so far.
    said: &'a [u8],
    at: usize,
    /// The hidden parts from there on, in order.
    hidden: &'a [Hidden],
    blocks: Vec<Block>,
}

impl<'a> Stream<'a> {
    pub(super) const fn new(
        side: Side,
        iv: [u8; 12],
        said: &'a [u8],
        hidden: &'a [Hidden],
    ) -> Self {
        Self { side, iv, said, at: 0, hidden, blocks: vec![] }
    }

    /// Adds a record of application data with this content length and padding.
    pub(super) fn data(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        ciphertext: &[u8],
        (length, padding): (usize, usize),
    ) -> Result<(), Refusal> {
        let (start, end) = (self.at, self.at.saturating_add(length));
        let shown = self.said.get(start..end).ok_or(Refusal::Reveal)?;
        let plain = [shown, &[APPLICATION_DATA], &vec![0; padding]].concat();
        // The content type of a record is never hidden.
        let mut rest = self.hidden;
        let seen = |place: usize| {
            let at = start + place;
            while let Some((_, after)) = rest.split_first().filter(|(one, _)| one.range.end <= at) {
                rest = after;
            }
            match rest.first().filter(|one| place < length && one.range.contains(&at)) {
                Some(hidden) => Seeing::Hidden(Some(hidden.class)),
                None => Seeing::Opened,
            }
        };
        self.push(sequence, tag_key, (ciphertext, &plain, 0), seen)?;
        let over = self.hidden.iter().take_while(|hidden| hidden.range.end <= end).count();
        self.hidden = self.hidden.get(over..).unwrap_or_default();
        self.at = end;
        Ok(())
    }

    /// Adds a record with exactly this content, all of it revealed.
    pub(super) fn record(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        ciphertext: &[u8],
        content: &[u8],
        (kind, padding): (u8, usize),
    ) -> Result<(), Refusal> {
        let plain = [content, &[kind], &vec![0; padding]].concat();
        if plain.len() != ciphertext.len() {
            return Err(Refusal::InnerType(kind));
        }
        self.push(sequence, tag_key, (ciphertext, &plain, 0), |_| Seeing::Opened)
    }

    /// Adds a record with handshake messages, of which only the type is proved.
    pub(super) fn opaque(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        ciphertext: &[u8],
        (length, padding): (usize, usize),
    ) -> Result<(), Refusal> {
        let plain = [vec![0; length], vec![HANDSHAKE], vec![0; padding]].concat();
        let seen = |place| if place < length { Seeing::Hidden(None) } else { Seeing::Opened };
        self.push(sequence, tag_key, (ciphertext, &plain, length / BLOCK), seen)
    }

    /// Adds the block of a record's tag, and those of its content from `first` on.
    fn push(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        (ciphertext, plain, first): (&[u8], &[u8], usize),
        mut seen: impl FnMut(usize) -> Seeing,
    ) -> Result<(), Refusal> {
        if plain.len() != ciphertext.len() {
            return Err(Refusal::Reveal);
        }
        let (side, nonce) = (self.side, nonce(self.iv, sequence));
        let mut tag = Block { side, nonce, opened: u64::from(u32::MAX), ..Block::BLANK };
        // The first block of a record's key stream: half of it is the one-time key of the tag (RFC
        // 8439, section 2.6).
        for (place, byte) in tag.plain.iter_mut().zip(tag_key) {
            *place = *byte;
        }
        self.blocks.push(tag);
        let parts = ciphertext.chunks(BLOCK).zip(plain.chunks(BLOCK)).enumerate().skip(first);
        self.blocks.extend(parts.map(|(part, (ciphertext, plain))| {
            let counter = u32::try_from(part + 1).unwrap_or(u32::MAX);
            let mut block = Block { side, nonce, counter, ..Block::BLANK };
            let places = block.ciphertext.iter_mut().zip(&mut block.plain);
            for (at, ((cipher, shown), (own, plain))) in
                places.zip(ciphertext.iter().zip(plain)).enumerate()
            {
                *cipher = *own;
                let mask = match seen(part * BLOCK + at) {
                    Seeing::Opened => {
                        *shown = *plain;
                        &mut block.opened
                    }
                    Seeing::Hidden(Some(Class::Printable)) => &mut block.printable,
                    Seeing::Hidden(Some(Class::Text)) => &mut block.text,
                    Seeing::Hidden(Some(Class::Scalar)) => &mut block.scalar,
                    Seeing::Hidden(None) => continue,
                };
                *mask |= 1 << at;
            }
            block
        }));
        Ok(())
    }

    /// Returns all blocks if the records contained all of the bytes.
    pub(super) fn end(self) -> Result<Vec<Block>, Refusal> {
        if self.at == self.said.len() { Ok(self.blocks) } else { Err(Refusal::Reveal) }
    }
}

/// The visibility of a byte.
enum Seeing {
    Opened,
    /// Hidden, with its proved class if there is one.
    Hidden(Option<Class>),
}
