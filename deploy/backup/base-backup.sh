#!/bin/sh
# Makes a base backup of the PostgreSQL server in a new folder below BACKUPS, verifies it, and prints the
# folder. Together with the archive of archive-wal.sh it can be restored to every later time. The server is
# named by the variables of libpq (PGHOST, PGPORT, PGUSER, PGPASSFILE, ...); the role needs REPLICATION.
#
#   base-backup.sh BACKUPS
set -eu

[ "$#" -eq 1 ] || { echo "usage: base-backup.sh BACKUPS" >&2; exit 2; }
backups=$1
[ -d "$backups" ] || { echo "base-backup.sh: there is no folder '$backups'" >&2; exit 1; }

umask 077
name=$(date -u +%Y%m%dT%H%M%SZ)
part="$backups/.$name.part"
[ ! -e "$backups/$name" ] || { echo "base-backup.sh: '$backups/$name' exists already" >&2; exit 1; }
# Removes what a failed attempt leaves; no other process knows this folder.
trap 'rm -rf -- "$part"' EXIT
# The log that was written meanwhile is part of the backup, so that it can be used without the archive.
pg_basebackup --pgdata="$part" --wal-method=stream --checkpoint=fast --label="avouch $name" --no-password
pg_verifybackup --quiet "$part"
mv "$part" "$backups/$name"
sync "$backups"
printf '%s\n' "$backups/$name"
