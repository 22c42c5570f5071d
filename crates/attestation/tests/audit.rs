//! An audit of the circuit: with the handshake secret and what the witness recorded, every value
//! of the circuit is determined. Keys that did not follow from the handshake would not be.
//!
//! The argument holds for every assignment, not for the one that was recorded. What is known
//! spreads from the secret and the recorded inputs by two rules until nothing new is found:
//!
//! 1. A constraint whose only unknown stands in its product alone, with a coefficient that is not
//!    zero, determines it.
//! 2. A linear constraint between bits is an equation of integers where its coefficients are too
//!    small to wrap around the field. If of all unknown bits one alone has the smallest power of
//!    two in its coefficient, the equation modulo the next power determines it.
//!
//! `cargo test -p attestation --test audit`
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

use std::collections::{BTreeSet, HashMap, VecDeque};

use attestation::zk::{Block, Statement, synthesize};
use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::{Field as _, PrimeField as _};
use spartan2::{provider::T256HyraxEngine, traits::Engine};

type Scalar = <T256HyraxEngine as Engine>::Scalar;
type Sum = Vec<(Index, Scalar)>;

/// A circuit, written down.
#[derive(Default)]
struct Record {
    inputs: Vec<Scalar>,
    witness: Vec<Scalar>,
    /// Of two sums the product is the third.
    constraints: Vec<[Sum; 3]>,
}

impl Record {
    fn sum(&self, sum: &Sum) -> Scalar {
        let value = |index: &Index| match index {
            Index::Input(at) => self.inputs[*at],
            Index::Aux(at) => self.witness[*at],
        };
        sum.iter().fold(Scalar::ZERO, |all, (index, weight)| all + value(index) * weight)
    }

    fn holds(&self, at: usize) -> bool {
        let [left, right, product] = &self.constraints[at];
        self.sum(left) * self.sum(right) == self.sum(product)
    }
}

/// What follows from what, in a circuit of which one constraint may be left out.
struct Audit<'a> {
    record: &'a Record,
    /// By variable, inputs first: the constraints that it is in.
    uses: &'a [Vec<usize>],
    bits: Vec<bool>,
    /// By bit: the constraint that makes it one of other bits.
    made_by: Vec<Option<usize>>,
    known: Vec<bool>,
    /// By variable: the constraint that determined it.
    by: Vec<Option<usize>>,
    /// By constraint: what the second rule needs to know of it.
    integers: Vec<Option<Vec<(usize, u32)>>>,
    /// Constraints to look at, and by constraint whether it is one of them.
    again: VecDeque<usize>,
    waits: Vec<bool>,
}

impl Record {
    fn number(&self, index: Index) -> usize {
        match index {
            Index::Input(at) => at,
            Index::Aux(at) => self.inputs.len() + at,
        }
    }

    fn uses(&self) -> Vec<Vec<usize>> {
        let mut uses = vec![vec![]; self.inputs.len() + self.witness.len()];
        for (constraint, sums) in self.constraints.iter().enumerate() {
            for (index, _) in sums.iter().flatten() {
                let uses = &mut uses[self.number(*index)];
                if uses.last() != Some(&constraint) {
                    uses.push(constraint);
                }
            }
        }
        uses
    }

    /// Constraints of the form `(1 - x)·x = 0`.
    fn bit(&self, constraint: usize) -> Option<usize> {
        let [left, right, product] = &self.constraints[constraint];
        let ([(one, plus), (negative, minus)], [(own, weight)], []) =
            (left.as_slice(), right.as_slice(), product.as_slice())
        else {
            return None;
        };
        let (one, negative) = (self.number(*one), self.number(*negative));
        let fits = (one, *plus, *minus, *weight) == (0, Scalar::ONE, -Scalar::ONE, Scalar::ONE)
            && negative == self.number(*own);
        fits.then_some(negative)
    }
}

