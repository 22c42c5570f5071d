#!/bin/sh
# Removes all base backups but the newest KEEP, and the archived log that none of these needs.
#
#   prune.sh BACKUPS ARCHIVE KEEP
set -eu

[ "$#" -eq 3 ] || { echo "usage: prune.sh BACKUPS ARCHIVE KEEP" >&2; exit 2; }
backups=$1 archive=$2 keep=$3
case $keep in
    '' | 0* | *[!0-9]*) echo "prune.sh: KEEP is a number of 1 or more" >&2; exit 2 ;;
esac
[ -d "$backups" ] || { echo "prune.sh: there is no folder '$backups'" >&2; exit 1; }
[ -d "$archive" ] || { echo "prune.sh: there is no folder '$archive'" >&2; exit 1; }

# The names are times, so that the order of the names is that of the backups.
count=0
for backup in "$backups"/[0-9]*T[0-9]*Z; do
    if [ -f "$backup/backup_label" ]; then count=$((count + 1)); fi
done
oldest=
for backup in "$backups"/[0-9]*T[0-9]*Z; do
    [ -f "$backup/backup_label" ] || continue
    if [ "$count" -gt "$keep" ]; then
        rm -rf -- "$backup"
        echo "removed '$backup'"
        count=$((count - 1))
    else
        oldest=$backup
        break
    fi
done
[ -n "$oldest" ] || { echo "prune.sh: there is no base backup in '$backups'" >&2; exit 1; }
first=$(sed -n 's/^START WAL LOCATION: .* (file \([0-9A-F]*\))$/\1/p' "$oldest/backup_label")
[ -n "$first" ] || { echo "prune.sh: '$oldest/backup_label' names no file of the log" >&2; exit 1; }
pg_archivecleanup "$archive" "$first"
