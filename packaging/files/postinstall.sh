#!/bin/sh
# After an installation or update, of a deb and an rpm: makes the user and the directory of the data. The server is
# not started, since its first start decides to which ensemble it belongs, nor restarted: that goes in turn.
set -e
if ! getent passwd zk-lite >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/zk-lite --no-create-home --shell /usr/sbin/nologin \
        --comment "zk-lite server" zk-lite
fi
if [ ! -d /var/lib/zk-lite ]; then
    install -d -o zk-lite -g zk-lite -m 700 /var/lib/zk-lite
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
