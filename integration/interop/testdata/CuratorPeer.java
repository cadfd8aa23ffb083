import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;

/**
 * A process with Curator's recipes, that does what curator_test.go tells it. The argument is the
 * connect string. A line of input is "id command path arguments...", and begins something that
 * runs on a thread of its own, or "id do arguments..." for something that has begun. What happens
 * is printed, a line for each event: "id word...". An exception is the word "failed".
 */
public class CuratorPeer {
  static final int SESSION = 10000; // milliseconds: longer than any failover
  static final int CONNECT = 8000; // milliseconds
  static final int RETRY = 50; // milliseconds

  static CuratorFramework curator;

  /** Something that has begun: "do" is passed on to it. */
  interface Running {
    void act(String[] words) throws Exception;
  }

  static final Map<String, Running> running = new ConcurrentHashMap<>();

  static synchronized void say(String id, String text) {
    System.out.println(id + " " + text);
    System.out.flush();
  }

  static byte[] bytes(String s) {
    return s.getBytes(UTF_8);
  }

  static String text(byte[] b) {
    return b == null ? "" : new String(b, UTF_8);
  }

  /** Waits for "id do release" while something is held. */
  static void awaitRelease(String id) throws Exception {
    CountDownLatch done = new CountDownLatch(1);
    running.put(id, words -> done.countDown());
    say(id, "held");
    done.await();
  }

  static void mutex(String id, String path) throws Exception {
    InterProcessMutex m = new InterProcessMutex(curator, path);
    m.makeRevocable(x -> say(id, "revoked"));
    m.acquire();
    awaitRelease(id);
    m.release();
    say(id, "released");
  }

  static void tryMutex(String id, String path) throws Exception {
    InterProcessMutex m = new InterProcessMutex(curator, path);
    say(id, m.acquire(0, TimeUnit.MILLISECONDS) ? "held" : "refused");
  }

  static void participants(String id, String path) throws Exception {
    say(id, "" + new InterProcessMutex(curator, path).getParticipantNodes().size());
  }

  static void revoke(String id, String path) throws Exception {
    List<String> nodes = new ArrayList<>(new InterProcessMutex(curator, path).getParticipantNodes());
    Revoker.attemptRevoke(curator, nodes.get(0));
    say(id, "asked");
  }

  static void readWrite(String id, String path, boolean write) throws Exception {
    InterProcessReadWriteLock l = new InterProcessReadWriteLock(curator, path);
    InterProcessMutex m = write ? l.writeLock() : l.readLock();
    m.acquire();
    awaitRelease(id);
    m.release();
    say(id, "released");
  }

  static void semaphore(String id, String path, int places) throws Exception {
    InterProcessSemaphoreV2 s = new InterProcessSemaphoreV2(curator, path, places);
    Lease lease = s.acquire();
    awaitRelease(id);
    s.returnLease(lease);
    say(id, "released");
  }

  static void latch(String id, String path) throws Exception {
    LeaderLatch l = new LeaderLatch(curator, path, "curator-" + id);
    running.put(id, words -> {
      if (words[0].equals("release")) {
        l.close();
        say(id, "released");
      } else {
        List<String> ids = new ArrayList<>();
        for (Participant p : l.getParticipants()) {
          ids.add(p.getId() + (p.isLeader() ? "*" : ""));
        }
        say(id, String.join(",", ids));
      }
    });
    l.start();
    l.await();
    say(id, "held");
  }

  static void selector(String id, String path) throws Exception {
    CountDownLatch done = new CountDownLatch(1);
    LeaderSelector s = new LeaderSelector(curator, path, new LeaderSelectorListenerAdapter() {
      @Override
      public void takeLeadership(CuratorFramework c) throws Exception {
        say(id, "held");
        done.await();
      }
    });
    s.setId("curator-" + id);
    running.put(id, words -> {
      done.countDown();
      s.close();
      say(id, "released");
    });
    s.start();
  }

  static void barrier(String id, String path) throws Exception {
    DistributedBarrier b = new DistributedBarrier(curator, path);
    running.put(id, words -> {
      b.removeBarrier();
      say(id, "removed");
    });
    b.setBarrier();
    say(id, "set");
  }

  static void waitBarrier(String id, String path) throws Exception {
    say(id, "waits");
    new DistributedBarrier(curator, path).waitOnBarrier();
    say(id, "passed");
  }

