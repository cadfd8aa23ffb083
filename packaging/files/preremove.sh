#!/bin/sh
# Before a removal, and not before an update: "remove" is dpkg's word, 0 rpm's.
set -e
case "$1" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl --no-reload disable --now zk-lite.service
        fi
        ;;
esac
