"""Checks of SASL with kazoo.

The arguments are the connect string, kazoo's sasl_options as JSON, the name that the client has in ACLs or "" if its
login must fail, and a prefix of paths. What is printed is described at the type message in integration/cluster.
"""

import json
import sys

import kazoo_checks as k
from kazoo import exceptions as ke
from kazoo.client import KazooClient, KazooState
from kazoo.recipe.watchers import DataWatch
from kazoo.security import CREATOR_ALL_ACL

OPTIONS, NAME, ROOT = json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]


def creates_what_others_cannot_read():
    with k.clients(sasl_options=dict(OPTIONS)) as c, k.clients() as other:
        c.create(ROOT, b"x", acl=CREATOR_ALL_ACL)
        k.equal([(a.id.scheme, a.id.id) for a in c.get_acls(ROOT)[0]], [("sasl", NAME)])
        other.sync(ROOT)
        k.raises(ke.NoAuthError, other.get, ROOT)
        k.raises(ke.NoAuthError, other.set, ROOT, b"y")


def watch_and_session_move_when_the_server_dies():
    with k.clients(2, sasl_options=dict(OPTIONS)) as (c, same):
        path, log = ROOT + "/e", k.Log()
        c.create(path, b"0", ephemeral=True, acl=CREATOR_ALL_ACL)
        DataWatch(c, path, lambda data, stat: log(data))
        same.sync(path)  # its login is through: kazoo gives up for good if a connection ends during one
        old = c.client_id
        k.die_under(c)
        k.equal(c.client_id, old)
        c.create(path + "2", ephemeral=True, acl=CREATOR_ALL_ACL)  # the identity moved, too
        same.sync(path)
        same.set(path, b"1")
        log.await_that("the data", lambda l: l[-1] == b"1")
    k.ask(heal=True)


def is_refused():
    states, client = k.Log(), KazooClient(k.HOSTS, sasl_options=dict(OPTIONS))
    client.add_listener(states)
    client.start_async()
    states.await_that("refused", lambda l: KazooState.LOST in l)  # it is connected for a moment before
    client.stop()


k.run([creates_what_others_cannot_read, watch_and_session_move_when_the_server_dies] if NAME else [is_refused])
