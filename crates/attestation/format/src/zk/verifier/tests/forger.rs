//! A malicious prover: commits to any witness of the checks, of any length, and computes everything
//! after that honestly. It chooses its claims freely.

use ff::Field as _;
use spartan2::provider::traits::{DlogGroup as _, DlogGroupExt as _};

use super::{
    super::{
        Affine, CHECKS_WIDTH, Generators, MAIN_WIDTH, Point, Scalar, Transcript, Verifier, eq,
        eq_table, evaluate_short, transcript,
    },
    deviation::{Deviation, Late},
    parts::{
        Checks, Committed, add, clone, join, one_point, open, points, scalar, scalars, sum_check,
    },
    tree::Node,
};

pub(in crate::zk) struct Forger<'a> {
    verifier: &'a Verifier,
    seed: u64,
}

impl<'a> Forger<'a> {
    pub(in crate::zk) const fn new(verifier: &'a Verifier) -> Self {
        Self { verifier, seed: 1 }
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

    /// Creates a proof of these public values, true or not.
    pub(in crate::zk) fn proof(&mut self, public: &[Scalar], deviation: &Deviation) -> Node {
        let verifier = self.verifier;
        let mut transcript = Transcript::new();
        transcript.bytes(b"vk", verifier.digest.to_vec());
        transcript.scalars(b"public_values", public);
        let zeros = || vec![Scalar::ZERO; verifier.circuit.witnesses];
        let witness = deviation.witness.clone().unwrap_or_else(zeros);
        let witness = self.commit(&verifier.main, witness);
        transcript.rows(b"comm_W_rest", &witness.rows);
        let checks = self.checks(public, deviation, &mut transcript);
        let [random, cross_term, snark] = self.folded(&checks, deviation, &mut transcript);

        // The witness's value at the point is the one that the last round commits to.
        let point = checks.point(verifier.layout.rounds.outer);
        let committed = if deviation.late.is_some() {
            let mut values = zeros();
            values[0] = checks.evaluation * eq_table(point)[0].invert().unwrap();
            self.commit(&verifier.main, values)
        } else {
            clone(&witness)
        };
        let last = verifier.layout.rounds.commitments() - 1;
        let value = (checks.witness.rows[last], checks.witness.blinds[last]);
        let early = |place| deviation.late.filter(|late| *late == place).map(|_| &committed.rows);
        let early = [early(Late::Shared), early(Late::Precommitted)];
        let all: Vec<_> =
            early.into_iter().flatten().flatten().chain(&witness.rows).copied().collect();
        transcript.rows(b"poly_com", &all);
        let evaluation = self.evaluation(&committed, point, value, &mut transcript);

        let rows = points(&witness.rows);
        let [shared, precommitted] =
            early.map(|early| Node::Option(early.map(|rows| Box::new(points(rows)))));
        let instance = vec![shared, precommitted, rows, scalars(public), Node::List(vec![])];
        let instance = Node::Fields(instance);
        Node::Fields(vec![instance, checks.node(last + 1), random, cross_term, snark, evaluation])
    }

    /// Creates the checks, with all messages of the sum-checks zero. With the deviations that make
    /// every challenge zero, all of their witness is zero.
    fn checks(
        &mut self,
        public: &[Scalar],
        deviation: &Deviation,
        transcript: &mut Transcript,
    ) -> Checks {
        let verifier = self.verifier;
        let rounds = verifier.layout.rounds;
        let tau = transcript.challenges(b"t", rounds.outer).unwrap();
        let honest = deviation.has_challenges();
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
                // z = (1 - y)·evaluation + y·public must be zero.
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
        let public = [eq(&tau, r_x), known, a + r * b + r.square() * c];
        // Rows that cancel the public values, from the column after that of the constant.
        if deviation.more_rounds {
            let cancel = challenges.iter().chain(&public).map(|value| -*value);
            let cancel: Vec<_> = std::iter::once(Scalar::ZERO).chain(cancel).collect();
            for row in cancel.chunks(CHECKS_WIDTH) {
                let mut row = row.to_vec();
                row.resize(CHECKS_WIDTH, Scalar::ZERO);
                rows.push(self.commit(&verifier.small, row));
            }
        }
        Checks { challenges, public, witness: join(rows), evaluation }
    }

    /// Folds the checks with an instance of zeros. Returns that instance, the cross-term, and the
    /// proof of the folded instance.
    fn folded(
        &mut self,
        checks: &Checks,
        deviation: &Deviation,
        transcript: &mut Transcript,
    ) -> [Node; 3] {
        let verifier = self.verifier;
        let instance = [checks.challenges.as_slice(), &checks.public].concat();
        let random = vec![Scalar::ZERO; checks.witness.values.len()];
        let random = self.commit(&verifier.small, random);
        let no_error = vec![Scalar::ZERO; verifier.checks.constraints];
        let error = self.commit(&verifier.small, no_error.clone());
        let cross_term = self.commit(&verifier.small, no_error);
        let public_values = deviation.random_public.unwrap_or(instance.len());
        let random_public = vec![Scalar::ZERO; public_values];
        let relaxed = [
            transcript::rows(&random.rows),
            transcript::rows(&error.rows),
            transcript::scalars(&[Scalar::ZERO]),
            transcript::scalars(&random_public),
        ];
        transcript.bytes(b"U1", relaxed.concat());
        let regular = [transcript::rows(&checks.witness.rows), transcript::scalars(&instance)];
        transcript.bytes(b"U2", regular.concat());
        transcript.rows(b"comm_T", &cross_term.rows);
        let fold = transcript.challenge(b"r").unwrap();
        let public: Vec<_> =
            random_public.iter().zip(&instance).map(|(_, value)| fold * value).collect();
        let folded = add(&random, &checks.witness, fold);
        let folded_error = add(&error, &cross_term, fold);
        let snark = self.relaxed(&folded, &folded_error, fold, &public, transcript);
        let random = Node::Fields(vec![
            points(&random.rows),
            points(&error.rows),
            scalars(&random_public),
            scalar(&Scalar::ZERO),
        ]);
        [random, points(&cross_term.rows), snark]
    }

    /// Creates Spartan's proof of a relaxed instance, from vectors of any length.
    fn relaxed(
        &self,
        witness: &Committed,
        error: &Committed,
        u: Scalar,
        public: &[Scalar],
        transcript: &mut Transcript,
    ) -> Node {
        let shape = &self.verifier.checks;
        let rounds = shape.rounds();
        transcript.scalars(b"u_relaxed", &[u]);
        transcript.scalars(b"X_relaxed", public);
        // The columns as the verifier adds them: the witness, from the first one, and the public
        // values, after the columns of the rounds.
        let mut assignment = vec![Scalar::ZERO; 1 << rounds.inner];
        assignment[..witness.values.len()].copy_from_slice(&witness.values);
        for (at, value) in [u].iter().chain(public).enumerate() {
            assignment[shape.witnesses + at] += value;
        }
        let [az, bz, cz] = shape.products(&assignment);
        let cz: Vec<_> = cz.iter().zip(&error.values).map(|(cz, error)| u * cz + error).collect();
        let tau = transcript.challenges(b"t", rounds.outer).unwrap();
        let mut tables = vec![eq_table(&tau), az, bz, cz];
        let (outer, r_x) =
            sum_check::<4>(&mut tables, |at| at[0] * (at[1] * at[2] - at[3]), transcript);
        let claims = [tables[1][0], tables[2][0], tables[3][0]];
        transcript.scalars(b"claims_outer", &claims);
        let weight = transcript.challenge(b"r").unwrap();
        let columns = (0..assignment.len()).map(|column| {
            let mut unit = vec![Scalar::ZERO; assignment.len()];
            unit[column] = Scalar::ONE;
            let [a, b, c] = shape.evaluate(&eq_table(&r_x), &unit);
            a + weight * b + weight.square() * u * c
        });
        let mut tables = vec![columns.collect(), assignment];
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
        let verifier = self.verifier;
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
        let rows = committed.rows.len().min(weights.len());
        let (weights, rows) = (&weights[..rows], &committed.rows[..rows]);
        let point = Point::vartime_multiscalar_mul(weights, rows, false).unwrap();
        transcript.domain(b"inner product argument (linear)");
        transcript.points(b"U", &[point.affine(), value]);
        // Nothing has to be hidden: only the blinds must not be zero.
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
