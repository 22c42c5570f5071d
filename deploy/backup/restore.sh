#!/bin/sh
# Prepares the data folder DATA of a PostgreSQL server from a base backup and the archive of its log. When the
# server is started on it, it restores itself to TIME, or to the end of the archive, and then accepts writes.
# Run it as the server's user, while no server uses DATA.
#
#   restore.sh BACKUP ARCHIVE DATA [TIME [TIMELINE]]
#
# TIME is in UTC: 2026-01-31T12:00:00Z, with decimals of the second if wanted. TIMELINE is `latest` unless given;
# `current`, or a number, leaves out what an earlier restore began: see docs/operators-guide.md.
set -eu

fail() {
    echo "restore.sh: $1" >&2
    exit 1
}

if [ "$#" -lt 3 ] || [ "$#" -gt 5 ]; then
    echo "usage: restore.sh BACKUP ARCHIVE DATA [TIME [TIMELINE]]" >&2
    exit 2
fi
backup=$1 archive=$2 data=$3 time=${4-} timeline=${5-latest}

# The archive's path becomes part of a command of the server.
case $archive in
    /*) ;;
    *) fail "the archive's path has to begin with /" ;;
esac
case $archive in
    *[!0-9A-Za-z/._-]*) fail "the archive's path may have letters, digits, and / . _ - only" ;;
esac
case $time in
    '') ;;
    *[!0-9TZ:.-]*) fail "'$time' is no time such as 2026-01-31T12:00:00Z" ;;
    [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z) ;;
    [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9]*Z) ;;
    *) fail "'$time' is no time such as 2026-01-31T12:00:00Z" ;;
esac
case $timeline in
    latest | current) ;;
    '' | *[!0-9]*) fail "'$timeline' is neither latest, current nor the number of a timeline" ;;
esac
[ -f "$backup/backup_manifest" ] || fail "'$backup' is no base backup"
[ -d "$archive" ] || fail "there is no folder '$archive'"
[ -d "$data" ] || fail "there is no folder '$data': create it empty, with the server's user as its owner"
[ -z "$(ls -A "$data")" ] || fail "'$data' is not empty: move away what is there first"

pg_verifybackup --quiet "$backup"
umask 077
chmod 0700 "$data"
cp -a "$backup/." "$data/"
# The server reads this file after its other configuration.
{
    printf "restore_command = 'cp \"%s/%%f\" \"%%p\"'\n" "$archive"
    printf "recovery_target_timeline = '%s'\n" "$timeline"
    printf "recovery_target_action = 'promote'\n"
    if [ -n "$time" ]; then
        # The server reads this before it knows the letter Z.
        printf "recovery_target_time = '%s %s+00'\n" "${time%%T*}" "$(printf '%s' "${time#*T}" | tr -d Z)"
    fi
} >> "$data/postgresql.auto.conf"
: > "$data/recovery.signal"
sync "$data/postgresql.auto.conf" "$data/recovery.signal" "$data"
if [ -n "$time" ]; then
    echo "'$data' is ready: start the server, which restores itself to $time"
else
    echo "'$data' is ready: start the server, which restores itself to the end of the archive"
fi
