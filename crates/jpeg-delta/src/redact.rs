//! Redaction: replaces areas of an image by flat grey.

use crate::{
    image::{Coefficient, JpegImage, McuArea},
    scan::hash_coefficient,
};

impl JpegImage {
    /// Returns the image with flat grey in place of these areas; none of their coefficients remain.
    #[must_use]
    pub fn redacted(&self, areas: &[McuArea]) -> Self {
        let blocks: usize = self
            .components
            .iter()
            .map(|c| usize::from(c.h_sampling) * usize::from(c.v_sampling))
            .sum();
        let grey = vec![Coefficient { value: 0, index: 0 }; blocks];
        let grey_hash = grey.iter().copied().fold(1, hash_coefficient);
        let mut redacted =
            Self { coefficients: vec![], mcu_offsets: vec![0], mcu_hashes: vec![], ..self.clone() };
        for y in 0..self.mcu_grid.1 {
            for x in 0..self.mcu_grid.0 {
                let hidden = areas.iter().any(|area| area.contains(x, y));
                let mcu = if hidden { &grey } else { self.mcu_coefficients(x, y) };
                redacted.coefficients.extend(mcu);
                let end = u32::try_from(redacted.coefficients.len()).unwrap_or(u32::MAX);
                redacted.mcu_offsets.push(end);
                redacted.mcu_hashes.push(if hidden { grey_hash } else { self.mcu_hash(x, y) });
            }
        }
        redacted
    }
}

impl McuArea {
    fn contains(self, x: u16, y: u16) -> bool {
        (self.x..self.right()).contains(&x) && (self.y..self.bottom()).contains(&y)
    }
}
