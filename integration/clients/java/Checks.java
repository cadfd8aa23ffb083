import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/**
 * Checks of an ensemble with ZooKeeper's Java client from 3.4 on. What 3.4 lacks is called by reflection. The argument
 * is the connect string; what is printed is described at the type message in integration/cluster.
 */
public class Checks {
  static final int PATIENCE = 30; // seconds, for what should happen soon
  static final int SESSION = 4000; // milliseconds
  static final List<ACL> OPEN = Ids.OPEN_ACL_UNSAFE;
  /** For the user with the password "secret", not for the certificate that a client may have, too. */
  static final List<ACL> OWN =
      Collections.singletonList(new ACL(Perms.ALL, new Id("digest", "user:5w9W4eL3797Y4Wq8AcKUPPk8ha4=")));
  static final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
  static final PrintStream out = System.out;
  static String hosts;

  static {
    System.setOut(System.err); // for what logs there, as Logback does
  }

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

    WatchedEvent next(String what) throws Exception {
      WatchedEvent e = queue.poll(PATIENCE, TimeUnit.SECONDS);
      if (e == null) {
        throw new AssertionError("waited " + PATIENCE + " s for " + what);
      }
      return e;
    }

    /** Waits for a state of the connection and passes other events by. */
    void await(KeeperState state) throws Exception {
      for (WatchedEvent e = next(state.name()); ; e = next(state.name())) {
        if (e.getType() == EventType.None && e.getState() == state) {
          return;
        }
      }
    }

