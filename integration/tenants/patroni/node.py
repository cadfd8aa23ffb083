"""A node of Patroni as a child process, with the PostgreSQL that it runs."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import psycopg2

PATRONI = "/usr/bin/patroni"
BINARIES = "/usr/lib/postgresql/15/bin"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Node:
    def __init__(self, name):
        self.name, self.home = name, os.path.abspath(name)
        self.rest, self.sql = free_port(), free_port()
        self.process = None

    def configure(self, ensemble, keys):
        """Writes its configuration. Its times are half of Patroni's defaults: a new leader of the
        ensemble gives all sessions their time again, so none of 30 s ends while leaders die every 20 s."""
        os.makedirs(self.home)
        user = {"username": "postgres", "password": "tenants"}
        with open(self.home + "/patroni.yml", "w") as f:
            json.dump({  # which is YAML, too
                "scope": "tenants", "namespace": "/patroni", "name": self.name,
                "restapi": {"listen": "127.0.0.1:%d" % self.rest, "connect_address": "127.0.0.1:%d" % self.rest},
                "zookeeper": {"hosts": ensemble.split(","), "use_ssl": True, "verify": True, "cacert": keys + "/ca.pem",
                              "cert": keys + "/client.pem", "key": keys + "/client.pem"},
                "bootstrap": {
                    "dcs": {"ttl": 15, "loop_wait": 5, "retry_timeout": 5, "synchronous_mode": True,
                            "postgresql": {"use_pg_rewind": True, "parameters": {
                                "shared_buffers": "16MB", "max_connections": 30, "max_wal_size": "64MB"}}},
                    "initdb": [{"encoding": "UTF8"}, {"auth": "trust"}]},
                "postgresql": {
                    "listen": "127.0.0.1:%d" % self.sql, "connect_address": "127.0.0.1:%d" % self.sql,
                    "data_dir": self.home + "/data", "bin_dir": BINARIES, "pgpass": self.home + "/pgpass",
                    "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
                    "authentication": {"superuser": user, "replication": user},
                    "parameters": {"unix_socket_directories": ""}},
            }, f)

    def start(self):
        self.process = subprocess.Popen([PATRONI, self.home + "/patroni.yml"], cwd=self.home, stdin=subprocess.DEVNULL,
                                        stdout=open(self.home + "/out", "ab"), stderr=open(self.home + "/log", "ab"))

    def stop(self):
        """Ends it and its PostgreSQL in order."""
        self.process.terminate()
        self.process.wait(60)

    def kill(self):
        """Kills it and its PostgreSQL."""
        self.kill_patroni()
        with open(self.home + "/data/postmaster.pid") as f:
            os.kill(int(f.readline()), signal.SIGKILL)

    def kill_patroni(self):
        """Kills it alone."""
        self.process.kill()
        self.process.wait()

    def ask(self, path, method="GET", message=None, patience=70):
        """A request to its REST interface; returns the status and the text."""
        body = None if message is None else json.dumps(message).encode()
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.rest, path), body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=patience) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def agrees(self, path):
        """Whether it says yes to a question: /primary, which holds the leader's znode, /replica or /sync."""
        try:
            return self.ask(path, patience=5)[0] == 200
        except OSError:
            return False

    def select(self, query, patience=3):
        """The first column of a query of its PostgreSQL."""
        connection = psycopg2.connect(host="127.0.0.1", port=self.sql, user="postgres", dbname="postgres",
                                      connect_timeout=patience)
        connection.autocommit = True
        try:
            with connection.cursor() as cursor:
                cursor.execute(query)
                return [row[0] for row in cursor.fetchall()]
        finally:
            connection.close()

    def writable(self):
        """Whether its PostgreSQL is a primary, and takes writes."""
        try:
            return self.select("SELECT NOT pg_is_in_recovery()") == [True]
        except psycopg2.Error:
            return False

    def logged(self, text):
        """The lines of its log with a text."""
        with open(self.home + "/log", errors="replace") as log:
            return [line for line in log if text in line]


def wait(what, seconds, condition):
    """Waits until a condition holds, and returns it."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise TimeoutError("not within %d s: %s" % (seconds, what))
        time.sleep(0.2)
