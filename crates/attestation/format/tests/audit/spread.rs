//! Propagates known values by two rules until nothing new is found.

use std::collections::{BTreeSet, HashMap, VecDeque};

use bellpepper_core::Index;
use ff::Field as _;

use crate::{Scalar, Sum, big::Big, record::Record};

/// The dependencies of a circuit of which one constraint may be left out.
pub(crate) struct Audit<'a> {
    record: &'a Record,
    /// By variable, inputs first: the constraints that contain it.
    uses: &'a [Vec<usize>],
    bits: Vec<bool>,
    /// By bit: the constraint that defines it by other bits.
    made_by: Vec<Option<usize>>,
    known: Vec<bool>,
    /// By variable: the constraint that determined it.
    pub(crate) by: Vec<Option<usize>>,
    /// By constraint: its terms for the second rule.
    integers: Vec<Option<Vec<(usize, u32)>>>,
    /// Queued constraints, and by constraint whether it is queued.
    again: VecDeque<usize>,
    waits: Vec<bool>,
}

impl<'a> Audit<'a> {
    /// Propagates from these variables, and from the constant one.
    pub(crate) fn of(
        record: &'a Record,
        uses: &'a [Vec<usize>],
        given: &[usize],
        without: Option<usize>,
    ) -> Self {
        let count = uses.len();
        let mut audit = Self {
            record,
            uses,
            bits: vec![false; count],
            made_by: vec![None; count],
            known: vec![false; count],
            by: vec![None; count],
            integers: vec![],
            again: (0..record.constraints.len()).collect(),
            waits: vec![true; record.constraints.len()],
        };
        let constraints = (0..record.constraints.len()).filter(|at| Some(*at) != without);
        for bit in constraints.clone().filter_map(|at| record.bit(at)) {
            audit.bits[bit] = true;
        }
        // Bits that are defined by other bits come after them.
        constraints.for_each(|constraint| audit.make_bit(constraint));
        audit.known[0] = true;
        for variable in given {
            audit.known[*variable] = true;
        }
        audit.integers = (0..record.constraints.len()).map(|at| audit.integers(at)).collect();
        while let Some(constraint) = audit.again.pop_front() {
            audit.waits[constraint] = false;
            if Some(constraint) != without {
                audit.look(constraint);
            }
        }
        audit
    }

    fn look(&mut self, constraint: usize) {
        let mut found: Vec<_> = self.defined(constraint).into_iter().collect();
        found.extend(self.lowest_bits(constraint));
        for variable in found {
            if self.known[variable] {
                continue;
            }
            self.known[variable] = true;
            self.by[variable] = Some(constraint);
            for other in &self.uses[variable] {
                if *other != constraint && !self.waits[*other] {
                    self.waits[*other] = true;
                    self.again.push_back(*other);
                }
            }
        }
    }

    fn unknown(&self, sum: &Sum) -> Vec<(usize, Scalar)> {
        let variables = sum.iter().map(|(index, weight)| (self.record.number(*index), *weight));
        variables.filter(|(variable, _)| !self.known[*variable]).collect()
    }

    /// The first rule.
    fn defined(&self, constraint: usize) -> Option<usize> {
        let [left, right, product] = &self.record.constraints[constraint];
        if !self.unknown(left).is_empty() || !self.unknown(right).is_empty() {
            return None;
        }
        let [(variable, weight)] = self.unknown(product)[..] else { return None };
        (weight != Scalar::ZERO).then_some(variable)
    }

    /// A variable is a bit if the constraint that defines it makes it one for all values of the
    /// bits that it depends on, and of bits that these depend on.
    fn make_bit(&mut self, constraint: usize) {
        let [left, right, product] = &self.record.constraints[constraint];
        let is_bit = |(index, _): &&(Index, Scalar)| {
            let variable = self.record.number(*index);
            variable == 0 || self.bits[variable]
        };
        let mut others = product.iter().filter(|term| !is_bit(term));
        let (Some((index, _)), None) = (others.next(), others.next()) else { return };
        let variable = self.record.number(*index);
        let fits = left.iter().chain(right).all(|term| is_bit(&term));
        if fits && self.is_made_of_bits(variable, constraint) {
            self.bits[variable] = true;
            self.made_by[variable] = Some(constraint);
        }
    }

