import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * A client of Curator, and one of ZooKeeper's own in Java, at a cut-over. The argument is the connect string. Each
 * holds a lock, an ephemeral and watches, and creates znodes until a line of the input says stop; they end at the end
 * of the input. What they print is described at the type mover in movers_test.go.
 */
public class CuratorMover {
  static final int SESSION = 30000; // milliseconds
  static final int CONNECT = 15000; // milliseconds, Curator's own default
  static final int RETRY = 50; // milliseconds
  static final byte[] DATA = "data".getBytes(UTF_8);

  static volatile boolean stopped;

  static synchronized void say(String who, Object... words) {
    StringBuilder line = new StringBuilder(who);
    for (Object word : words) {
      line.append(' ').append(word);
    }
    System.out.println(line);
    System.out.flush();
  }

  static void acknowledged(String who, String path, Stat stat) {
    Instant now = Instant.now();
    say(who, "ack", path, stat.getCzxid(), now.getEpochSecond() * 1_000_000 + now.getNano() / 1000);
  }

  static String hex(long session) {
    return "0x" + Long.toHexString(session);
  }

  static void plain(String servers) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    ZooKeeper zk = new ZooKeeper(servers, SESSION, e -> {
      if (e.getType() == EventType.NodeDataChanged) {
        say("java", "saw", "data");
      } else if (e.getType() == EventType.NodeChildrenChanged) {
        say("java", "saw", "child");
      } else {
        say("java", "state", e.getState());
        if (e.getState() == KeeperState.SyncConnected) {
          connected.countDown();
        }
      }
    });
    connected.await();
    CountDownLatch acquired = new CountDownLatch(1);
    WriteLock lock = new WriteLock(zk, "/lock-java", Ids.OPEN_ACL_UNSAFE, new LockListener() {
      @Override
      public void lockAcquired() {
        acquired.countDown();
      }

      @Override
      public void lockReleased() {}
    });
    lock.lock();
    acquired.await();
    zk.create("/e-java", DATA, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
    zk.getData("/watched", true, null);
    zk.getChildren("/watched", true);
    say("java", "holds", hex(zk.getSessionId()));
    while (!stopped) {
      Stat stat = new Stat();
      try {
        String path = zk.create("/q/n-", DATA, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL, stat);
        acknowledged("java", path, stat);
      } catch (KeeperException.ConnectionLossException e) {
        // The outcome is not known. The next one waits for a connection, or for a server that refuses one.
      }
    }
    say("java", "stopped", hex(zk.getSessionId()));
  }

  static void curator(String servers) throws Exception {
    CuratorFramework c = CuratorFrameworkFactory.newClient(servers, SESSION, CONNECT, new RetryForever(RETRY));
    c.getConnectionStateListenable().addListener((x, state) -> say("curator", "state", state));
    c.start();
    c.blockUntilConnected();
    InterProcessMutex lock = new InterProcessMutex(c, "/lock-curator");
    lock.acquire();
    PersistentNode node = new PersistentNode(c, CreateMode.EPHEMERAL, false, "/e-curator", DATA);
    CountDownLatch created = new CountDownLatch(1);
    node.getListenable().addListener(path -> created.countDown());
    node.start();
    created.await();
    CountDownLatch cached = new CountDownLatch(1);
    CuratorCache cache = CuratorCache.build(c, "/watched");
    cache.listenable().addListener(CuratorCacheListener.builder()
        .forChanges((before, after) -> {
          if (after.getPath().equals("/watched") && new String(after.getData(), UTF_8).equals("after")) {
            say("curator", "saw", "data");
          }
        })
        .forCreates(one -> {
          if (one.getPath().equals("/watched/after")) {
            say("curator", "saw", "child");
          }
        })
        .forInitialized(cached::countDown).build());
    cache.start();
    cached.await();
    say("curator", "holds", hex(c.getZookeeperClient().getZooKeeper().getSessionId()));
    while (!stopped) {
      Stat stat = new Stat();
      String path = c.create().storingStatIn(stat).withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/q/n-", DATA);
      acknowledged("curator", path, stat);
    }
    say("curator", "stopped", hex(c.getZookeeperClient().getZooKeeper().getSessionId()));
  }

  interface Client {
    void run(String servers) throws Exception;
  }

  static void begin(Client client, String servers) {
    Thread t = new Thread(() -> {
      try {
        client.run(servers);
      } catch (Exception e) {
        e.printStackTrace();
        System.exit(1);
      }
    });
    t.setDaemon(true);
    t.start();
  }

  public static void main(String[] args) throws Exception {
    begin(CuratorMover::plain, args[0]);
    begin(CuratorMover::curator, args[0]);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      stopped |= line.equals("stop");
    }
    System.exit(0);
  }
}
