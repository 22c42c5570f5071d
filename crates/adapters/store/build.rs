//! Has the crate built again when a migration is added: the macro that embeds them sees only the files
//! that were there when it ran.

fn main() {
    println!("cargo:rerun-if-changed=../../../migrations/postgres");
    println!("cargo:rerun-if-changed=../../../migrations/sqlite");
}
