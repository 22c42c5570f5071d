//! Tests with the vectors published by the authors of RFC 6962, and with trees of many sizes.

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use proptest::prelude::*;

use super::*;
use crate::{
    signed::unhex,
    tlog::{RightEdge, TILE_WIDTH, Tile},
};

/// The entries and roots of Certificate Transparency's reference tree.
const ENTRIES: [&str; 8] = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
];
const ROOTS: [&str; 9] = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

fn hash(text: &str) -> Hash {
    unhex(text).unwrap().try_into().unwrap()
}

#[test]
fn the_published_vectors_hold() {
    let mut edge = RightEdge::default();
    for (size, entry) in ENTRIES.iter().enumerate() {
        assert_eq!(edge.root(), hash(ROOTS[size]));
        edge.push(leaf_hash(&unhex(entry).unwrap())).unwrap();
    }
    let root = hash(ROOTS[8]);
    assert_eq!((edge.root(), edge.size()), (root, 8));
    let path = [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]
    .map(hash);
    assert_eq!(verify_inclusion(b"", 0, 8, &path, &root), Ok(()));
    assert_eq!(verify_consistency((1, &hash(ROOTS[1])), (8, &root), &path), Ok(()));
    let path = [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]
    .map(hash);
    assert_eq!(verify_consistency((6, &hash(ROOTS[6])), (8, &root), &path), Ok(()));
}

#[test]
fn the_empty_tree_is_a_prefix_of_every_tree() {
    let (empty, one) = (hash(ROOTS[0]), hash(ROOTS[1]));
    assert_eq!(verify_consistency((0, &empty), (1, &one), &[]), Ok(()));
    assert_eq!(verify_consistency((0, &empty), (0, &empty), &[]), Ok(()));
    assert_eq!(verify_consistency((1, &one), (1, &one), &[]), Ok(()));
    let refused = Err(TlogError::Inconsistent);
    assert_eq!(verify_consistency((0, &one), (1, &one), &[]), refused);
    assert_eq!(verify_consistency((0, &empty), (0, &one), &[]), refused);
    assert_eq!(verify_consistency((0, &empty), (1, &one), &[one]), refused);
    assert_eq!(verify_consistency((1, &one), (0, &empty), &[]), refused);
    assert_eq!(verify_consistency((1, &one), (1, &empty), &[]), refused);
    assert_eq!(verify_inclusion(b"", 0, 0, &[], &empty), Err(TlogError::NotIncluded));
}

#[test]
fn excessive_sizes_are_refused() {
    let root = [1; 32];
    for size in [MAX_TREE_SIZE + 1, u64::MAX / 2, u64::MAX / 2 + 2, u64::MAX] {
        for index in [0, size - 1] {
            for length in [0, 40, 64, 65, 1000] {
                let path = vec![[2; 32]; length];
                let refused = verify_inclusion(b"", index, size, &path, &root);
                assert_eq!(refused, Err(TlogError::NotIncluded));
                let refused = verify_consistency((index, &root), (size, &root), &path);
                assert_eq!(refused, Err(TlogError::Inconsistent));
            }
        }
    }
    let edge =
        |size| RightEdge::new(size, vec![vec![]; 5].into_iter().chain([vec![root]]).collect());
    assert!(edge(MAX_TREE_SIZE + 1).is_err() && edge(MAX_TREE_SIZE - 1).is_err());
    let mut full = edge(MAX_TREE_SIZE).unwrap();
    assert_eq!(full.push(root), Err(TlogError::Full));
}

fn entry(number: usize) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn tree(size: usize) -> MemoryBackedTree<Sha256, Vec<u8>> {
    let mut tree = MemoryBackedTree::new();
    (0..size).for_each(|number| tree.push(entry(number)));
    tree
}

fn hashes(bytes: &[u8]) -> Vec<Hash> {
    bytes.as_chunks().0.to_vec()
}

fn root_of(tree: &MemoryBackedTree<Sha256, Vec<u8>>) -> Hash {
    (*tree.root().as_bytes()).into()
}

