import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.server.quorum.flexible.QuorumVerifier;

/** Replaces the servers of an ensemble: Reconfig admin|curator SERVERS MEMBERS. It prints the new configuration. */
public class Reconfig {
  static final byte[] SUPER = "super:integration".getBytes();

  public static void main(String[] args) throws Exception {
    if (args[0].equals("admin")) {
      admin(args[1], args[2]);
    } else {
      curator(args[1], Arrays.asList(args[2].split(",")));
    }
    System.exit(0);
  }

  static void admin(String servers, String members) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    try (ZooKeeperAdmin zk = new ZooKeeperAdmin(servers, 20000, e -> {
      if (e.getState() == Watcher.Event.KeeperState.SyncConnected) {
        connected.countDown();
      }
    })) {
      connected.await();
      try {
        zk.reconfigure(null, null, members, -1, null);
        throw new AssertionError("anyone may");
      } catch (KeeperException.NoAuthException e) {
        zk.addAuthInfo("digest", SUPER);
      }
      Stat stat = new Stat();
      byte[] text = zk.reconfigure(null, null, members, -1, stat);
      System.out.println(new String(text));
      if (stat.getDataLength() != text.length || stat.getMzxid() == 0) {
        throw new AssertionError("stat " + stat);
      }
    }
  }

  /** Curator's EnsembleTracker must have the new servers, too: they are where it connects next. */
  static void curator(String servers, List<String> members) throws Exception {
    try (CuratorFramework c = CuratorFrameworkFactory.builder().connectString(servers).sessionTimeoutMs(20000)
        .retryPolicy(new ExponentialBackoffRetry(100, 5)).authorization("digest", SUPER).build()) {
      c.start();
      c.blockUntilConnected();
      byte[] text = c.reconfig().withNewMembers(members).fromConfig(-1).forEnsemble();
      System.out.println(new String(text));
      for (int i = 0; ; i++) {
        QuorumVerifier now = c.getCurrentConfig();
        String at = c.getZookeeperClient().getCurrentConnectionString();
        if (now != null && now.getAllMembers().keySet().toString().equals("[4, 5, 6]") && at.split(",").length == 3) {
          break;
        }
        if (i == 300) {
          throw new AssertionError("EnsembleTracker has " + now + ", and connects to " + at);
        }
        Thread.sleep(100);
      }
      c.getData().forPath("/zookeeper/config");
    }
  }
}
