#!/bin/sh
# After a removal. The data stays, even when the configuration is purged, and so does the user, whose it is: what a
# server has acknowledged is not the package's to delete.
set -e
case "$1" in
    purge | 0)
        rmdir --ignore-fail-on-non-empty /var/lib/zk-lite 2>/dev/null || true
        ;;
esac
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
