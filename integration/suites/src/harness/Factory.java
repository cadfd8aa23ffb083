package harness;

import java.io.*;
import java.net.InetSocketAddress;
import java.util.*;
import org.apache.zookeeper.server.*;

/** What ClientBase and its kin take for a server's connections: a process. */
public class Factory extends ServerCnxnFactory {
    private InetSocketAddress address;
    private int perHost;
    private Server server;

    @Override public void configure(InetSocketAddress a, int max, int backlog, boolean secure) {
        address = a; perHost = max; this.secure = secure;
    }
    @Override public void startup(ZooKeeperServer z, boolean start) throws IOException {
        setZooKeeperServer(z);
        Map<String, String> c = new HashMap<>();
        File dir = new File(z.getTxnLogFactory().getSnapDir().getParentFile(), "process");
        c.put("dataDir", dir.getPath());
        c.put("tickTime", "" + z.getTickTime());
        c.put("minSessionTimeout", "" + z.getMinSessionTimeout());
        c.put("maxSessionTimeout", "" + z.getMaxSessionTimeout());
        if (perHost > 0) c.put("maxClientCnxns", "" + perHost);
        String port = secure ? "secureClientPort" : "clientPort";
        c.put(port, "" + address.getPort());
        if (!address.getAddress().isAnyLocalAddress()) c.put(port + "Address", address.getAddress().getHostAddress());
        server = Server.start(dir, c);
    }
    @Override public void shutdown() { if (server != null) server.stop(); server = null; }
    @Override public void start() { throw new UnsupportedOperationException("startup starts a process"); }
    @Override public void join() { }
    @Override public int getLocalPort() { return address.getPort(); }
    @Override public InetSocketAddress getLocalAddress() { return address; }
    @Override public Iterable<ServerCnxn> getConnections() { return List.of(); }
    @Override public void reconfigure(InetSocketAddress a) { throw new UnsupportedOperationException(); }
    @Override public int getMaxClientCnxnsPerHost() { return perHost; }
    @Override public void setMaxClientCnxnsPerHost(int max) { perHost = max; }
    @Override public int getSocketListenBacklog() { return -1; }
    @Override public void closeAll(ServerCnxn.DisconnectReason r) { }
    @Override public void resetAllConnectionStats() { }
    @Override public Iterable<Map<String, Object>> getAllConnectionInfo(boolean brief) { return List.of(); }
}
