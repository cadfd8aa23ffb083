"""Replaces the servers by others, after a version that is not the present one was refused."""

import sys
from kazoo.client import KazooClient
from kazoo import exceptions as ke
c = KazooClient(sys.argv[1], auth_data=[("digest", "super:integration")])
c.start()
try:
    c.reconfig(joining=None, leaving=None, new_members=sys.argv[2], from_config=1)
except ke.BadVersionError:
    print("refused")
data, stat = c.reconfig(joining=None, leaving=None, new_members=sys.argv[2])
print(data.decode(), stat.version, c.get("/zookeeper/config")[0] == data)
c.stop()