#[test]
fn the_right_edge_matches_the_complete_tree() {
    let (mut edge, mut whole) = (RightEdge::default(), tree(0));
    let mut tiles = 0;
    for number in 0..800 {
        let path = edge.next_path();
        let full = edge.push(leaf_hash(&entry(number))).unwrap();
        tiles += full.len();
        whole.push(entry(number));
        let (size, root) = (edge.size(), root_of(&whole));
        assert_eq!(edge.root(), root, "{size}");
        assert_eq!(path, hashes(whole.prove_inclusion(number).as_bytes()), "{size}");
        assert_eq!(RightEdge::new(size, edge.levels().to_vec()), Ok(edge.clone()));
        // The example of tlog-tiles: 256 entries are a full tile and one hash above it.
        if size == 256 {
            assert_eq!(full[0].path(), "tile/0/000");
            let partial: Vec<_> = edge.partial_tiles().iter().map(Tile::path).collect();
            assert_eq!(partial, ["tile/1/000.p/1"]);
        }
    }
    assert_eq!(tiles, 3);
}

/// The example of tlog-tiles: the tiles of a tree of 70,000 entries.
#[test]
fn tiles_have_the_paths_of_the_specification() {
    let (mut edge, mut full) = (RightEdge::default(), vec![]);
    for number in 0..70_000 {
        full.extend(edge.push(leaf_hash(&entry(number))).unwrap());
    }
    assert_eq!(full.iter().filter(|tile| tile.level == 0).count(), 273);
    let above: Vec<_> = full.iter().filter(|tile| tile.level > 0).map(Tile::path).collect();
    assert_eq!(above, ["tile/1/000"]);
    let partial: Vec<_> = edge.partial_tiles().iter().map(Tile::path).collect();
    assert_eq!(partial, ["tile/0/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"]);
    assert!(full.iter().all(|tile| tile.hashes.len() == usize::from(TILE_WIDTH)));
    let parent = full.iter().find(|tile| tile.level == 1).unwrap();
    assert_eq!(perfect_hash(&full[255].hashes), parent.hashes[255]);
}

/// Returns the modifications of a path by one step.
fn mutants(path: &[Hash], at: usize) -> Vec<Vec<Hash>> {
    let mut mutants = vec![[path, &[[0; 32]]].concat(), [&[[0; 32]], path].concat()];
    if let Some(at) = at.checked_rem(path.len()) {
        let mut flipped = path.to_vec();
        flipped[at][at % 32] ^= 1;
        let mut dropped = path.to_vec();
        dropped.remove(at);
        let mut swapped = path.to_vec();
        swapped.rotate_left(1);
        mutants.extend([flipped, dropped]);
        mutants.extend((path.len() > 1).then_some(swapped));
    }
    mutants
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_entry_is_proved_and_nothing_else(size in 1_usize..=300, at in 0_usize..64) {
        let whole = tree(size);
        let (root, count, size) = (root_of(&whole), size, whole.len());
        let mut other = root;
        other[at % 32] ^= 1;
        for (number, index) in (0..count).zip(0..) {
            let path = hashes(whole.prove_inclusion(number).as_bytes());
            let leaf = entry(number);
            prop_assert_eq!(verify_inclusion(&leaf, index, size, &path, &root), Ok(()));
            let refused = Err(TlogError::NotIncluded);
            for mutant in mutants(&path, at) {
                prop_assert_eq!(verify_inclusion(&leaf, index, size, &mutant, &root), refused.clone());
            }
            prop_assert_eq!(verify_inclusion(&entry(number + 1), index, size, &path, &root), refused.clone());
            prop_assert_eq!(verify_inclusion(&leaf, index, size, &path, &other), refused.clone());
            for elsewhere in [index + 1, index ^ 1, size, u64::MAX].into_iter().filter(|place| *place != index) {
                prop_assert_eq!(verify_inclusion(&leaf, elsewhere, size, &path, &root), refused.clone());
            }
        }
    }

    #[test]
    fn every_beginning_is_consistent_and_nothing_else(size in 1_usize..=300, at in 0_usize..64) {
        let whole = tree(size);
        let (root, count, size) = (root_of(&whole), size, whole.len());
        let mut edge = RightEdge::default();
        for number in 0..count {
            edge.push(leaf_hash(&entry(number))).unwrap();
            let old = (edge.size(), &edge.root());
            let path = hashes(whole.prove_consistency(count - number - 1).as_bytes());
            prop_assert_eq!(verify_consistency(old, (size, &root), &path), Ok(()));
            let refused = Err(TlogError::Inconsistent);
            for mutant in mutants(&path, at) {
                prop_assert_eq!(verify_consistency(old, (size, &root), &mutant), refused.clone());
            }
            let mut other = *old.1;
            other[at % 32] ^= 1;
            prop_assert_eq!(verify_consistency((old.0, &other), (size, &root), &path), refused.clone());
            other = root;
            other[at % 32] ^= 1;
            prop_assert_eq!(verify_consistency(old, (size, &other), &path), refused);
        }
    }
}
