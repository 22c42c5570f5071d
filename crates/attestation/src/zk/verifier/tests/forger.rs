//! A malicious prover: commits to any witness of the checks, of any length, and answers everything
//! after that as an honest one does. What its claims are is its own choice.

use ff::{Field as _, PrimeField as _};
use halo2curves::group::GroupEncoding as _;
use spartan2::provider::traits::{DlogGroup as _, DlogGroupExt as _};

use super::{
    super::{
        Affine, CHECKS_WIDTH, Generators, MAIN_WIDTH, Point, Scalar, Transcript, eq, eq_table,
        evaluate_short, transcript,
    },
    small::Setup,
    tree::Node,
};

/// What a forger deviates with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deviation {
    /// None: a false statement, otherwise by the rules.
    None,
    /// The random instance has no public values.
    NoRandomPublicValues,
    /// The witness is committed to where a shared one would be, once all challenges are known.
    SharedCommitment,
    /// Rows of commitments beyond the last round, which cancel the public values.
    MoreRounds,
}

pub(super) struct Forger<'a> {
    setup: &'a Setup,
    seed: u64,
}

/// A vector with the commitments to its rows and their blinds.
struct Committed {
    values: Vec<Scalar>,
    blinds: Vec<Scalar>,
    rows: Vec<Affine>,
}

impl<'a> Forger<'a> {
    pub(super) const fn new(setup: &'a Setup) -> Self {
        Self { setup, seed: 1 }
    }

    fn blind(&mut self) -> Scalar {
        self.seed += 1;
        Scalar::from(self.seed * 7919).invert().unwrap()
    }

    fn commit(&mut self, generators: &Generators, values: Vec<Scalar>) -> Committed {
        let width = generators.columns.len();
        let blinds: Vec<_> = (0..values.len().div_ceil(width)).map(|_| self.blind()).collect();
        let row = |(row, blind): (&[Scalar], &Scalar)| {
            let points: Vec<_> = generators.columns[..row.len()]
                .iter()
                .chain([&generators.blind])
                .copied()
                .collect();
            let scalars: Vec<_> = row.iter().chain([blind]).copied().collect();
            Point::vartime_multiscalar_mul(&scalars, &points, false).unwrap().affine()
        };
        let rows = values.chunks(width).zip(&blinds).map(row).collect();
        Committed { values, blinds, rows }
    }

