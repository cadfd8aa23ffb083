"""kazoo under load: see the type foreign in foreign_test.go. The argument is the connect string."""

import sys

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss
from kazoo.retry import KazooRetry

states = []
client = KazooClient(hosts=sys.argv[1], timeout=10, connection_retry=KazooRetry(max_tries=-1, max_delay=0.3))
client.add_listener(states.append)
client.start(timeout=60)
for line in sys.stdin:
    path = line.strip()
    try:
        client.create(path, path.encode())
        said = "written"
    except ConnectionLoss:
        said = "unknown"
    except Exception as error:
        said = "error %r" % error
    if KazooState.LOST in states:
        said = "error: the session has ended, %s" % said
    print(said, flush=True)
client.stop()
