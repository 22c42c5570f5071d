//! Takes parts of a picture away.

use crate::{
    picture::{Area, Number, Picture},
    scan::fold,
};

impl Picture {
    /// The picture with flat grey in the place of these areas; nothing of what was there is left.
    #[must_use]
    pub fn without(&self, areas: &[Area]) -> Self {
        let blocks: usize =
            self.planes.iter().map(|p| usize::from(p.across) * usize::from(p.down)).sum();
        let grey = vec![Number { value: 0, place: 0 }; blocks];
        let print = grey.iter().copied().fold(1, fold);
        let mut left = Self { numbers: vec![], starts: vec![0], prints: vec![], ..self.clone() };
        for y in 0..self.units.1 {
            for x in 0..self.units.0 {
                let gone = areas.iter().any(|area| area.holds(x, y));
                left.numbers.extend(if gone { &grey } else { self.unit_at(x, y) });
                left.starts.push(u32::try_from(left.numbers.len()).unwrap_or(u32::MAX));
                left.prints.push(if gone { print } else { self.print(x, y) });
            }
        }
        left
    }
}

impl Area {
    fn holds(self, x: u16, y: u16) -> bool {
        (self.x..self.right()).contains(&x) && (self.y..self.bottom()).contains(&y)
    }
}
