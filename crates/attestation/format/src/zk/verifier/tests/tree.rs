//! A proof as a tree that follows its encoding: it is parsed without expected lengths, modified
//! anywhere, and encoded again.

/// A part of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::zk) enum Node {
    Scalar([u8; 32]),
    Point([u8; 33]),
    List(Vec<Node>),
    Option(Option<Box<Node>>),
    Fields(Vec<Node>),
}

/// The type of a part.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Scalar,
    Point,
    List(Box<Kind>),
    Option(Box<Kind>),
    Fields(Vec<Kind>),
}

pub(super) fn list(of: Kind) -> Kind {
    Kind::List(Box::new(of))
}

/// Returns the type of a proof in spartan2 0.9.
pub(super) fn proof() -> Kind {
    use Kind::{Fields, Option, Point, Scalar};
    let commitment = || Kind::List(Box::new(Point));
    let early = || Option(Box::new(commitment()));
    let instance = Fields(vec![early(), early(), commitment(), list(Scalar), list(Scalar)]);
    let checks = Fields(vec![list(commitment()), list(Scalar), list(list(Scalar))]);
    let random = Fields(vec![commitment(), commitment(), list(Scalar), Scalar]);
    let relaxed = Fields(vec![
        list(list(Scalar)),
        Fields(vec![Scalar, Scalar, Scalar]),
        list(list(Scalar)),
        list(Scalar),
        Scalar,
        list(Scalar),
        Scalar,
    ]);
    let evaluation = Fields(vec![Point, Point, list(Scalar), Scalar, Scalar]);
    Fields(vec![instance, checks, random, commitment(), relaxed, evaluation])
}

impl Node {
    pub(super) fn read(kind: &Kind, bytes: &mut &[u8]) -> Self {
        let count = |bytes: &mut &[u8]| {
            let (count, rest) = bytes.split_first_chunk().unwrap();
            *bytes = rest;
            u64::from_le_bytes(*count)
        };
        match kind {
            Kind::Scalar => {
                let (scalar, rest) = bytes.split_first_chunk().unwrap();
                *bytes = rest;
                Self::Scalar(*scalar)
            }
            Kind::Point => {
                let (point, rest) = bytes.split_first_chunk().unwrap();
                *bytes = rest;
                Self::Point(*point)
            }
            Kind::List(kind) => {
                let count = count(bytes);
                Self::List((0..count).map(|_| Self::read(kind, bytes)).collect())
            }
            Kind::Option(kind) => {
                let (there, rest) = bytes.split_first().unwrap();
                *bytes = rest;
                Self::Option((*there == 1).then(|| Box::new(Self::read(kind, bytes))))
            }
            Kind::Fields(kinds) => {
                Self::Fields(kinds.iter().map(|kind| Self::read(kind, bytes)).collect())
            }
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Scalar(bytes) => out.extend_from_slice(bytes),
            Self::Point(bytes) => out.extend_from_slice(bytes),
            Self::List(nodes) => {
                out.extend_from_slice(&u64::try_from(nodes.len()).unwrap().to_le_bytes());
                for node in nodes {
                    node.write(out);
                }
            }
            Self::Option(None) => out.push(0),
            Self::Option(Some(node)) => {
                out.push(1);
                node.write(out);
            }
            Self::Fields(nodes) => nodes.iter().for_each(|node| node.write(out)),
        }
    }

    pub(in crate::zk) fn bytes(&self) -> Vec<u8> {
        let mut out = vec![];
        self.write(&mut out);
        out
    }

    pub(in crate::zk) fn of(bytes: &[u8]) -> Self {
        let mut rest = bytes;
        let node = Self::read(&proof(), &mut rest);
        assert!(rest.is_empty(), "a proof was read to its end");
        node
    }

    /// Returns the direct parts of this one.
    pub(in crate::zk) fn parts(&mut self) -> Vec<&mut Self> {
        match self {
            Self::List(nodes) | Self::Fields(nodes) => nodes.iter_mut().collect(),
            Self::Option(Some(node)) => vec![node],
            Self::Option(None) | Self::Scalar(_) | Self::Point(_) => vec![],
        }
    }
}
