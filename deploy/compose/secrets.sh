#!/bin/sh
# Creates the secrets of deploy/compose.yaml in deploy/compose/secrets. Existing ones stay as they are.
set -eu
cd "$(dirname "$0")"
# The folder protects the files: containers get each file alone, and read it as other users.
mkdir -p -m 0700 secrets
cd secrets
umask 022

create() {
    [ -s "$1" ] || printf '%s\n' "$2" > "$1"
}
random() {
    head -c 24 /dev/urandom | od -An -v -t x1 | tr -d ' \n'
}

create database_password "$(random)"
create database_url "postgres://avouch:$(cat database_password)@database/avouch?sslmode=disable"
create redis_password "$(random)"
create redis_url "redis://:$(cat redis_password)@redis"
create objects_secret "$(random)"
create seal_keys "1=$(head -c 32 /dev/urandom | base64)"
