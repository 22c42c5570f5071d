//! Checks of the repository itself, which need no service: layers, form of the sources, and the
//! tests that the documents name.

mod architecture;
mod asvs;
mod tidy;