    /// A proof of these public values, whatever they are.
    pub(super) fn proof(&mut self, public: &[Scalar], deviation: Deviation) -> Node {
        let verifier = &self.setup.verifier;
        let rounds = verifier.layout.rounds;
        let mut transcript = Transcript::new();
        transcript.bytes(b"vk", self.setup.digest.to_vec());
        transcript.scalars(b"public_values", public);
        let zeros = vec![Scalar::ZERO; verifier.circuit.witnesses];
        let witness = self.commit(&verifier.main, zeros);
        transcript.rows(b"comm_W_rest", &witness.rows);
        let tau = transcript.challenges(b"t", rounds.outer).unwrap();

        // The checks, with all messages of the sum-checks zero. With the deviations that make every
        // challenge zero, all of their witness is.
        let honest = matches!(deviation, Deviation::None | Deviation::SharedCommitment);
        let constant: Vec<_> = [Scalar::ONE].iter().chain(public).copied().collect();
        let (mut challenges, mut rows) = (vec![], vec![]);
        let mut evaluation = Scalar::ZERO;
        for round in 0..rounds.commitments() {
            let mut row = vec![Scalar::ZERO; CHECKS_WIDTH];
            if honest && round == rounds.outer {
                row[6] = eq(&tau, &challenges);
            } else if honest && round == rounds.outer + 1 {
                let r: Scalar = challenges[rounds.outer];
                row[3] = r.square();
            } else if honest && round == rounds.challenges() {
                // z = (1 - y)·evaluation + y·public has to be zero.
                let point = &challenges[rounds.outer + 1..];
                let weighted = -point[0] * evaluate_short(&constant, &point[1..]);
                evaluation = weighted * (Scalar::ONE - point[0]).invert().unwrap();
                row[2] = evaluation;
                row[3] = weighted;
            } else if honest && round == rounds.challenges() + 1 {
                row[0] = evaluation;
            }
            let row = self.commit(&verifier.small, row);
            transcript.rows(b"comm_w_round", &row.rows);
            rows.push(row);
            if round < rounds.challenges() {
                challenges.push(transcript.challenge(b"challenge").unwrap());
            }
        }
        let (r_x, rest) = challenges.split_at(rounds.outer);
        let (r, r_y) = (rest[0], &rest[1..]);
        let [a, b, c] = verifier.circuit.evaluate(&eq_table(r_x), &eq_table(r_y));
        let known = evaluate_short(&constant, &r_y[1..]);
        let checks_public = [eq(&tau, r_x), known, a + r * b + r.square() * c];
        let instance = [challenges.as_slice(), &checks_public].concat();

        // Rows that cancel the public values, from the column after that of the constant.
        if deviation == Deviation::MoreRounds {
            let mut cancel = vec![Scalar::ZERO];
            cancel.extend(instance.iter().map(|value| -*value));
            for row in cancel.chunks(CHECKS_WIDTH) {
                let mut row = row.to_vec();
                row.resize(CHECKS_WIDTH, Scalar::ZERO);
                let row = self.commit(&verifier.small, row);
                rows.push(row);
            }
        }
        let checks_witness = join(rows);

        // The instance to fold with: zeros, and an error of zero.
        let random = vec![Scalar::ZERO; checks_witness.values.len()];
        let random = self.commit(&verifier.small, random);
        let no_error = vec![Scalar::ZERO; verifier.checks.constraints];
        let error = self.commit(&verifier.small, no_error.clone());
        let cross_term = self.commit(&verifier.small, no_error);
        let random_public = match deviation {
            Deviation::NoRandomPublicValues => vec![],
            _ => vec![Scalar::ZERO; instance.len()],
        };
        let relaxed = [
            transcript::rows(&random.rows),
            transcript::rows(&error.rows),
            transcript::scalars(&[Scalar::ZERO]),
            transcript::scalars(&random_public),
        ];
        transcript.bytes(b"U1", relaxed.concat());
        let regular = [transcript::rows(&checks_witness.rows), transcript::scalars(&instance)];
        transcript.bytes(b"U2", regular.concat());
        transcript.rows(b"comm_T", &cross_term.rows);
        let fold = transcript.challenge(b"r").unwrap();
        let folded_public: Vec<_> =
            random_public.iter().zip(&instance).map(|(_, value)| fold * value).collect();
        let folded = add(&random, &checks_witness, fold);
        let folded_error = add(&error, &cross_term, fold);
        let snark = self.relaxed(&folded, &folded_error, fold, &folded_public, &mut transcript);

        // The witness's value at the point is the one that the last round commits to.
        let committed = match deviation {
            Deviation::SharedCommitment => {
                let mut values = vec![Scalar::ZERO; verifier.circuit.witnesses];
                values[0] = evaluation * eq_table(&r_y[1..])[0].invert().unwrap();
                self.commit(&verifier.main, values)
            }
            _ => clone(&witness),
        };
        let last = rounds.commitments() - 1;
        let value = (checks_witness.rows[last], checks_witness.blinds[last]);
        let shared = (deviation == Deviation::SharedCommitment).then_some(&committed);
        let all: Vec<_> =
            shared.iter().flat_map(|shared| &shared.rows).chain(&witness.rows).copied().collect();
        transcript.rows(b"poly_com", &all);
        let evaluation = self.evaluation(&committed, &r_y[1..], value, &mut transcript);

        let shared = shared.map(|shared| Box::new(points(&shared.rows)));
        let per_round: Vec<_> =
            checks_witness.rows.iter().map(|row| points(std::slice::from_ref(row))).collect();
        let mut challenges: Vec<_> =
            challenges.iter().map(|one| scalars(std::slice::from_ref(one))).collect();
        challenges.resize(rounds.commitments(), Node::List(vec![]));
        Node::Fields(vec![
            Node::Fields(vec![
                Node::Option(shared),
                Node::Option(None),
                points(&witness.rows),
                scalars(public),
                Node::List(vec![]),
            ]),
            Node::Fields(vec![
                Node::List(per_round),
                scalars(&checks_public),
                Node::List(challenges),
            ]),
            Node::Fields(vec![
                points(&random.rows),
                points(&error.rows),
                scalars(&random_public),
                scalar(&Scalar::ZERO),
            ]),
            points(&cross_term.rows),
            snark,
            evaluation,
        ])
    }

