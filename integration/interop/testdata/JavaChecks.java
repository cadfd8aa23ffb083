import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;
import org.apache.zookeeper.recipes.queue.DistributedQueue;

/**
 * Checks of a zk-lite ensemble with ZooKeeper's own Java client and recipes. The argument is the
 * connect string. What is printed is described at the type message in integration/cluster.
 */
public class JavaChecks {
  static final int PATIENCE = 30; // seconds, for what should happen soon
  static final int SESSION = 10000; // milliseconds: longer than an election on a busy machine
  static final List<ACL> OPEN = Ids.OPEN_ACL_UNSAFE;
  static String hosts;

  interface Body {
    void run() throws Exception;
  }

  /** Events of a client or a watch, in order. */
  static class Events implements Watcher {
    final BlockingQueue<WatchedEvent> queue = new LinkedBlockingQueue<>();

    @Override
    public void process(WatchedEvent e) {
      queue.add(e);
    }

    WatchedEvent next() throws Exception {
      WatchedEvent e = queue.poll(PATIENCE, TimeUnit.SECONDS);
      if (e == null) {
        throw new AssertionError("no event in " + PATIENCE + " s");
      }
      return e;
    }

    /** Waits for a change of the connection's state and passes others by. */
    void await(KeeperState state) throws Exception {
      for (; ; ) {
        WatchedEvent e = next();
        if (e.getType() == EventType.None && e.getState() == state) {
          return;
        }
      }
    }

    void expect(EventType type, String path) throws Exception {
      WatchedEvent e = next();
      while (e.getType() == EventType.None) { // the connection's own
        e = next();
      }
      equal(e.getType() + " " + e.getPath(), type + " " + path);
    }

    void expectNothing() {
      for (WatchedEvent e : queue) {
        if (e.getType() != EventType.None) {
          throw new AssertionError("an event that nobody should get: " + e);
        }
      }
    }
  }

  /** A client that is connected when the constructor returns. */
  static class Client implements AutoCloseable {
    final Events events = new Events();
    final ZooKeeper zk;

    Client(String hosts) throws Exception {
      this(hosts, 0, null);
    }

    Client(String hosts, long id, byte[] password) throws Exception {
      zk = id == 0 ? new ZooKeeper(hosts, SESSION, events)
          : new ZooKeeper(hosts, SESSION, events, id, password);
      events.await(KeeperState.SyncConnected);
    }

    @Override
    public void close() throws InterruptedException {
      zk.close();
    }

    void sync() throws Exception {
      JavaChecks.sync(zk);
    }

    /** The server that the client is connected to. */
    String server() {
      String text = zk.toString();
      String key = "remoteserver:";
      int from = text.indexOf('/', text.indexOf(key)) + 1;
      return text.substring(from, text.indexOf(' ', from));
    }
  }

  static void sync(ZooKeeper zk) throws Exception {
    Reply r = new Reply();
    zk.sync("/", r, null);
    equal(r.get(), Code.OK);
  }

  /** Any callback: waits for the result. */
  static class Reply
      implements AsyncCallback.VoidCallback, AsyncCallback.StringCallback, AsyncCallback.StatCallback,
          AsyncCallback.DataCallback, AsyncCallback.ChildrenCallback,
          AsyncCallback.Children2Callback, AsyncCallback.Create2Callback,
          AsyncCallback.AllChildrenNumberCallback, AsyncCallback.EphemeralsCallback {
    final CountDownLatch done = new CountDownLatch(1);
    Code code;
    Object result;

    void set(int rc, Object result) {
      this.code = Code.get(rc);
      this.result = result;
      done.countDown();
    }

    Code get() throws Exception {
      if (!done.await(PATIENCE, TimeUnit.SECONDS)) {
        throw new AssertionError("no reply in " + PATIENCE + " s");
      }
      return code;
    }

    Object ok() throws Exception {
      equal(get(), Code.OK);
      return result;
    }

    public void processResult(int rc, String p, Object c) { set(rc, p); }
    public void processResult(int rc, String p, Object c, String name) { set(rc, name); }
    public void processResult(int rc, String p, Object c, Stat s) { set(rc, s); }
    public void processResult(int rc, String p, Object c, byte[] data, Stat s) { set(rc, text(data)); }
    public void processResult(int rc, String p, Object c, List<String> names) { set(rc, sorted(names)); }
    public void processResult(int rc, String p, Object c, List<String> names, Stat s) { set(rc, sorted(names)); }
    public void processResult(int rc, String p, Object c, String name, Stat s) { set(rc, name); }
    public void processResult(int rc, String p, Object c, int n) { set(rc, n); }
    public void processResult(int rc, Object c, List<String> names) { set(rc, sorted(names)); }
  }

