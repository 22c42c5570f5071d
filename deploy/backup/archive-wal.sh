#!/bin/sh
# Copies a finished file of PostgreSQL's write-ahead log to an archive. PostgreSQL runs it:
#
#   archive_mode = on
#   archive_timeout = 60
#   archive_command = '/usr/local/lib/avouch/archive-wal.sh "%p" "%f" /var/backups/avouch/wal'
#
# Exits with 0 only once the copy is on disk; PostgreSQL otherwise keeps the file and tries again.
set -eu

[ "$#" -eq 3 ] || { echo "usage: archive-wal.sh PATH NAME ARCHIVE" >&2; exit 2; }
path=$1 name=$2 archive=$3

case $name in
    '' | .* | *[!0-9A-Za-z.]*) echo "archive-wal.sh: '$name' is no name of a log file" >&2; exit 2 ;;
esac
[ -f "$path" ] || { echo "archive-wal.sh: there is no file '$path'" >&2; exit 1; }
[ -d "$archive" ] || { echo "archive-wal.sh: there is no folder '$archive'" >&2; exit 1; }

if [ -e "$archive/$name" ]; then
    # An attempt that succeeded although PostgreSQL did not learn of it.
    if cmp -s "$path" "$archive/$name"; then exit 0; fi
    echo "archive-wal.sh: '$archive/$name' exists with another content: does another server use this archive?" >&2
    exit 1
fi
umask 077
part="$archive/.$name.part"
cp "$path" "$part"
sync "$part"
mv "$part" "$archive/$name"
sync "$archive"