    /// Spartan's proof of a relaxed instance, of whatever vectors there are.
    fn relaxed(
        &self,
        witness: &Committed,
        error: &Committed,
        u: Scalar,
        public: &[Scalar],
        transcript: &mut Transcript,
    ) -> Node {
        let shape = &self.setup.verifier.checks;
        let rounds = shape.rounds();
        transcript.scalars(b"u_relaxed", &[u]);
        transcript.scalars(b"X_relaxed", public);
        // The columns as the verifier adds them up: the witness, from the first one, and the
        // public values, after the columns of the rounds.
        let mut z = vec![Scalar::ZERO; 1 << rounds.inner];
        z[..witness.values.len()].copy_from_slice(&witness.values);
        for (at, value) in [u].iter().chain(public).enumerate() {
            z[shape.witnesses + at] += value;
        }
        let [az, bz, cz] = shape.products(&z);
        let cz: Vec<_> = cz.iter().zip(&error.values).map(|(cz, error)| u * cz + error).collect();
        let tau = transcript.challenges(b"t", rounds.outer).unwrap();
        let mut tables = vec![eq_table(&tau), az, bz, cz];
        let (outer, r_x) =
            sum_check::<4>(&mut tables, |at| at[0] * (at[1] * at[2] - at[3]), transcript);
        let claims = [tables[1][0], tables[2][0], tables[3][0]];
        transcript.scalars(b"claims_outer", &claims);
        let r = transcript.challenge(b"r").unwrap();
        let columns = (0..z.len()).map(|column| {
            let mut unit = vec![Scalar::ZERO; z.len()];
            unit[column] = Scalar::ONE;
            let [a, b, c] = shape.evaluate(&eq_table(&r_x), &unit);
            a + r * b + r.square() * u * c
        });
        let mut tables = vec![columns.collect(), z];
        let (inner, r_y) = sum_check::<3>(&mut tables, |at| at[0] * at[1], transcript);
        let (witness_row, witness_blind) = open(witness, &r_y[1..]);
        let (error_row, error_blind) = open(error, &r_x);
        transcript.scalars(b"v_W", &witness_row);
        transcript.scalars(b"v_E", &error_row);
        Node::Fields(vec![
            Node::List(outer.iter().map(|round| scalars(round)).collect()),
            Node::Fields(claims.iter().map(scalar).collect()),
            Node::List(inner.iter().map(|round| scalars(round)).collect()),
            scalars(&witness_row),
            scalar(&witness_blind),
            scalars(&error_row),
            scalar(&error_blind),
        ])
    }

    fn evaluation(
        &mut self,
        committed: &Committed,
        at: &[Scalar],
        (value, value_blind): (Affine, Scalar),
        transcript: &mut Transcript,
    ) -> Node {
        let verifier = &self.setup.verifier;
        let high = at.len() - usize::try_from(MAIN_WIDTH.ilog2()).unwrap();
        let weights = eq_table(&at[..high]);
        let row: Vec<_> = (0..MAIN_WIDTH)
            .map(|column| {
                let column = committed.values.iter().skip(column).step_by(MAIN_WIDTH);
                column
                    .zip(&weights)
                    .fold(Scalar::ZERO, |sum, (value, weight)| sum + *value * weight)
            })
            .collect();
        let blind = committed.blinds.iter().zip(&weights);
        let blind = blind.fold(Scalar::ZERO, |sum, (blind, weight)| sum + *blind * weight);
        let point = Point::vartime_multiscalar_mul(&weights, &committed.rows, false).unwrap();
        transcript.domain(b"inner product argument (linear)");
        transcript.points(b"U", &[point.affine(), value]);
        // Nothing has to be hidden: the blinds alone are not zero.
        let (delta_blind, beta_blind) = (self.blind(), self.blind());
        let delta = (Point::group(&verifier.main.blind) * delta_blind).affine();
        let beta = (Point::group(&verifier.small.blind) * beta_blind).affine();
        transcript.points(b"delta", &[delta]);
        transcript.points(b"beta", &[beta]);
        let r = transcript.challenge(b"r").unwrap();
        let row: Vec<_> = row.iter().map(|value| *value * r).collect();
        Node::Fields(vec![
            one_point(&delta),
            one_point(&beta),
            scalars(&row),
            scalar(&(r * blind + delta_blind)),
            scalar(&(r * value_blind + beta_blind)),
        ])
    }
}

