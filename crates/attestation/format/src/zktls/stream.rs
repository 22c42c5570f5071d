//! The blocks of one direction's data, record by record.

use crate::{
    error::ExaminationError,
    http::selective::HiddenBytes,
    tls::{APPLICATION_DATA, HANDSHAKE, decrypt::nonce},
    zk::{BLOCK_BYTES, Block, ByteClass, Side},
};

/// Builds the blocks of one direction, record by record.
pub(super) struct BlockBuilder<'a> {
    side: Side,
    iv: [u8; 12],
    /// All bytes of the direction, and the number of bytes in the records so far.
    plaintext: &'a [u8],
    at: usize,
    /// The hidden parts from there on, in order.
    hidden: &'a [HiddenBytes],
    blocks: Vec<Block>,
}

impl<'a> BlockBuilder<'a> {
    pub(super) const fn new(
        side: Side,
        iv: [u8; 12],
        plaintext: &'a [u8],
        hidden: &'a [HiddenBytes],
    ) -> Self {
        Self { side, iv, plaintext, at: 0, hidden, blocks: vec![] }
    }

    /// Adds a record of application data with this content length and padding.
    pub(super) fn data(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        ciphertext: &[u8],
        (length, padding): (usize, usize),
    ) -> Result<(), ExaminationError> {
        let (start, end) = (self.at, self.at.saturating_add(length));
        let shown = self.plaintext.get(start..end).ok_or(ExaminationError::Reveal)?;
        let plain = [shown, &[APPLICATION_DATA], &vec![0; padding]].concat();
        // The content type of a record is never hidden.
        let mut rest = self.hidden;
        let seen = |place: usize| {
            let at = start + place;
            while let Some((_, after)) = rest.split_first().filter(|(one, _)| one.range.end <= at) {
                rest = after;
            }
            match rest.first().filter(|one| place < length && one.range.contains(&at)) {
                Some(hidden) => Visibility::Hidden(Some(hidden.class)),
                None => Visibility::Opened,
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
    ) -> Result<(), ExaminationError> {
        let plain = [content, &[kind], &vec![0; padding]].concat();
        if plain.len() != ciphertext.len() {
            return Err(ExaminationError::InnerType(kind));
        }
        self.push(sequence, tag_key, (ciphertext, &plain, 0), |_| Visibility::Opened)
    }

    /// Adds a record with handshake messages, of which only the type is proved.
    pub(super) fn opaque(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        ciphertext: &[u8],
        (length, padding): (usize, usize),
    ) -> Result<(), ExaminationError> {
        let plain = [vec![0; length], vec![HANDSHAKE], vec![0; padding]].concat();
        let seen =
            |place| if place < length { Visibility::Hidden(None) } else { Visibility::Opened };
        self.push(sequence, tag_key, (ciphertext, &plain, length / BLOCK_BYTES), seen)
    }

    /// Adds the block of a record's tag, and those of its content from `first` on.
    fn push(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        (ciphertext, plain, first): (&[u8], &[u8], usize),
        mut seen: impl FnMut(usize) -> Visibility,
    ) -> Result<(), ExaminationError> {
        if plain.len() != ciphertext.len() {
            return Err(ExaminationError::Reveal);
        }
        let (side, nonce) = (self.side, nonce(self.iv, sequence));
        let mut tag = Block { side, nonce, revealed: u64::from(u32::MAX), ..Block::BLANK };
        // The first block of a record's key stream: half of it is the one-time key of the tag (RFC
        // 8439, section 2.6).
        for (place, byte) in tag.plain.iter_mut().zip(tag_key) {
            *place = *byte;
        }
        self.blocks.push(tag);
        let parts =
            ciphertext.chunks(BLOCK_BYTES).zip(plain.chunks(BLOCK_BYTES)).enumerate().skip(first);
        self.blocks.extend(parts.map(|(part, (ciphertext, plain))| {
            let counter = u32::try_from(part + 1).unwrap_or(u32::MAX);
            let mut block = Block { side, nonce, counter, ..Block::BLANK };
            let places = block.ciphertext.iter_mut().zip(&mut block.plain);
            for (at, ((cipher, shown), (own, plain))) in
                places.zip(ciphertext.iter().zip(plain)).enumerate()
            {
                *cipher = *own;
                let mask = match seen(part * BLOCK_BYTES + at) {
                    Visibility::Opened => {
                        *shown = *plain;
                        &mut block.revealed
                    }
                    Visibility::Hidden(Some(ByteClass::Printable)) => &mut block.printable,
                    Visibility::Hidden(Some(ByteClass::Text)) => &mut block.text,
                    Visibility::Hidden(Some(ByteClass::Scalar)) => &mut block.scalar,
                    Visibility::Hidden(None) => continue,
                };
                *mask |= 1 << at;
            }
            block
        }));
        Ok(())
    }

    /// Returns all blocks if the records contained all of the bytes.
    pub(super) fn end(self) -> Result<Vec<Block>, ExaminationError> {
        if self.at == self.plaintext.len() {
            Ok(self.blocks)
        } else {
            Err(ExaminationError::Reveal)
        }
    }
}

/// The visibility of a byte.
enum Visibility {
    Opened,
    /// Hidden, with its proved class if there is one.
    Hidden(Option<ByteClass>),
}
