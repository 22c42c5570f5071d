//! Checks of the repository itself, which need no service: layers, form of the sources, migrations, what
//! operators watch, and the tests that the documents name.

mod architecture;
mod asvs;
mod migrations;
mod observability;
mod tidy;
