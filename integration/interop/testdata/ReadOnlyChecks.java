import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.ZooKeeper.States;

/**
 * Checks of read-only mode with ZooKeeper's own Java client. The argument is the connect string. What is printed is
 * described at the type message in integration/cluster.
 */
public class ReadOnlyChecks {
  static ZooKeeper client(JavaChecks.Events events) throws Exception {
    return new ZooKeeper(JavaChecks.hosts, JavaChecks.SESSION, events, true);
  }

  /** Leaves one server of three. */
  static void loseMajority() throws Exception {
    for (int i = 0; i < 2; i++) {
      JavaChecks.ask("{\"kill\": " + JavaChecks.quote(JavaChecks.host(i)) + "}");
    }
  }

  static void readsThenWrites() throws Exception {
    try (JavaChecks.Client c = new JavaChecks.Client(JavaChecks.hosts)) {
      c.zk.create("/read", JavaChecks.bytes("1"), JavaChecks.OPEN, CreateMode.PERSISTENT);
    }
    loseMajority();
    JavaChecks.Events events = new JavaChecks.Events(), watch = new JavaChecks.Events();
    try (ZooKeeper zk = client(events)) {
      events.await(KeeperState.ConnectedReadOnly);
      JavaChecks.equal(zk.getState(), States.CONNECTEDREADONLY);
      JavaChecks.equal(JavaChecks.text(zk.getData("/read", watch, null)), "1");
      JavaChecks.raises(Code.NOTREADONLY, () -> zk.setData("/read", null, -1));
      JavaChecks.raises(Code.NOTREADONLY, () -> zk.create("/no", null, JavaChecks.OPEN, CreateMode.PERSISTENT));
      long id = zk.getSessionId();
      JavaChecks.ask("{\"heal\": true}");
      events.await(KeeperState.SyncConnected);
      JavaChecks.equal(zk.getState(), States.CONNECTED);
      JavaChecks.equal(zk.getSessionId() == id, false);
      zk.setData("/read", JavaChecks.bytes("2"), -1);
      watch.expect(EventType.NodeDataChanged, "/read");
    }
  }

  /** A session that may own something is not told that it is connected while no one can know whether it is alive. */
  static void sessionsOfTheLogWait() throws Exception {
    JavaChecks.Events events = new JavaChecks.Events(), others = new JavaChecks.Events();
    try (ZooKeeper zk = client(events)) {
      events.await(KeeperState.SyncConnected);
      zk.create("/mine", null, JavaChecks.OPEN, CreateMode.EPHEMERAL);
      long id = zk.getSessionId();
      events.queue.clear();
      loseMajority();
      events.await(KeeperState.Disconnected);
      try (ZooKeeper other = client(others)) {
        others.await(KeeperState.ConnectedReadOnly);
      }
      JavaChecks.ask("{\"heal\": true}");
      for (WatchedEvent e = events.next(); e.getState() != KeeperState.SyncConnected; e = events.next()) {
        JavaChecks.equal(e.getState(), KeeperState.Disconnected);
      }
      JavaChecks.equal(zk.getSessionId(), id);
      JavaChecks.equal(zk.exists("/mine", false).getEphemeralOwner(), id);
    }
  }

  public static void main(String[] args) throws Exception {
    JavaChecks.hosts = args[0];
    Map<String, JavaChecks.Body> checks = new LinkedHashMap<>();
    checks.put("reads, then writes", ReadOnlyChecks::readsThenWrites);
    checks.put("sessions of the log wait", ReadOnlyChecks::sessionsOfTheLogWait);
    JavaChecks.run(checks);
  }
}
