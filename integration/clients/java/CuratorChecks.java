import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.data.Stat;

/** Checks with Curator from 2.13 on and, for what Curator passes through, with the ZooKeeper client that it brings. */
public class CuratorChecks extends Checks {
  static CuratorFramework client() throws Exception {
    CuratorFramework c = CuratorFrameworkFactory.builder().connectString(hosts).sessionTimeoutMs(SESSION)
        .connectionTimeoutMs(SESSION).retryPolicy(new RetryForever(100)).authorization("digest", bytes("user:secret"))
        .build();
    c.start();
    equal(c.blockUntilConnected(PATIENCE, TimeUnit.SECONDS), true);
    return c;
  }

  static long id(CuratorFramework c) throws Exception {
    return c.getZookeeperClient().getZooKeeper().getSessionId();
  }

  static void sync(CuratorFramework c) throws Exception {
    sync(c.getZookeeperClient().getZooKeeper());
  }

  static String create(CuratorFramework c, String path, CreateMode mode) throws Exception {
    return c.create().creatingParentsIfNeeded().withMode(mode).forPath(path, bytes("0"));
  }

  static void dataAndKinds() throws Exception {
    try (CuratorFramework c = client()) {
      equal(create(c, "/c/data", CreateMode.PERSISTENT), "/c/data");
      raises(Code.NODEEXISTS, () -> create(c, "/c/data", CreateMode.PERSISTENT));
      equal(c.setData().withVersion(0).forPath("/c/data", bytes("1")).getVersion(), 1);
      raises(Code.BADVERSION, () -> c.setData().withVersion(0).forPath("/c/data", bytes("2")));
      Stat s = new Stat();
      equal(text(c.getData().storingStatIn(s).forPath("/c/data")), "1");
      equal(c.checkExists().forPath("/c/data"), s);
      equal(create(c, "/c/data/s-", CreateMode.PERSISTENT_SEQUENTIAL), "/c/data/s-0000000000");
      String path = c.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/c/data/p-");
      equal(path.startsWith("/c/data/_c_") && path.endsWith("p-0000000001"), true);
      equal(c.checkExists().forPath(path).getEphemeralOwner(), id(c));
      equal(c.getChildren().forPath("/c/data").size(), 2);
      raises(Code.NOTEMPTY, () -> c.delete().forPath("/c/data"));
      c.delete().guaranteed().deletingChildrenIfNeeded().forPath("/c/data");
      equal(c.checkExists().forPath("/c/data"), null);
    }
  }

  @SuppressWarnings("deprecation") // what all versions have
  static void transactions() throws Exception {
    try (CuratorFramework c = client()) {
      equal(c.inTransaction().create().forPath("/c-multi", bytes("0")).and().setData().forPath("/c-multi", bytes("1"))
          .and().commit().size(), 2);
      raises(Code.BADVERSION, () -> c.inTransaction().create().forPath("/c-multi/never").and()
          .check().withVersion(7).forPath("/c-multi").and().commit());
      equal(c.checkExists().forPath("/c-multi/never"), null);
    }
  }

  static void sessionMoves() throws Exception {
    BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
    try (CuratorFramework other = client()) {
      try (CuratorFramework c = client()) {
        c.create().withMode(CreateMode.EPHEMERAL).withACL(OWN).forPath("/c-move", bytes("mine"));
        long id = id(c);
        c.getConnectionStateListenable().addListener((x, state) -> states.add(state));
        ask("{\"kill\": \"" + server(c.getZookeeperClient().getZooKeeper()) + "\"}");
        equal(states.poll(PATIENCE, TimeUnit.SECONDS), ConnectionState.SUSPENDED);
        equal(states.poll(PATIENCE, TimeUnit.SECONDS), ConnectionState.RECONNECTED);
        equal(id(c), id);
        equal(c.checkExists().forPath("/c-move").getEphemeralOwner(), id);
        equal(text(c.getData().forPath("/c-move")), "mine"); // the credentials moved, too
        ask("{\"heal\": true}");
      }
      sync(other);
      equal(other.checkExists().forPath("/c-move"), null); // the session was closed
    }
  }

  static void lock() throws Exception {
    try (CuratorFramework c = client(); CuratorFramework other = client()) {
      InterProcessMutex first = new InterProcessMutex(c, "/c/lock"), second = new InterProcessMutex(other, "/c/lock");
      first.acquire();
      equal(second.acquire(200, TimeUnit.MILLISECONDS), false);
      first.release();
      equal(second.acquire(PATIENCE, TimeUnit.SECONDS), true);
      second.release();
    }
  }

  static void election() throws Exception {
    try (CuratorFramework c = client(); CuratorFramework other = client();
        LeaderLatch second = new LeaderLatch(other, "/c/latch", "second")) {
      LeaderLatch first = new LeaderLatch(c, "/c/latch", "first");
      first.start();
      equal(first.await(PATIENCE, TimeUnit.SECONDS), true);
      second.start();
      equal(second.hasLeadership(), false);
      first.close();
      equal(second.await(PATIENCE, TimeUnit.SECONDS), true);
    }
  }

  static void cache() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    try (CuratorFramework c = client(); CuratorFramework other = client();
        TreeCache cache = new TreeCache(c, "/c/cache")) {
      cache.getListenable().addListener((x, event) -> seen.add(event.getType()
          + (event.getData() == null ? "" : " " + event.getData().getPath())));
      create(other, "/c/cache/a", CreateMode.PERSISTENT);
      sync(c);
      cache.start();
      for (String want : Arrays.asList("NODE_ADDED /c/cache", "NODE_ADDED /c/cache/a", "INITIALIZED")) {
        equal(seen.poll(PATIENCE, TimeUnit.SECONDS), want);
      }
      other.delete().forPath("/c/cache/a");
      equal(seen.poll(PATIENCE, TimeUnit.SECONDS), "NODE_REMOVED /c/cache/a");
    }
  }

  static void counter() throws Exception {
    try (CuratorFramework c = client(); CuratorFramework other = client()) {
      for (CuratorFramework x : Arrays.asList(c, other)) {
        equal(new DistributedAtomicLong(x, "/c/counter", new RetryForever(10)).increment().succeeded(), true);
      }
      equal(new DistributedAtomicLong(other, "/c/counter", new RetryForever(10)).get().postValue(), 2L);
    }
  }

  public static void main(String[] args) throws Exception {
    hosts = args[0];
    Map<String, Body> checks = new LinkedHashMap<>();
    checks.put("data and kinds", CuratorChecks::dataAndKinds);
    checks.put("transactions", CuratorChecks::transactions);
    checks.put("a session moves", CuratorChecks::sessionMoves);
    checks.put("lock", CuratorChecks::lock);
    checks.put("election", CuratorChecks::election);
    checks.put("cache", CuratorChecks::cache);
    checks.put("counter", CuratorChecks::counter);
    checks.put("containers", Checks::containers);
    checks.put("TTL", Checks::ttl);
    checks.put("persistent watches", Checks::persistentWatches);
    run(checks);
  }
}