    fn is_made_of_bits(&self, variable: usize, constraint: usize) -> bool {
        let variables = |constraint: usize| {
            let terms = self.record.constraints[constraint].iter().flatten();
            let terms = terms.map(|(index, _)| self.record.number(*index));
            terms.filter(|other| *other != 0).collect::<BTreeSet<_>>()
        };
        let mut others = variables(constraint);
        others.remove(&variable);
        if others.len() > 6 || others.iter().any(|other| !self.bits[*other]) {
            return false;
        }
        let others: Vec<_> = others.into_iter().collect();
        let value = |bits: usize, index: Index| match self.record.number(index) {
            0 => Scalar::ONE,
            own => {
                let place = others.iter().position(|other| *other == own);
                place.map_or(Scalar::ZERO, |place| Scalar::from(u64::from(bits >> place & 1 == 1)))
            }
        };
        let sum = |bits: usize, sum: &Sum| {
            sum.iter().fold(Scalar::ZERO, |all, (index, weight)| all + value(bits, *index) * weight)
        };
        let left_over = |bits: usize, constraint: usize| {
            let [left, right, product] = &self.record.constraints[constraint];
            sum(bits, left) * sum(bits, right) - sum(bits, product)
        };
        let inner: Vec<_> = others
            .iter()
            .filter_map(|other| self.made_by[*other])
            .filter(|by| variables(*by).iter().all(|other| others.contains(other)))
            .collect();
        let [_, _, product] = &self.record.constraints[constraint];
        let weights = product.iter().filter(|(index, _)| self.record.number(*index) == variable);
        let weight = weights.fold(Scalar::ZERO, |sum, (_, weight)| sum + weight);
        let can_be = |bits: &usize| inner.iter().all(|by| left_over(*bits, *by) == Scalar::ZERO);
        (0..1_usize << others.len()).filter(can_be).all(|bits| {
            let left_over = left_over(bits, constraint);
            left_over == Scalar::ZERO || left_over == weight
        })
    }

    /// The second rule, applied repeatedly.
    fn lowest_bits(&self, constraint: usize) -> Vec<usize> {
        let Some(terms) = &self.integers[constraint] else { return vec![] };
        let mut unknown: Vec<_> =
            terms.iter().filter(|(variable, _)| !self.known[*variable]).copied().collect();
        unknown.sort_unstable_by_key(|(_, power)| *power);
        let mut found = vec![];
        for (at, (variable, power)) in unknown.iter().enumerate() {
            if unknown.get(at + 1).is_some_and(|(_, next)| next == power) {
                break;
            }
            found.push(*variable);
        }
        found
    }

    /// Returns the variables of a linear constraint that holds between integers, with the power of
    /// two in each coefficient.
    fn integers(&self, constraint: usize) -> Option<Vec<(usize, u32)>> {
        let [left, right, product] = &self.record.constraints[constraint];
        let is_one =
            |sum: &Sum| matches!(sum[..], [(Index::Input(0), weight)] if weight == Scalar::ONE);
        let terms = match (is_one(left), is_one(right)) {
            (_, true) => left,
            (true, _) => right,
            _ => return None,
        };
        let mut sums: HashMap<usize, Scalar> = HashMap::new();
        for (index, weight) in terms {
            *sums.entry(self.record.number(*index)).or_default() += weight;
        }
        for (index, weight) in product {
            *sums.entry(self.record.number(*index)).or_default() -= weight;
        }
        // The greatest sums of added and of subtracted terms.
        let (mut powers, mut sides) = (vec![], [Big::default(); 2]);
        for (variable, weight) in sums.into_iter().filter(|(_, weight)| *weight != Scalar::ZERO) {
            let (negative, magnitude) = Big::of(weight);
            let greatest = if self.bits[variable] || variable == 0 {
                magnitude
            } else if variable < self.record.inputs.len() {
                // A public value is below 2^128, as the verifier computes it.
                magnitude.times_2_to_the_128()?
            } else {
                return None;
            };
            let side = &mut sides[usize::from(negative)];
            *side = side.plus(greatest);
            // The first rule is sufficient for a public value.
            if variable >= self.record.inputs.len() || self.known[variable] {
                powers.push((variable, magnitude.power_of_two()));
            } else {
                return None;
            }
        }
        // Neither sum reaches the order of the field: equality in the field is equality of
        // integers.
        sides.iter().all(|side| *side < Big::order()).then_some(powers)
    }

    pub(crate) fn undetermined(&self) -> Vec<usize> {
        (0..self.known.len()).filter(|variable| !self.known[*variable]).collect()
    }

    /// Returns the witnesses that may be another value than a bit.
    pub(crate) fn loose(&self) -> Vec<usize> {
        (self.record.inputs.len()..self.bits.len())
            .filter(|variable| !self.bits[*variable])
            .collect()
    }
}