impl<'a> Audit<'a> {
    /// Spreads from these variables, and from the constant one.
    fn of(
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
        // What is made of bits comes after them.
        constraints.for_each(|constraint| audit.make_bit(constraint));
        audit.known[0] = true;
        given.iter().for_each(|given| audit.known[*given] = true);
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

    /// A variable is a bit where the constraint that defines it makes it one for all values of the
    /// bits that it is made of, and of bits that are made of these in turn.
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
                place.map_or(Scalar::ZERO, |place| Scalar::from((bits >> place & 1) as u64))
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

    /// The second rule, as often as it applies.
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

    /// Of a linear constraint that holds between integers: its variables with the power of two in
    /// each coefficient.
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
        // The greatest sums of what is added and of what is subtracted.
        let (mut powers, mut sides) = (vec![], [Big::default(); 2]);
        for (variable, weight) in sums.into_iter().filter(|(_, weight)| *weight != Scalar::ZERO) {
            let (negative, magnitude) = Big::of(weight);
            let greatest = if self.bits[variable] || variable == 0 {
                magnitude
            } else if variable < self.record.inputs.len() {
                // A public value is below 2^128: that is how the verifier makes it.
                magnitude.times_2_to_the_128()?
            } else {
                return None;
            };
            let side = &mut sides[usize::from(negative)];
            *side = side.plus(greatest);
            // The first rule is enough for a public value.
            if variable >= self.record.inputs.len() || self.known[variable] {
                powers.push((variable, magnitude.power_of_two()));
            } else {
                return None;
            }
        }
        // Neither sum reaches the order of the field: equal in the field is equal.
        sides.iter().all(|side| *side < Big::order()).then_some(powers)
    }

    fn undetermined(&self) -> Vec<usize> {
        (0..self.known.len()).filter(|variable| !self.known[*variable]).collect()
    }

    /// Witnesses that may be something else than a bit.
    fn loose(&self) -> Vec<usize> {
        (self.record.inputs.len()..self.bits.len())
            .filter(|variable| !self.bits[*variable])
            .collect()
    }
}

/// A number below 2^320; the highest limb comes first, so that the order is that of numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Big([u64; 5]);

impl Big {
    /// Of a coefficient or of its negative the smaller one, and whether it is the negative.
    fn of(weight: Scalar) -> (bool, Self) {
        let [own, negative] = [weight, -weight].map(Self::plain);
        if own <= negative { (false, own) } else { (true, negative) }
    }

    fn plain(value: Scalar) -> Self {
        let (repr, mut limbs) = (value.to_repr(), [0; 5]);
        for (limb, bytes) in limbs[1..].iter_mut().rev().zip(repr.as_ref().chunks(8)) {
            *limb = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        Self(limbs)
    }

    fn order() -> Self {
        Self::plain(-Scalar::ONE).plus(Self::plain(Scalar::ONE))
    }

    fn plus(self, other: Self) -> Self {
        let (mut sum, mut carry) = ([0; 5], false);
        for at in (0..5).rev() {
            let (limb, first) = self.0[at].overflowing_add(other.0[at]);
            let (limb, second) = limb.overflowing_add(u64::from(carry));
            (sum[at], carry) = (limb, first || second);
        }
        assert!(!carry, "a sum of fewer than 2^64 numbers below 2^256");
        Self(sum)
    }

    fn times_2_to_the_128(self) -> Option<Self> {
        let [0, 0, first, second, third] = self.0 else { return None };
        Some(Self([first, second, third, 0, 0]))
    }

    fn power_of_two(self) -> u32 {
        let zeros = self.0.iter().rev().take_while(|limb| **limb == 0).count();
        let limb = self.0.iter().rev().find(|limb| **limb != 0).unwrap();
        64 * u32::try_from(zeros).unwrap() + limb.trailing_zeros()
    }
}

impl ConstraintSystem<Scalar> for Record {
    type Root = Self;

    fn new() -> Self {
        Self { inputs: vec![Scalar::ONE], ..Self::default() }
    }

    fn alloc<V, A, N>(&mut self, _: A, value: V) -> Result<Variable, SynthesisError>
    where
        V: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> N,
        N: Into<String>,
    {
        self.witness.push(value()?);
        Ok(Variable::new_unchecked(Index::Aux(self.witness.len() - 1)))
    }

