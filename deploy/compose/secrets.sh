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

# Creates a key and a certificate of the authority in the folder $new: of the side $1, for the DNS name $2 and
# the usages $3.
certify() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=Avouch" \
        -CA "$new/instance_roots" -CAkey "$new/roots.key" -addext "basicConstraints=critical,CA:FALSE" \
        -addext "subjectAltName=DNS:$2" -addext "keyUsage=critical,digitalSignature" \
        -addext "extendedKeyUsage=$3" -keyout "$new/$1_key" -out "$new/$1_cert" 2> "$new/log" || {
        cat "$new/log" >&2
        return 1
    }
    # openssl writes keys for their owner alone.
    chmod 0644 "$new/$1_key"
}
# Creates the certificates by which the service and its browser host know each other, and an authority for
# them alone, whose key is not kept: nobody can issue another certificate. Where a file is missing all are
# created again.
certificates() {
    for file in instance_roots instance_cert instance_key host_cert host_key; do
        [ -s "$file" ] || break
    done
    [ ! -s "$file" ] || return 0
    new=$(mktemp -d ./new.XXXXXX)
    trap 'rm -rf "$new"' EXIT
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=Avouch instances" \
        -addext "keyUsage=critical,keyCertSign" -keyout "$new/roots.key" -out "$new/instance_roots" \
        2> "$new/log" || {
        cat "$new/log" >&2
        return 1
    }
    certify instance instance.avouch.internal serverAuth,clientAuth
    # The service connects to the host, and never the other way.
    certify host browser-host.avouch.internal serverAuth
    mv "$new"/instance_* "$new"/host_* .
}

create database_password "$(random)"
create database_url "postgres://avouch:$(cat database_password)@database/avouch?sslmode=disable"
create redis_password "$(random)"
create redis_url "redis://:$(cat redis_password)@redis"
create objects_secret "$(random)"
create seal_keys "1=$(head -c 32 /dev/urandom | base64)"
certificates
