"""Prints a znode's data as seen at one server after a sync, and writes what the Java client reads next."""

import sys
from kazoo.client import KazooClient
c = KazooClient(sys.argv[1])
c.start()
c.sync("/mixed")
print("read", c.get("/mixed")[0].decode())
c.set("/mixed", sys.argv[2].encode())
c.stop()