    fn alloc_input<V, A, N>(&mut self, _: A, value: V) -> Result<Variable, SynthesisError>
    where
        V: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> N,
        N: Into<String>,
    {
        self.inputs.push(value()?);
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, N, L, R, P>(&mut self, _: A, left: L, right: R, product: P)
    where
        A: FnOnce() -> N,
        N: Into<String>,
        L: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        R: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        P: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        let sum = |all: LinearCombination<Scalar>| {
            all.iter().map(|(variable, weight)| (variable.get_unchecked(), *weight)).collect()
        };
        self.constraints.push([
            sum(left(LinearCombination::zero())),
            sum(right(LinearCombination::zero())),
            sum(product(LinearCombination::zero())),
        ]);
    }

    fn push_namespace<N, A>(&mut self, _: A)
    where
        N: Into<String>,
        A: FnOnce() -> N,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self {
        self
    }
}

fn statement() -> Statement {
    let plain = Block {
        nonce: [3; 12],
        counter: 1,
        ciphertext: std::array::from_fn(|at| u8::try_from(at * 3).unwrap()),
        opened: 0x0f0f_0f0f_0f0f_0f0f,
        ..Block::BLANK
    };
    let tag = Block { nonce: [3; 12], opened: u64::from(u32::MAX), ..Block::BLANK };
    Statement {
        hellos: [1; 32],
        transcript: [2; 32],
        server_handshake: [0; 32],
        client_handshake: [0; 32],
        server_data: [0; 32],
        client_iv: [0; 12],
        blocks: vec![tag, plain],
    }
}

/// The variables that are given: the bits of the secret, and the public values that a witness
/// recorded: of the statement the hashes, and of each block its place, ciphertext and masks.
fn given(record: &Record) -> Vec<usize> {
    let secret = (0..256).map(|bit| record.number(Index::Aux(bit)));
    // The constant, two values for each of five hashes, one for the IV; 10 for each block: one of
    // its place, four of ciphertext, one of masks, four of what is opened.
    let recorded = (1..record.inputs.len()).filter(|at| match at {
        1..=4 => true,
        5..=11 => false,
        block => (block - 12) % 10 < 6,
    });
    secret.chain(recorded).collect()
}

fn recorded() -> Record {
    let mut record = Record::new();
    synthesize(&mut record, &statement(), &[5; 32]).unwrap();
    let constraints = record.constraints.len();
    assert!((0..constraints).all(|at| record.holds(at)), "the honest assignment fits");
    record
}

#[test]
fn the_secret_and_what_was_recorded_determine_everything() {
    let record = recorded();
    let uses = record.uses();
    let audit = Audit::of(&record, &uses, &given(&record), None);
    println!(
        "{} constraints, {} public values, {} witnesses",
        record.constraints.len(),
        record.inputs.len() - 1,
        record.witness.len(),
    );
    let (free, loose) = (audit.undetermined(), audit.loose());
    assert_eq!((free.len(), loose.len()), (0, 0), "free: {free:?}, loose: {loose:?}");
}

/// The audit can fail: without the secret, without an input, without any one constraint that it
/// used, something is free.
#[test]
fn whatever_is_left_out_is_found() {
    let record = recorded();
    let uses = record.uses();
    let given = given(&record);
    let whole = Audit::of(&record, &uses, &given, None);
    for left_out in [0, 255, 256, 260, given.len() - 1] {
        let mut fewer = given.clone();
        fewer.remove(left_out);
        let audit = Audit::of(&record, &uses, &fewer, None);
        assert!(!audit.undetermined().is_empty(), "given without {left_out}");
    }
    let needed: Vec<_> = whole.by.iter().flatten().copied().collect();
    let count = needed.len();
    for at in 0..16 {
        let constraint = needed[at * (count - 1) / 15];
        let audit = Audit::of(&record, &uses, &given, Some(constraint));
        assert!(!audit.undetermined().is_empty(), "without constraint {constraint}");
    }
}
