//! Wire tests, see below.
