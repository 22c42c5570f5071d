# Each recipe is one command of cargo, the same as in CI and the README.

# Lists the recipes
default:
    @just --list

# Builds and serves with a demo partner, until Ctrl-C
up:
    cargo xtask up

# Every check and every test
test *ARGS:
    cargo xtask test {{ARGS}}

# The tests that need neither a server nor a browser
test-unit:
    cargo xtask test --unit

# The tests of stores and other adapters, with throwaway servers
test-db:
    cargo xtask test --db

# The tests of the remote browser and of sessions in it
test-browser:
    cargo xtask test --browser

# What must hold before a commit: formatting, lints, unit tests, repository tests
check:
    cargo xtask check

# An earlier release, a tag or a commit, replaced by this one under load; builds it first
upgrade-test REVISION:
    cargo xtask upgrade-test --from {{REVISION}}

# Five instances under faults for an hour, with applicants: `just soak --minutes 10 --applicants 4`
soak *ARGS:
    cargo xtask soak {{ARGS}}

# Writes down what a release that is made sends to the database
record-release NAME:
    cargo xtask record-release {{NAME}}

# The documentation site, as files in target/docs
docs:
    cargo xtask docs

# Line coverage of the use cases by their unit tests; needs cargo-llvm-cov. `just coverage --html` writes pages
coverage *ARGS:
    cargo llvm-cov nextest -p application --lib --ignore-filename-regex '(/tests?/|tests\.rs|/testing/)' {{ARGS}}

# The benchmarks, or one of them
bench *NAME:
    cargo xtask bench {{NAME}}

# A simulated day of sessions: `just simulate --sessions 1000000`; `just simulate --help` lists the options
simulate *ARGS:
    cargo xtask simulate {{ARGS}}

# A fuzz target of a crate, until Ctrl-C: `just fuzz jpeg-delta picture`; needs nightly and cargo-fuzz
fuzz CRATE TARGET *ARGS:
    cargo +nightly fuzz run --fuzz-dir crates/{{CRATE}}/fuzz {{TARGET}} {{ARGS}}

# The README's picture, taken on the demo page of a running `just up`
picture URL:
    cargo run -p acceptance --example picture -- {{URL}} docs/images/embed.png

# Pictures of every state of the applicant's page in target/contact-sheet, each checked; takes about half an hour
contact-sheet:
    cargo xtask test --tests-only -- -P long --run-ignored only -E 'test(/contact_sheet/)'