  static void doubleBarrier(String id, String path, int n) throws Exception {
    DistributedDoubleBarrier b = new DistributedDoubleBarrier(curator, path, n);
    b.enter();
    awaitRelease(id);
    b.leave();
    say(id, "left");
  }

  static void group(String id, String path, String name) throws Exception {
    GroupMember g = new GroupMember(curator, path, name, bytes("data of " + name));
    running.put(id, words -> {
      if (words[0].equals("release")) {
        g.close();
        say(id, "released");
        return;
      }
      List<String> members = new ArrayList<>();
      g.getCurrentMembers().forEach((k, v) -> members.add(k + "=" + text(v)));
      Collections.sort(members);
      say(id, String.join(",", members));
    });
    g.start();
    say(id, "held");
  }

  static void atomic(String id, String path, long delta) throws Exception {
    AtomicValue<Long> v = new DistributedAtomicLong(curator, path, new RetryForever(RETRY)).add(delta);
    say(id, v.succeeded() ? "" + v.postValue() : "not added");
  }

  static void count(String id, String path) throws Exception {
    SharedCount c = new SharedCount(curator, path, 0);
    c.start();
    running.put(id, words -> {
      if (words[0].equals("release")) {
        c.close();
        say(id, "released");
      } else if (words[0].equals("set")) {
        c.setCount(Integer.parseInt(words[1]));
        say(id, "set");
      } else {
        say(id, "" + c.getCount());
      }
    });
    say(id, "held");
  }

  static String list(Map<String, String> view) {
    List<String> all = new ArrayList<>();
    view.forEach((k, v) -> all.add(k + "=" + v));
    Collections.sort(all);
    return String.join(",", all);
  }

  static void curatorCache(String id, String path) throws Exception {
    CuratorCache cache = CuratorCache.build(curator, path);
    running.put(id, words -> {
      if (words[0].equals("release")) {
        cache.close();
        say(id, "released");
        return;
      }
      Map<String, String> view = new ConcurrentHashMap<>();
      cache.stream().forEach(x -> view.put(x.getPath(), text(x.getData())));
      say(id, list(view));
    });
    cache.listenable().addListener(CuratorCacheListener.builder().forInitialized(() -> say(id, "held")).build());
    cache.start();
  }

  static void pathCache(String id, String path) throws Exception {
    PathChildrenCache cache = new PathChildrenCache(curator, path, true);
    running.put(id, words -> {
      if (words[0].equals("release")) {
        cache.close();
        say(id, "released");
        return;
      }
      Map<String, String> view = new ConcurrentHashMap<>();
      for (ChildData x : cache.getCurrentData()) {
        view.put(x.getPath(), text(x.getData()));
      }
      say(id, list(view));
    });
    cache.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
    say(id, "held");
  }

  static void treeCache(String id, String path) throws Exception {
    TreeCache cache = new TreeCache(curator, path);
    running.put(id, words -> {
      if (words[0].equals("release")) {
        cache.close();
        say(id, "released");
        return;
      }
      Map<String, String> view = new ConcurrentHashMap<>();
      walk(cache, path, view);
      say(id, list(view));
    });
    CountDownLatch ready = new CountDownLatch(1);
    cache.getListenable().addListener((c, e) -> {
      if (e.getType() == org.apache.curator.framework.recipes.cache.TreeCacheEvent.Type.INITIALIZED) {
        ready.countDown();
      }
    });
    cache.start();
    ready.await();
    say(id, "held");
  }

  static void walk(TreeCache cache, String path, Map<String, String> view) {
    ChildData here = cache.getCurrentData(path);
    if (here == null) {
      return;
    }
    view.put(path, text(here.getData()));
    Map<String, ChildData> children = cache.getCurrentChildren(path);
    if (children != null) {
      children.keySet().forEach(name -> walk(cache, path + "/" + name, view));
    }
  }

  static final QueueSerializer<String> STRINGS = new QueueSerializer<String>() {
    @Override
    public byte[] serialize(String s) {
      return bytes(s);
    }

    @Override
    public String deserialize(byte[] b) {
      return text(b);
    }
  };