    /** Waits for an event of a path and passes those of the connection by. */
    void expect(EventType type, String path) throws Exception {
      WatchedEvent e = next(type + " " + path);
      while (e.getType() == EventType.None) {
        e = next(type + " " + path);
      }
      equal(e.getType() + " " + e.getPath(), type + " " + path);
    }
  }

  /** A client that is connected when the constructor returns. */
  static class Client implements AutoCloseable {
    final Events events = new Events();
    final ZooKeeper zk;

    Client() throws Exception {
      zk = new ZooKeeper(hosts, SESSION, events);
      events.await(KeeperState.SyncConnected);
    }

    @Override
    public void close() throws InterruptedException {
      zk.close();
    }

    String create(String path, String data, CreateMode mode) throws Exception {
      return zk.create(path, bytes(data), OPEN, mode);
    }
  }

  static byte[] bytes(String s) {
    return s.getBytes(UTF_8);
  }

  static String text(byte[] data) {
    return data == null ? null : new String(data, UTF_8);
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

  static List<String> sorted(List<String> names) {
    List<String> copy = new ArrayList<>(names);
    Collections.sort(copy);
    return copy;
  }

  static void say(String json) {
    out.println(json);
    out.flush();
  }

  static String quote(String s) {
    return "\"" + s.replace("\\", "/").replace("\"", "'").replace("\n", "\\n").replace("\t", " ") + "\"";
  }

  /** Asks the test to do something to a server, and waits until it is done. */
  static void ask(String json) throws Exception {
    say(json);
    equal(in.readLine(), "done");
  }

  static void sync(ZooKeeper zk) throws Exception {
    BlockingQueue<Integer> done = new LinkedBlockingQueue<>();
    zk.sync("/", (rc, path, context) -> done.add(rc), null);
    equal(done.poll(PATIENCE, TimeUnit.SECONDS), 0);
  }

  /** The server that a client is connected to. */
  static String server(ZooKeeper zk) {
    String text = zk.toString();
    int end = text.indexOf(' ', text.indexOf("remoteserver:"));
    return text.substring(text.lastIndexOf('/', end) + 1, end);
  }

  /** A mode that 3.4 lacks. */
  static CreateMode mode(String name) throws ReflectiveOperationException {
    return (CreateMode) CreateMode.class.getField(name).get(null);
  }

  static void connects() throws Exception {
    try (Client c = new Client()) {
      equal(c.zk.getSessionId() != 0, true);
      equal(c.zk.getSessionTimeout(), SESSION);
    }
  }

  static void data() throws Exception {
    try (Client c = new Client()) {
      equal(c.create("/data", "0", CreateMode.PERSISTENT), "/data");
      raises(Code.NODEEXISTS, () -> c.create("/data", "", CreateMode.PERSISTENT));
      Stat s = new Stat();
      equal(text(c.zk.getData("/data", false, s)), "0");
      equal(c.zk.exists("/data", false), s);
      equal(c.zk.setData("/data", bytes("1"), 0).getVersion(), 1);
      raises(Code.BADVERSION, () -> c.zk.setData("/data", bytes("2"), 0));
      raises(Code.BADVERSION, () -> c.zk.delete("/data", 0));
      raises(Code.NONODE, () -> c.zk.getData("/none", false, null));
      byte[] large = new byte[900000];
      c.zk.setData("/data", large, -1);
      equal(Arrays.equals(c.zk.getData("/data", false, null), large), true);
      c.zk.delete("/data", 2);
      equal(c.zk.exists("/data", false), null);
    }
  }

  static void ephemeralAndSequential() throws Exception {
    try (Client c = new Client()) {
      c.create("/kinds", "", CreateMode.PERSISTENT);
      equal(c.create("/kinds/e", "", CreateMode.EPHEMERAL), "/kinds/e");
      equal(c.zk.exists("/kinds/e", false).getEphemeralOwner(), c.zk.getSessionId());
      equal(c.create("/kinds/s-", "", CreateMode.PERSISTENT_SEQUENTIAL), "/kinds/s-0000000001");
      equal(c.create("/kinds/es-", "", CreateMode.EPHEMERAL_SEQUENTIAL), "/kinds/es-0000000002");
      raises(Code.NOCHILDRENFOREPHEMERALS, () -> c.create("/kinds/e/x", "", CreateMode.PERSISTENT));
    }
  }

  static void children() throws Exception {
    try (Client c = new Client()) {
      c.create("/parent", "", CreateMode.PERSISTENT);
      c.create("/parent/a", "", CreateMode.PERSISTENT);
      c.create("/parent/ä 日本", "", CreateMode.PERSISTENT);
      Stat s = new Stat();
      equal(sorted(c.zk.getChildren("/parent", false, s)), Arrays.asList("a", "ä 日本"));
      equal(s.getNumChildren(), 2);
      raises(Code.NOTEMPTY, () -> c.zk.delete("/parent", -1));
    }
  }

  static void multi() throws Exception {
    try (Client c = new Client()) {
      equal(c.zk.multi(Arrays.asList(Op.create("/multi", bytes("m"), OPEN, CreateMode.PERSISTENT),
          Op.create("/multi/e", bytes(""), OPEN, CreateMode.EPHEMERAL), Op.setData("/multi", bytes("n"), 0),
          Op.check("/multi", 1), Op.delete("/multi/e", -1))).size(), 5);
      raises(Code.BADVERSION, () -> c.zk.multi(Arrays.asList(
          Op.create("/multi/never", bytes(""), OPEN, CreateMode.PERSISTENT), Op.check("/multi", 7))));
      equal(c.zk.exists("/multi/never", false), null);
      equal(text(c.zk.getData("/multi", false, null)), "n");
    }
  }

  static void watches() throws Exception {
    try (Client c = new Client(); Client other = new Client()) {
      c.create("/watch", "", CreateMode.PERSISTENT);
      Events data = new Events(), there = new Events(), children = new Events(), missing = new Events();
      c.zk.getData("/watch", data, null);
      c.zk.exists("/watch", there);
      c.zk.getChildren("/watch", children);
      c.zk.exists("/watch/e", missing);
      sync(other.zk);
      other.zk.setData("/watch", bytes("1"), -1);
      other.create("/watch/e", "", CreateMode.EPHEMERAL);
      data.expect(EventType.NodeDataChanged, "/watch");
      there.expect(EventType.NodeDataChanged, "/watch");
      children.expect(EventType.NodeChildrenChanged, "/watch");
      missing.expect(EventType.NodeCreated, "/watch/e");
      sync(c.zk);
      c.zk.getData("/watch/e", data, null);
      other.close(); // and with it, its ephemeral
      data.expect(EventType.NodeDeleted, "/watch/e");
      equal(Arrays.asList(data.queue.size(), there.queue.size()), Arrays.asList(0, 0));
    }
  }

  static void acls() throws Exception {
    try (Client c = new Client(); Client other = new Client()) {
      c.zk.addAuthInfo("digest", bytes("user:secret"));
      c.zk.create("/acl", bytes("mine"), OWN, CreateMode.PERSISTENT);
      equal(c.zk.getACL("/acl", new Stat()), OWN);
      sync(other.zk);
      raises(Code.NOAUTH, () -> other.zk.getData("/acl", false, null));
      other.zk.addAuthInfo("digest", bytes("user:secret"));
      equal(text(other.zk.getData("/acl", false, null)), "mine");
      equal(c.zk.setACL("/acl", Ids.READ_ACL_UNSAFE, 0).getAversion(), 1);
      raises(Code.NOAUTH, () -> c.zk.setData("/acl", bytes(""), -1));
    }
  }

  static void sessionEnds() throws Exception {
    try (Client c = new Client()) {
      Client other = new Client();
      other.create("/ended", "", CreateMode.EPHEMERAL);
      sync(c.zk);
      Events gone = new Events(), late = new Events();
      equal(c.zk.exists("/ended", gone) != null, true);
      long id = other.zk.getSessionId();
      byte[] password = other.zk.getSessionPasswd();
      other.close();
      gone.expect(EventType.NodeDeleted, "/ended");
      ZooKeeper refused = new ZooKeeper(hosts, SESSION, late, id, password);
      late.await(KeeperState.Expired);
      refused.close();
    }
  }

  static void sessionMoves() throws Exception {
    try (Client c = new Client(); Client other = new Client()) {
      long id = c.zk.getSessionId();
      Events data = new Events();
      c.create("/move", "", CreateMode.PERSISTENT);
      c.create("/move/e", "", CreateMode.EPHEMERAL);
      c.zk.getData("/move", data, null);
      String server = server(c.zk);
      c.events.queue.clear();
      ask("{\"kill\": \"" + server + "\"}");
      c.events.await(KeeperState.Disconnected);
      c.events.await(KeeperState.SyncConnected);
      equal(c.zk.getSessionId(), id);
      equal(server(c.zk).equals(server), false);
      equal(c.zk.exists("/move/e", false).getEphemeralOwner(), id);
      ask("{\"heal\": true}");
      try (Client third = new Client()) {
        sync(third.zk);
        third.zk.setData("/move", bytes("1"), -1);
        data.expect(EventType.NodeDataChanged, "/move");
        c.close();
        sync(third.zk);
        equal(third.zk.exists("/move/e", false), null);
      }
    }
  }

  static void containers() throws Exception {
    CreateMode container = mode("CONTAINER");
    try (Client c = new Client()) {
      Events gone = new Events();
      equal(c.create("/container", "", container), "/container");
      c.create("/container/x", "", CreateMode.PERSISTENT);
      c.zk.exists("/container", gone);
      c.zk.delete("/container/x", -1);
      gone.expect(EventType.NodeDeleted, "/container");
    }
  }

  static void ttl() throws Exception {
    CreateMode ttl = mode("PERSISTENT_WITH_TTL");
    Method create = ZooKeeper.class.getMethod(
        "create", String.class, byte[].class, List.class, CreateMode.class, Stat.class, long.class);
    try (Client c = new Client()) {
      Events gone = new Events();
      equal(create.invoke(c.zk, "/ttl", bytes("x"), OPEN, ttl, new Stat(), 500L), "/ttl");
      c.zk.exists("/ttl", gone);
      gone.expect(EventType.NodeDeleted, "/ttl");
    }
  }

  static void persistentWatches() throws Exception {
    Class<?> kind = Class.forName("org.apache.zookeeper.AddWatchMode");
    Method add = ZooKeeper.class.getMethod("addWatch", String.class, Watcher.class, kind);
    try (Client c = new Client(); Client other = new Client()) {
      Events tree = new Events();
      add.invoke(c.zk, "/tree", tree, kind.getField("PERSISTENT_RECURSIVE").get(null));
      for (int i = 0; i < 2; i++) {
        other.create("/tree", "", CreateMode.PERSISTENT);
        other.create("/tree/x", "", CreateMode.PERSISTENT);
        other.zk.setData("/tree/x", bytes("1"), -1);
        other.zk.delete("/tree/x", -1);
        other.zk.delete("/tree", -1);
        tree.expect(EventType.NodeCreated, "/tree");
        tree.expect(EventType.NodeCreated, "/tree/x");
        tree.expect(EventType.NodeDataChanged, "/tree/x");
        tree.expect(EventType.NodeDeleted, "/tree/x");
        tree.expect(EventType.NodeDeleted, "/tree");
      }
    }
  }

  public static void main(String[] args) throws Exception {
    hosts = args[0];
    Map<String, Body> checks = new LinkedHashMap<>();
    checks.put("connects", Checks::connects);
    checks.put("data", Checks::data);
    checks.put("ephemeral and sequential", Checks::ephemeralAndSequential);
    checks.put("children", Checks::children);
    checks.put("multi", Checks::multi);
    checks.put("watches", Checks::watches);
    checks.put("ACLs", Checks::acls);
    checks.put("a session ends", Checks::sessionEnds);
    checks.put("a session moves", Checks::sessionMoves);
    checks.put("containers", Checks::containers);
    checks.put("TTL", Checks::ttl);
    checks.put("persistent watches", Checks::persistentWatches);
    run(checks);
  }

  /** Runs checks, prints what came of them, and ends the program. */
  static void run(Map<String, Body> checks) {
    for (Map.Entry<String, Body> check : checks.entrySet()) {
      String name = "{\"check\": " + quote(check.getKey());
      try {
        check.getValue().run();
        say(name + ", \"ok\": true}");
      } catch (ClassNotFoundException | NoSuchFieldException | NoSuchMethodException e) {
        say(name + ", \"absent\": true, \"detail\": " + quote(e.toString()) + "}");
      } catch (Throwable e) {
        StringWriter trace = new StringWriter();
        e.printStackTrace(new PrintWriter(trace));
        say(name + ", \"detail\": " + quote(trace.toString()) + "}");
      }
    }
    say("{\"end\": " + checks.size() + "}");
    System.exit(0); // clients that a failed check has left behind
  }
}
