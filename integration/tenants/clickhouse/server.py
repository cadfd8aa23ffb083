"""A ClickHouse server as a child process: its configuration, its start, its end, and queries over HTTP."""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

BINARY = "/usr/sbin/clickhouse-server"

USERS = """<yandex><profiles><default><background_pool_size>4</background_pool_size></default></profiles>
<users><default><password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
</default></users><quotas><default/></quotas></yandex>"""

# The paths below /clickhouse are those of ClickHouse's documentation. Sessions are of 10 s, not 30 s as by default: a
# killed server may return only when its session has expired, and a new leader of the ensemble gives all sessions their
# time again, every 20 s.
CONFIG = """<yandex><logger><level>warning</level><log>{home}/log</log><errorlog>{home}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{inter}</interserver_http_port>
<interserver_http_host>127.0.0.1</interserver_http_host><listen_host>127.0.0.1</listen_host>
<path>{home}/data/</path><tmp_path>{home}/tmp/</tmp_path><users_config>{home}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>10000000</mark_cache_size><uncompressed_cache_size>10000000</uncompressed_cache_size>
<macros><replica>{name}</replica></macros>
<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
<zookeeper>{ensemble}<session_timeout_ms>10000</session_timeout_ms></zookeeper>
<remote_servers><all><shard><internal_replication>true</internal_replication>{replicas}</shard></all></remote_servers>
</yandex>"""


class Refused(Exception):
    """What the server said against a query."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, name):
        self.name, self.home = name, os.path.abspath(name)
        self.http, self.tcp, self.inter = free_port(), free_port(), free_port()
        self.process = None

    def configure(self, ensemble, servers):
        """Writes its files. Servers are all of the cluster."""
        nodes = [a.rsplit(":", 1) for a in ensemble.split(",")]
        os.makedirs(self.home)
        with open(self.home + "/users.xml", "w") as f:
            f.write(USERS)
        with open(self.home + "/config.xml", "w") as f:
            f.write(CONFIG.format(
                home=self.home, http=self.http, tcp=self.tcp, inter=self.inter, name=self.name,
                ensemble="".join("<node><host>%s</host><port>%s</port></node>" % (h, p) for h, p in nodes),
                replicas="".join("<replica><host>127.0.0.1</host><port>%d</port></replica>" % s.tcp for s in servers)))

    def start(self):
        """Starts it and waits until it answers."""
        self.process = subprocess.Popen([BINARY, "--config-file=%s/config.xml" % self.home], cwd=self.home,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=open(self.home + "/stderr", "ab"))
        end = time.monotonic() + 90
        while True:
            try:
                return self.query("SELECT 1")
            except (OSError, Refused):
                if self.process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def query(self, text, patience=60, **settings):
        """Runs a query and returns the rows that it prints, as lists of texts."""
        url = "http://127.0.0.1:%d/?%s" % (self.http, "&".join("%s=%s" % s for s in settings.items()))
        try:
            with urllib.request.urlopen(url, text.encode(), patience) as answer:
                return [line.split("\t") for line in answer.read().decode().splitlines()]
        except urllib.error.HTTPError as e:
            raise Refused(e.read().decode()[:300]) from None

    def logged(self, text):
        """How many lines of its log have a text."""
        with open(self.home + "/log", errors="replace") as log:
            return sum(text in line for line in log)
