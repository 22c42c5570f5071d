# Each recipe calls the same command as CI and the README.

# The service with a demo partner
up:
    cargo xtask up

# Every check and every test
test:
    cargo xtask test

# What must hold before a commit, quickly: all but the throwaway servers
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test -p domain -p ports -p testkit -p cdp
    cargo test -p acceptance --test architecture --test tidy

# The benchmarks
bench *NAME:
    cargo xtask bench {{NAME}}

# The README's picture, taken on the demo page of a running `just up`
picture URL:
    cargo run -p acceptance --example picture -- {{URL}} docs/images/embed.png
