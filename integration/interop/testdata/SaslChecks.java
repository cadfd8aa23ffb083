import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;

/**
 * Checks of SASL with ZooKeeper's own Java client, whose login configuration (JAAS) is that of the JVM. The arguments
 * are the connect string, the name that the client has in ACLs or "" if its login must fail, and a prefix of paths.
 * What is printed is described at the type message in integration/cluster.
 */
public class SaslChecks {
  static String name;
  static String root;

  /** A client that proves nothing. */
  static ZooKeeper stranger() throws Exception {
    ZKClientConfig config = new ZKClientConfig();
    config.setProperty(ZKClientConfig.ENABLE_CLIENT_SASL_KEY, "false");
    JavaChecks.Events events = new JavaChecks.Events();
    ZooKeeper zk = new ZooKeeper(JavaChecks.hosts, JavaChecks.SESSION, events, config);
    events.await(KeeperState.SyncConnected);
    return zk;
  }

  static void createsWhatOthersCannotRead() throws Exception {
    try (JavaChecks.Client c = new JavaChecks.Client(JavaChecks.hosts); ZooKeeper other = stranger()) {
      c.events.await(KeeperState.SaslAuthenticated);
      c.zk.create(root, JavaChecks.bytes("x"), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
      JavaChecks.equal(c.zk.getACL(root, null).get(0).getId().toString(), "'sasl,'" + name + "\n");
      JavaChecks.sync(other);
      JavaChecks.raises(Code.NOAUTH, () -> other.getData(root, false, null));
      JavaChecks.raises(Code.NOAUTH, () -> other.setData(root, null, -1));
    }
  }

  static void watchAndSessionMove() throws Exception {
    try (JavaChecks.Client c = new JavaChecks.Client(JavaChecks.hosts);
        JavaChecks.Client same = new JavaChecks.Client(JavaChecks.hosts)) {
      String path = root + "/e";
      JavaChecks.Events events = new JavaChecks.Events();
      c.zk.create(path, JavaChecks.bytes("0"), Ids.CREATOR_ALL_ACL, CreateMode.EPHEMERAL);
      c.zk.getData(path, events, null);
      JavaChecks.dieUnder(c);
      c.zk.create(path + "2", null, Ids.CREATOR_ALL_ACL, CreateMode.EPHEMERAL); // the identity moved, too
      same.zk.setData(path, JavaChecks.bytes("1"), -1);
      events.expect(EventType.NodeDataChanged, path);
    }
    JavaChecks.ask("{\"heal\": true}");
  }

  static void isRefused() throws Exception {
    JavaChecks.Events events = new JavaChecks.Events();
    try (ZooKeeper zk = new ZooKeeper(JavaChecks.hosts, JavaChecks.SESSION, events)) {
      events.await(KeeperState.AuthFailed);
    }
  }

  public static void main(String[] args) throws Exception {
    JavaChecks.hosts = args[0];
    name = args[1];
    root = args[2];
    Map<String, JavaChecks.Body> checks = new LinkedHashMap<>();
    if (name.isEmpty()) {
      checks.put("is refused", SaslChecks::isRefused);
    } else {
      checks.put("creates what others cannot read", SaslChecks::createsWhatOthersCannotRead);
      checks.put("watch and session move when the server dies", SaslChecks::watchAndSessionMove);
    }
    JavaChecks.run(checks);
  }
}