  static List<String> sorted(List<String> names) {
    if (names == null) {
      return null;
    }
    List<String> copy = new ArrayList<>(names);
    Collections.sort(copy);
    return copy;
  }

  static String text(byte[] data) {
    return data == null ? null : new String(data, UTF_8);
  }

  static byte[] bytes(String s) {
    return s.getBytes(UTF_8);
  }

  static void equal(Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError(got + ", want " + want);
    }
  }

  static void raises(Code code, Body body) throws Exception {
    try {
      body.run();
    } catch (KeeperException e) {
      equal(e.code(), code);
      return;
    }
    throw new AssertionError("no error, want " + code);
  }

  static void say(String json) {
    System.out.println(json);
    System.out.flush();
  }

  static String quote(String s) {
    StringBuilder b = new StringBuilder("\"");
    for (char c : s.toCharArray()) {
      if (c == '"' || c == '\\') {
        b.append('\\').append(c);
      } else if (c < ' ') {
        b.append(String.format("\\u%04x", (int) c));
      } else {
        b.append(c);
      }
    }
    return b.append('"').toString();
  }

  static final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

  /** Asks the test to do something to a server, and waits until it is done. */
  static void ask(String json) throws Exception {
    say(json);
    equal(in.readLine(), "done");
  }

  /** The connect string with the n-th server alone. */
  static String host(int n) {
    return hosts.split(",")[n];
  }

  static void creates() throws Exception {
    try (Client c = new Client(hosts)) {
      equal(c.zk.create("/create", bytes("x"), OPEN, CreateMode.PERSISTENT), "/create");
      Stat s = new Stat();
      equal(c.zk.create("/create/2", bytes("yy"), OPEN, CreateMode.PERSISTENT, s), "/create/2");
      equal(Arrays.asList(s.getDataLength(), s.getVersion(), s.getEphemeralOwner()), Arrays.asList(2, 0, 0L));
      equal(c.zk.create("/create/e", null, OPEN, CreateMode.EPHEMERAL, s), "/create/e");
      equal(s.getEphemeralOwner(), c.zk.getSessionId());
      equal(c.zk.create("/create/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL), "/create/s-0000000002");
      equal(c.zk.create("/create/es-", null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL), "/create/es-0000000003");
      equal(c.zk.create("/create/container", null, OPEN, CreateMode.CONTAINER), "/create/container");
      equal(c.zk.create("/create/ttl", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, s, 3600000), "/create/ttl");
      equal(c.zk.create("/create/ttl-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, s, 3600000),
          "/create/ttl-0000000006");
      raises(Code.NODEEXISTS, () -> c.zk.create("/create", null, OPEN, CreateMode.PERSISTENT));
      raises(Code.NONODE, () -> c.zk.create("/none/x", null, OPEN, CreateMode.PERSISTENT));
      raises(Code.NOCHILDRENFOREPHEMERALS, () -> c.zk.create("/create/e/x", null, OPEN, CreateMode.PERSISTENT));
      raises(Code.INVALIDACL, () -> c.zk.create("/create/acl", null, new ArrayList<>(), CreateMode.PERSISTENT));
      equal(sorted(c.zk.getEphemerals()), Arrays.asList("/create/e", "/create/es-0000000003"));
      equal(sorted(c.zk.getEphemerals("/create/es")), Arrays.asList("/create/es-0000000003"));
      equal(c.zk.getAllChildrenNumber("/create"), 7);
      equal(c.zk.whoAmI().get(0).getAuthScheme(), "ip");
    }
  }

  static void readsAndWrites() throws Exception {
    try (Client c = new Client(hosts)) {
      ZooKeeper zk = c.zk;
      zk.create("/data", null, OPEN, CreateMode.PERSISTENT);
      Stat s = new Stat();
      equal(zk.getData("/data", false, s), null);
      equal(zk.setData("/data", bytes("1"), 0).getVersion(), 1);
      equal(text(zk.getData("/data", false, s)), "1");
      raises(Code.BADVERSION, () -> zk.setData("/data", null, 0));
      raises(Code.NONODE, () -> zk.setData("/none", null, 0));
      raises(Code.NONODE, () -> zk.getData("/none", false, null));
      equal(zk.exists("/none", false), null);
      equal(zk.exists("/data", false), s);
      byte[] large = new byte[1000000];
      Arrays.fill(large, (byte) 'x');
      zk.setData("/data", large, -1);
      equal(Arrays.equals(zk.getData("/data", false, null), large), true);
      raises(Code.BADARGUMENTS, () -> zk.setData("/data", new byte[2000000], -1));
      equal(Arrays.equals(zk.getData("/data", false, null), large), true);
      zk.create("/data/a", new byte[0], OPEN, CreateMode.PERSISTENT);
      zk.create("/data/ä 日本", null, OPEN, CreateMode.PERSISTENT);
      equal(sorted(zk.getChildren("/data", false)), Arrays.asList("a", "ä 日本"));
      equal(sorted(zk.getChildren("/data", false, s)), Arrays.asList("a", "ä 日本"));
      equal(Arrays.asList(s.getNumChildren(), s.getCversion()), Arrays.asList(2, 2));
      raises(Code.NOTEMPTY, () -> zk.delete("/data", -1));
      raises(Code.BADVERSION, () -> zk.delete("/data/a", 3));
      raises(Code.NONODE, () -> zk.delete("/data/b", -1));
      zk.delete("/data/a", 0);
      equal(text(zk.getConfig(false, null)).startsWith("server.1=127.0.0.1:"), true);
    }
  }

  /** Whether this client speaks TLS, with a certificate of its own. */
  static final boolean SECURE = Boolean.getBoolean("zookeeper.client.secure");

  static void aclsAndAuth() throws Exception {
    try (Client c = new Client(hosts); Client other = new Client(hosts)) {
      List<ACL> own = Ids.CREATOR_ALL_ACL;
      if (SECURE) { // the certificate, which the other client has too, is an identity from the start
        c.zk.create("/x509", null, own, CreateMode.PERSISTENT);
        equal(c.zk.getACL("/x509", null), Arrays.asList(new ACL(Perms.ALL, new Id("x509", "CN=client"))));
        own = Arrays.asList(new ACL(Perms.ALL, new Id("digest", "user:5w9W4eL3797Y4Wq8AcKUPPk8ha4=")));
      } else {
        raises(Code.INVALIDACL, () -> c.zk.create("/acl", null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
      }
      c.zk.addAuthInfo("digest", bytes("user:secret"));
      c.zk.create("/acl", bytes("mine"), own, CreateMode.PERSISTENT);
      Stat s = new Stat();
      List<ACL> acl = c.zk.getACL("/acl", s);
      equal(acl.get(0).getId().getScheme(), "digest");
      equal(acl.get(0).getPerms(), Perms.ALL);
      other.sync(); // it may be at another server
      raises(Code.NOAUTH, () -> other.zk.getData("/acl", false, null));
      raises(Code.NOAUTH, () -> other.zk.create("/acl/x", null, OPEN, CreateMode.PERSISTENT));
      other.zk.addAuthInfo("digest", bytes("user:wrong"));
      raises(Code.NOAUTH, () -> other.zk.setData("/acl", null, -1));
      other.zk.addAuthInfo("digest", bytes("user:secret"));
      equal(text(other.zk.getData("/acl", false, null)), "mine");
      acl = new ArrayList<>(acl);
      acl.add(new ACL(Perms.READ, Ids.ANYONE_ID_UNSAFE));
      equal(c.zk.setACL("/acl", acl, 0).getAversion(), 1);
      equal(c.zk.getACL("/acl", s), acl);
      raises(Code.BADVERSION, () -> c.zk.setACL("/acl", OPEN, 0));
      raises(Code.INVALIDACL, () -> c.zk.setACL("/acl", Arrays.asList(new ACL(1, new Id("what", "x"))), -1));
      c.zk.create("/acl/ip", null, Arrays.asList(new ACL(Perms.ALL, new Id("ip", "127.0.0.0/8"))),
          CreateMode.PERSISTENT);
      equal(c.zk.getChildren("/acl/ip", false).size(), 0);
      equal(c.zk.whoAmI().get(SECURE ? 2 : 1).getUser(), "user");
    }
    try (Client c = new Client(hosts)) {
      c.zk.addAuthInfo("what", bytes("ever"));
      c.events.await(KeeperState.AuthFailed);
      raises(Code.AUTHFAILED, () -> c.zk.exists("/", false));
    }
  }

  static void multi() throws Exception {
    try (Client c = new Client(hosts)) {
      List<OpResult> r = c.zk.multi(Arrays.asList(
          Op.create("/multi", bytes("m"), OPEN, CreateMode.PERSISTENT),
          Op.create("/multi/e", null, OPEN, CreateMode.EPHEMERAL),
          Op.create("/multi/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL),
          Op.create("/multi/c", null, OPEN, CreateMode.CONTAINER),
          Op.create("/multi/t", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, 100000),
          Op.setData("/multi", bytes("n"), 0), Op.check("/multi", 1), Op.delete("/multi/e", -1)));
      equal(((OpResult.CreateResult) r.get(0)).getPath(), "/multi");
      equal(((OpResult.CreateResult) r.get(2)).getPath(), "/multi/s-0000000001");
      equal(((OpResult.SetDataResult) r.get(5)).getStat().getVersion(), 1);
      equal(r.size(), 8);
      try {
        c.zk.multi(Arrays.asList(Op.create("/multi/never", null, OPEN, CreateMode.PERSISTENT),
            Op.check("/multi", 7), Op.delete("/multi", -1)));
        throw new AssertionError("no error");
      } catch (KeeperException e) {
        equal(e.code(), Code.BADVERSION);
        List<Integer> errors = new ArrayList<>();
        for (OpResult x : e.getResults()) {
          errors.add(((OpResult.ErrorResult) x).getErr());
        }
        equal(errors, Arrays.asList(0, Code.BADVERSION.intValue(), Code.RUNTIMEINCONSISTENCY.intValue()));
      }
      equal(c.zk.exists("/multi/never", false), null);
      r = c.zk.multi(Arrays.asList(Op.getData("/multi"), Op.getChildren("/multi"), Op.getData("/none")));
      equal(text(((OpResult.GetDataResult) r.get(0)).getData()), "n");
      equal(((OpResult.GetChildrenResult) r.get(1)).getChildren().size(), 3);
      equal(((OpResult.ErrorResult) r.get(2)).getErr(), Code.NONODE.intValue());
      equal(c.zk.transaction().setData("/multi", null, 1).check("/multi", 2).commit().size(), 2);
      equal(c.zk.multi(new ArrayList<Op>()).size(), 0);
      CountDownLatch done = new CountDownLatch(1);
      Object[] got = new Object[2];
      c.zk.multi(Arrays.asList(Op.delete("/multi/c", -1), Op.delete("/multi/t", -1)),
          (rc, path, ctx, results) -> {
            got[0] = rc;
            got[1] = results.size();
            done.countDown();
          }, null);
      equal(done.await(PATIENCE, TimeUnit.SECONDS), true);
      equal(Arrays.asList(got), Arrays.asList(0, 2));
    }
  }

  static void asynchronous() throws Exception {
    try (Client c = new Client(hosts)) {
      List<Reply> all = new ArrayList<>();
      for (int i = 0; i < 14; i++) {
        all.add(new Reply());
      }
      ZooKeeper zk = c.zk;
      zk.create("/async", bytes("0"), OPEN, CreateMode.PERSISTENT, (AsyncCallback.StringCallback) all.get(0), null);
      zk.create("/async/e", null, OPEN, CreateMode.EPHEMERAL, (AsyncCallback.Create2Callback) all.get(1), null);
      zk.create("/async/t", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, all.get(2), null, 100000);
      zk.setData("/async", bytes("1"), 0, all.get(3), null);
      zk.getData("/async", false, all.get(4), null);
      zk.exists("/async", false, all.get(5), null);
      zk.getChildren("/async", false, (AsyncCallback.ChildrenCallback) all.get(6), null);
      zk.getChildren("/async", false, (AsyncCallback.Children2Callback) all.get(7), null);
      zk.getACL("/async", new Stat(), (rc, path, ctx, acl, stat) -> all.get(8).set(rc, acl), null);
      zk.getAllChildrenNumber("/async", all.get(10), null);
      zk.getEphemerals("/async", all.get(11), null);
      zk.sync("/async", all.get(12), null);
      zk.delete("/async/e", 5, all.get(13), null);
      zk.setACL("/async", Ids.READ_ACL_UNSAFE, 0, all.get(9), null);
      equal(all.get(13).get(), Code.BADVERSION);
      equal(all.get(0).ok(), "/async");
      equal(all.get(1).ok(), "/async/e");
      equal(all.get(2).ok(), "/async/t");
      equal(((Stat) all.get(3).ok()).getVersion(), 1);
      equal(all.get(4).ok(), "1");
      equal(((Stat) all.get(5).ok()).getNumChildren(), 2);
      equal(all.get(6).ok(), Arrays.asList("e", "t"));
      equal(all.get(7).ok(), Arrays.asList("e", "t"));
      equal(all.get(8).ok(), OPEN);
      equal(((Stat) all.get(9).ok()).getAversion(), 1);
      equal(all.get(10).ok(), 2);
      equal(all.get(11).ok(), Arrays.asList("/async/e"));
      equal(all.get(12).ok(), "/async");
      AtomicInteger next = new AtomicInteger();
      zk.create("/order", null, OPEN, CreateMode.PERSISTENT);
      CountDownLatch done = new CountDownLatch(1000);
      AtomicInteger wrong = new AtomicInteger();
      for (int i = 0; i < 1000; i++) {
        int want = i;
        zk.setData("/order", bytes("" + i), i, (rc, path, ctx, stat) -> {
          if (rc != 0 || next.getAndIncrement() != want || stat.getVersion() != want + 1) {
            wrong.incrementAndGet();
          }
          done.countDown();
        }, null);
      }
      equal(done.await(PATIENCE, TimeUnit.SECONDS), true);
      equal(wrong.get(), 0);
    }
  }

  static void oneShotWatches() throws Exception {
    try (Client c = new Client(hosts); Client other = new Client(host(1))) {
      c.zk.create("/watch", null, OPEN, CreateMode.PERSISTENT);
      Events data = new Events(), there = new Events(), children = new Events(), missing = new Events();
      c.zk.getData("/watch", data, null);
      c.zk.exists("/watch", there);
      c.zk.getChildren("/watch", children);
      c.zk.exists("/watch/x", missing);
      other.sync();
      other.zk.setData("/watch", bytes("1"), -1);
      other.zk.setData("/watch", bytes("2"), -1);
      other.zk.create("/watch/x", null, OPEN, CreateMode.EPHEMERAL);
      data.expect(EventType.NodeDataChanged, "/watch");
      there.expect(EventType.NodeDataChanged, "/watch");
      children.expect(EventType.NodeChildrenChanged, "/watch");
      missing.expect(EventType.NodeCreated, "/watch/x");
      c.sync();
      c.zk.getChildren("/watch", children);
      c.zk.getData("/watch/x", data, null);
      c.zk.exists("/watch", true);
      other.close(); // and with it, its ephemeral
      children.expect(EventType.NodeChildrenChanged, "/watch");
      data.expect(EventType.NodeDeleted, "/watch/x");
      c.zk.delete("/watch", -1);
      c.events.expect(EventType.NodeDeleted, "/watch"); // the default watcher
      c.sync();
      for (Events e : Arrays.asList(data, there, children, missing)) {
        e.expectNothing();
      }
    }
  }

  static void persistentWatches() throws Exception {
    // Two clients: before 3.9 a server keeps one mode for a client and a path.
    try (Client c = new Client(hosts); Client d = new Client(host(1)); Client other = new Client(host(2))) {
      Events one = new Events(), tree = new Events();
      c.zk.create("/pw", null, OPEN, CreateMode.PERSISTENT);
      c.zk.addWatch("/pw", one, AddWatchMode.PERSISTENT);
      d.sync(); // else its server may create the znode after the watch
      d.zk.addWatch("/pw", tree, AddWatchMode.PERSISTENT_RECURSIVE);
      other.sync();
      for (int i = 0; i < 3; i++) {
        other.zk.setData("/pw", null, -1);
        other.zk.create("/pw/" + i, null, OPEN, CreateMode.PERSISTENT);
        other.zk.setData("/pw/" + i, null, -1);
        other.zk.create("/pw/" + i + "/deep", null, OPEN, CreateMode.PERSISTENT);
        other.zk.delete("/pw/" + i + "/deep", -1);
        one.expect(EventType.NodeDataChanged, "/pw");
        one.expect(EventType.NodeChildrenChanged, "/pw");
        tree.expect(EventType.NodeDataChanged, "/pw");
        tree.expect(EventType.NodeCreated, "/pw/" + i);
        tree.expect(EventType.NodeDataChanged, "/pw/" + i);
        tree.expect(EventType.NodeCreated, "/pw/" + i + "/deep");
        tree.expect(EventType.NodeDeleted, "/pw/" + i + "/deep");
      }
      d.zk.removeWatches("/pw", tree, WatcherType.Any, false);
      tree.expect(EventType.PersistentWatchRemoved, "/pw");
      raises(Code.NOWATCHER, () -> d.zk.removeWatches("/pw", tree, WatcherType.Any, false));
      other.zk.setData("/pw", null, -1);
      one.expect(EventType.NodeDataChanged, "/pw");
      c.zk.removeAllWatches("/pw", WatcherType.Any, false);
      one.expect(EventType.PersistentWatchRemoved, "/pw");
      c.zk.getData("/pw", one, null);
      c.zk.getChildren("/pw", one);
      c.zk.removeWatches("/pw", one, WatcherType.Data, false);
      one.expect(EventType.DataWatchRemoved, "/pw");
      c.zk.removeWatches("/pw", one, WatcherType.Children, false);
      one.expect(EventType.ChildWatchRemoved, "/pw");
      other.zk.setData("/pw", null, -1);
      c.sync();
      d.sync();
      one.expectNothing();
      tree.expectNothing();
    }
  }

  static void syncSeesWhatOthersWrote() throws Exception {
    try (Client writer = new Client(host(0)); Client reader = new Client(host(1))) {
      writer.zk.create("/sync", null, OPEN, CreateMode.PERSISTENT);
      for (int i = 0; i < 100; i++) {
        writer.zk.setData("/sync", bytes("" + i), -1);
        reader.sync();
        equal(text(reader.zk.getData("/sync", false, null)), "" + i);
      }
    }
  }

  static void reconfigIsDisabled() throws Exception {
    Events events = new Events();
    ZooKeeperAdmin admin = new ZooKeeperAdmin(hosts, SESSION, events);
    try {
      events.await(KeeperState.SyncConnected);
      raises(Code.RECONFIGDISABLED, () -> admin.reconfigure("", "1", "", -1, null));
    } finally {
      admin.close();
    }
  }

  static void sessionEnds() throws Exception {
    try (Client c = new Client(hosts)) {
      Client other = new Client(hosts);
      other.zk.create("/ended", null, OPEN, CreateMode.EPHEMERAL);
      c.sync();
      Events gone = new Events();
      equal(c.zk.exists("/ended", gone) != null, true);
      long id = other.zk.getSessionId();
      byte[] password = other.zk.getSessionPasswd();
      other.close();
      gone.expect(EventType.NodeDeleted, "/ended");
      Events events = new Events();
      ZooKeeper late = new ZooKeeper(hosts, SESSION, events, id, password);
      events.await(KeeperState.Expired);
      late.close();
      events = new Events();
      ZooKeeper wrong = new ZooKeeper(hosts, SESSION, events, c.zk.getSessionId(), new byte[16]);
      events.await(KeeperState.Expired);
      wrong.close();
      c.zk.exists("/", false);
    }
  }

  static void sessionIsTakenOver() throws Exception {
    Client old = new Client(host(0));
    old.zk.create("/taken", null, OPEN, CreateMode.EPHEMERAL);
    try (Client c = new Client(host(1), old.zk.getSessionId(), old.zk.getSessionPasswd())) {
      equal(c.zk.getSessionId(), old.zk.getSessionId());
      old.events.await(KeeperState.Disconnected);
    }
    // Either of the two has closed the session, the other finds it expired.
    try (Client c = new Client(hosts)) {
      old.zk.close();
      c.sync();
      equal(c.zk.exists("/taken", false), null);
    }
  }

  /** Kills the server of a client, which must come back with the same session. */
  static void dieUnder(Client c) throws Exception {
    long id = c.zk.getSessionId();
    String server = c.server();
    c.events.queue.clear();
    ask("{\"kill\": " + quote(server) + "}");
    c.events.await(KeeperState.Disconnected);
    c.events.await(KeeperState.SyncConnected);
    equal(c.zk.getSessionId(), id);
    equal(c.server().equals(server), false);
  }

  static void sessionMovesWhenItsServerDies() throws Exception {
    for (int round = 0; round < 3; round++) {
      String root = "/move-" + round;
      try (Client c = new Client(hosts); Client other = new Client(hosts)) {
        c.zk.addAuthInfo("digest", bytes("user:secret"));
        c.zk.create(root, null, OPEN, CreateMode.PERSISTENT);
        c.zk.create(root + "/mine", bytes("x"), Ids.CREATOR_ALL_ACL, CreateMode.EPHEMERAL);
        Events data = new Events(), children = new Events(), one = new Events(), tree = new Events();
        Events missing = new Events();
        c.zk.getData(root, data, null);
        c.zk.getChildren(root, children);
        c.zk.exists(root + "/missing", missing);
        c.zk.addWatch(root, one, AddWatchMode.PERSISTENT);
        c.zk.addWatch(root + "/tree", tree, AddWatchMode.PERSISTENT_RECURSIVE);
        dieUnder(c);
        equal(c.zk.exists(root + "/mine", false).getEphemeralOwner(), c.zk.getSessionId());
        equal(text(c.zk.getData(root + "/mine", false, null)), "x"); // the credentials moved, too
        other.sync();
        other.zk.setData(root, bytes("1"), -1);
        other.zk.create(root + "/missing", null, OPEN, CreateMode.PERSISTENT);
        data.expect(EventType.NodeDataChanged, root);
        children.expect(EventType.NodeChildrenChanged, root);
        missing.expect(EventType.NodeCreated, root + "/missing");
        one.expect(EventType.NodeDataChanged, root);
        one.expect(EventType.NodeChildrenChanged, root);
        other.zk.create(root + "/tree", null, OPEN, CreateMode.PERSISTENT);
        other.zk.create(root + "/tree/deep", null, OPEN, CreateMode.PERSISTENT);
        tree.expect(EventType.NodeCreated, root + "/tree");
        tree.expect(EventType.NodeCreated, root + "/tree/deep");
        c.zk.close();
        other.sync();
        equal(other.zk.exists(root + "/mine", false), null);
      }
      ask("{\"heal\": true}");
    }
  }

  static void lockRecipe() throws Exception {
    List<Client> all = Arrays.asList(new Client(hosts), new Client(hosts), new Client(hosts));
    try {
      all.get(0).zk.create("/lock", null, OPEN, CreateMode.PERSISTENT);
      BlockingQueue<Integer> owners = new LinkedBlockingQueue<>();
      List<WriteLock> locks = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        int me = i;
        all.get(i).sync();
        locks.add(new WriteLock(all.get(i).zk, "/lock", OPEN, new LockListener() {
          @Override
          public void lockAcquired() {
            owners.add(me);
          }

          @Override
          public void lockReleased() {}
        }));
        locks.get(i).lock();
      }
      equal(owners.poll(PATIENCE, TimeUnit.SECONDS), 0);
      for (int i = 0; i < 3; i++) {
        equal(Arrays.asList(locks.get(i).isOwner(), owners.size()), Arrays.asList(true, 0));
        locks.get(i).unlock();
        if (i < 2) {
          equal(owners.poll(PATIENCE, TimeUnit.SECONDS), i + 1);
        }
      }
    } finally {
      for (Client c : all) {
        c.close();
      }
    }
  }

  static void electionRecipe() throws Exception {
    List<Client> all = Arrays.asList(new Client(hosts), new Client(hosts), new Client(hosts));
    BlockingQueue<Integer> leaders = new LinkedBlockingQueue<>();
    List<LeaderElectionSupport> elections = new ArrayList<>();
    all.get(0).zk.create("/election", null, OPEN, CreateMode.PERSISTENT);
    for (int i = 0; i < 3; i++) {
      int me = i;
      all.get(i).sync();
      LeaderElectionSupport e = new LeaderElectionSupport();
      e.setZooKeeper(all.get(i).zk);
      e.setHostName("host-" + i);
      e.setRootNodeName("/election");
      e.addListener(type -> {
        if (type == LeaderElectionSupport.EventType.ELECTED_COMPLETE) {
          leaders.add(me);
        }
      });
      e.start();
      elections.add(e);
    }
    equal(leaders.poll(PATIENCE, TimeUnit.SECONDS), 0);
    equal(elections.get(2).getLeaderHostName(), "host-0");
    elections.get(0).stop();
    equal(leaders.poll(PATIENCE, TimeUnit.SECONDS), 1);
    all.get(1).close(); // the session's end, not a resignation
    equal(leaders.poll(PATIENCE, TimeUnit.SECONDS), 2);
    elections.get(2).stop();
    all.get(0).close();
    all.get(2).close();
  }

  static void queueRecipe() throws Exception {
    try (Client c = new Client(hosts); Client other = new Client(hosts)) {
      DistributedQueue in = new DistributedQueue(c.zk, "/queue", OPEN);
      DistributedQueue out = new DistributedQueue(other.zk, "/queue", OPEN);
      for (int i = 0; i < 10; i++) {
        in.offer(bytes("" + i));
      }
      for (int i = 0; i < 10; i++) {
        equal(text(out.take()), "" + i);
      }
      equal(in.poll(), null);
    }
  }

  public static void main(String[] args) throws Exception {
    hosts = args[0];
    Map<String, Body> checks = new LinkedHashMap<>();
    checks.put("creates", JavaChecks::creates);
    checks.put("reads and writes", JavaChecks::readsAndWrites);
    checks.put("ACLs and auth", JavaChecks::aclsAndAuth);
    checks.put("multi", JavaChecks::multi);
    checks.put("asynchronous", JavaChecks::asynchronous);
    checks.put("one-shot watches", JavaChecks::oneShotWatches);
    checks.put("persistent watches", JavaChecks::persistentWatches);
    checks.put("sync sees what others wrote", JavaChecks::syncSeesWhatOthersWrote);
    checks.put("reconfig is disabled", JavaChecks::reconfigIsDisabled);
    checks.put("a session ends", JavaChecks::sessionEnds);
    checks.put("a session is taken over", JavaChecks::sessionIsTakenOver);
    checks.put("a session moves when its server dies", JavaChecks::sessionMovesWhenItsServerDies);
    checks.put("recipe: lock", JavaChecks::lockRecipe);
    checks.put("recipe: election", JavaChecks::electionRecipe);
    checks.put("recipe: queue", JavaChecks::queueRecipe);
    run(checks);
  }

  /** Runs checks, prints what came of them, and ends the program. */
  static void run(Map<String, Body> checks) {
    for (Map.Entry<String, Body> check : checks.entrySet()) {
      String name = quote(check.getKey());
      try {
        check.getValue().run();
        say("{\"check\": " + name + ", \"ok\": true}");
      } catch (Throwable e) {
        StringWriter trace = new StringWriter();
        e.printStackTrace(new PrintWriter(trace));
        say("{\"check\": " + name + ", \"detail\": " + quote(trace.toString()) + "}");
      }
    }
    say("{\"end\": " + checks.size() + "}");
    System.exit(0); // clients that a failed check has left behind
  }
}