/// Proves a sum over all bits of a product of tables, of degree `N - 1`; the tables are folded to
/// their value at the point.
fn sum_check<const N: usize>(
    tables: &mut [Vec<Scalar>],
    product: impl Fn(&[Scalar]) -> Scalar,
    transcript: &mut Transcript,
) -> (Vec<Vec<Scalar>>, Vec<Scalar>) {
    let (mut rounds, mut point) = (vec![], vec![]);
    while tables[0].len() > 1 {
        let half = tables[0].len() / 2;
        // Values at 0, 1, … N - 1, and from them the coefficients.
        let values: Vec<_> = (0..N)
            .map(|x| {
                let x = Scalar::from(u64::try_from(x).unwrap());
                let term = |at: usize| {
                    let at: Vec<_> = tables
                        .iter()
                        .map(|table| table[at] + x * (table[at + half] - table[at]))
                        .collect();
                    product(&at)
                };
                (0..half).map(term).fold(Scalar::ZERO, |sum, term| sum + term)
            })
            .collect();
        let mut coefficients = interpolated(&values);
        coefficients.remove(1);
        transcript.bytes(
            b"p",
            coefficients.iter().flat_map(|value| value.to_repr().as_ref().to_vec()).collect(),
        );
        let at = transcript.challenge(b"c").unwrap();
        for table in tables.iter_mut() {
            for index in 0..half {
                table[index] = table[index] + at * (table[index + half] - table[index]);
            }
            table.truncate(half);
        }
        rounds.push(coefficients);
        point.push(at);
    }
    (rounds, point)
}

/// The coefficients of the polynomial with these values at 0, 1, 2, … (Lagrange).
fn interpolated(values: &[Scalar]) -> Vec<Scalar> {
    let mut sum = vec![Scalar::ZERO; values.len()];
    for (own, value) in values.iter().enumerate() {
        let mut basis = vec![Scalar::ONE];
        for other in (0..values.len()).filter(|other| *other != own) {
            let number = |at: usize| Scalar::from(u64::try_from(at).unwrap());
            let scale = (number(own) - number(other)).invert().unwrap();
            let mut next = vec![Scalar::ZERO; basis.len() + 1];
            for (degree, coefficient) in basis.iter().enumerate() {
                next[degree] -= *coefficient * number(other) * scale;
                next[degree + 1] += *coefficient * scale;
            }
            basis = next;
        }
        for (sum, coefficient) in sum.iter_mut().zip(basis) {
            *sum += coefficient * value;
        }
    }
    sum
}

fn open(committed: &Committed, at: &[Scalar]) -> (Vec<Scalar>, Scalar) {
    let weights = eq_table(&at[..at.len() - usize::try_from(CHECKS_WIDTH.ilog2()).unwrap()]);
    let mut row = vec![Scalar::ZERO; CHECKS_WIDTH];
    for (values, weight) in committed.values.chunks(CHECKS_WIDTH).zip(&weights) {
        row.iter_mut().zip(values).for_each(|(sum, value)| *sum += *value * weight);
    }
    let blinds = committed.blinds.iter().zip(&weights);
    (row, blinds.fold(Scalar::ZERO, |sum, (blind, weight)| sum + *blind * weight))
}

fn join(rows: Vec<Committed>) -> Committed {
    let mut all = Committed { values: vec![], blinds: vec![], rows: vec![] };
    for row in rows {
        all.values.extend(row.values);
        all.blinds.extend(row.blinds);
        all.rows.extend(row.rows);
    }
    all
}

/// The sum of one vector and a multiple of another; of its commitments nobody asks.
fn add(left: &Committed, right: &Committed, factor: Scalar) -> Committed {
    let sum = |left: &[Scalar], right: &[Scalar]| {
        left.iter().zip(right).map(|(left, right)| *left + factor * right).collect()
    };
    Committed {
        values: sum(&left.values, &right.values),
        blinds: sum(&left.blinds, &right.blinds),
        rows: vec![],
    }
}

fn clone(committed: &Committed) -> Committed {
    Committed {
        values: committed.values.clone(),
        blinds: committed.blinds.clone(),
        rows: committed.rows.clone(),
    }
}

fn scalar(value: &Scalar) -> Node {
    Node::Scalar(*value.to_repr().inner())
}

fn scalars(values: &[Scalar]) -> Node {
    Node::List(values.iter().map(scalar).collect())
}

fn one_point(point: &Affine) -> Node {
    Node::Point(*point.to_bytes().inner())
}

fn points(points: &[Affine]) -> Node {
    Node::List(points.iter().map(one_point).collect())
}