  static QueueBuilder<String> queue(String id, String path, boolean consume) {
    QueueConsumer<String> consumer = !consume ? null : new QueueConsumer<String>() {
      @Override
      public void consumeMessage(String s) {
        say(id, "took " + s);
      }

      @Override
      public void stateChanged(CuratorFramework c, ConnectionState s) {}
    };
    return QueueBuilder.builder(curator, consumer, STRINGS, path).lockPath(path + "-claims");
  }

  static void put(String id, String path, String kind, String item, String key) throws Exception {
    QueueBuilder<String> builder = queue(id, path, false);
    if (kind.equals("priority")) {
      try (DistributedPriorityQueue<String> q = builder.buildPriorityQueue(0)) {
        q.start();
        q.put(item, Integer.parseInt(key));
        q.flushPuts(CONNECT, TimeUnit.MILLISECONDS);
      }
    } else if (kind.equals("delay")) {
      try (DistributedDelayQueue<String> q = builder.buildDelayQueue()) {
        q.start();
        q.put(item, Long.parseLong(key));
        q.flushPuts(CONNECT, TimeUnit.MILLISECONDS);
      }
    } else {
      try (DistributedQueue<String> q = builder.buildQueue()) {
        q.start();
        q.put(item);
        q.flushPuts(CONNECT, TimeUnit.MILLISECONDS);
      }
    }
    say(id, "put");
  }

  static void take(String id, String path, String kind) throws Exception {
    QueueBuilder<String> builder = queue(id, path, true);
    AutoCloseable q;
    if (kind.equals("priority")) {
      DistributedPriorityQueue<String> p = builder.buildPriorityQueue(0);
      p.start();
      q = p;
    } else if (kind.equals("delay")) {
      DistributedDelayQueue<String> d = builder.buildDelayQueue();
      d.start();
      q = d;
    } else {
      DistributedQueue<String> plain = builder.buildQueue();
      plain.start();
      q = plain;
    }
    running.put(id, words -> {
      q.close();
      say(id, "released");
    });
    say(id, "held");
  }

  static void begin(String id, String[] w) throws Exception {
    switch (w[0]) {
      case "mutex": mutex(id, w[1]); break;
      case "try": tryMutex(id, w[1]); break;
      case "participants": participants(id, w[1]); break;
      case "revoke": revoke(id, w[1]); break;
      case "read": readWrite(id, w[1], false); break;
      case "write": readWrite(id, w[1], true); break;
      case "semaphore": semaphore(id, w[1], Integer.parseInt(w[2])); break;
      case "latch": latch(id, w[1]); break;
      case "selector": selector(id, w[1]); break;
      case "barrier": barrier(id, w[1]); break;
      case "wait": waitBarrier(id, w[1]); break;
      case "double": doubleBarrier(id, w[1], Integer.parseInt(w[2])); break;
      case "group": group(id, w[1], w[2]); break;
      case "atomic": atomic(id, w[1], Long.parseLong(w[2])); break;
      case "count": count(id, w[1]); break;
      case "cache": curatorCache(id, w[1]); break;
      case "pathcache": pathCache(id, w[1]); break;
      case "treecache": treeCache(id, w[1]); break;
      case "put": put(id, w[1], w[2], w[3], w[4]); break;
      case "take": take(id, w[1], w[2]); break;
      default: say(id, "failed: no such command: " + w[0]);
    }
  }

  static void run(String id, String[] words) {
    try {
      if (words[0].equals("do")) {
        String[] rest = new String[words.length - 1];
        System.arraycopy(words, 1, rest, 0, rest.length);
        running.get(id).act(rest);
      } else {
        begin(id, words);
      }
    } catch (Throwable e) {
      e.printStackTrace();
      say(id, "failed: " + e);
    }
  }

  public static void main(String[] args) throws Exception {
    curator = CuratorFrameworkFactory.newClient(args[0], SESSION, CONNECT, new RetryForever(RETRY));
    curator.getConnectionStateListenable().addListener((c, s) -> say("state", s.toString()));
    curator.start();
    curator.blockUntilConnected();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      String[] all = line.split(" ");
      String[] words = new String[all.length - 1];
      System.arraycopy(all, 1, words, 0, words.length);
      Thread t = new Thread(() -> run(all[0], words), "peer-" + all[0]);
      t.setDaemon(true);
      t.start();
    }
    curator.close();
    System.exit(0);
  }
}
