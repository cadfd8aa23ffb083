import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/** ZooKeeper's Java client under load: see the type foreign in foreign_test.go. The argument is the connect string. */
public class Load {
  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    try (ZooKeeper client = new ZooKeeper(args[0], 10000, event -> {})) {
      for (String path = in.readLine(); path != null; path = in.readLine()) {
        String said = "written";
        try {
          client.create(path, path.getBytes(UTF_8), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        } catch (KeeperException.ConnectionLossException lost) {
          said = "unknown";
        } catch (KeeperException error) {
          said = "error " + error;
        }
        System.out.println(said);
      }
    }
  }
}
