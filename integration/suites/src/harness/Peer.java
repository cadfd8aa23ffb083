package harness;

import java.io.File;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.Properties;
import org.apache.zookeeper.client.FourLetterWordMain;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;
import org.apache.zookeeper.server.quorum.*;
import org.apache.zookeeper.server.quorum.flexible.*;
import org.mockito.Mockito;

/** What tests take for a server of an ensemble: it asks the process, by srvr and conf. */
public class Peer extends QuorumPeer {
    public volatile Server server;
    private final long id;
    private final int port;
    private final File dir;
    private QuorumVerifier last; // that the process has said; tests ask for addresses of servers that are down

    public Peer(Server server, long id, int port, File dir) throws IOException {
        this.server = server;
        this.id = id;
        this.port = port;
        this.dir = dir;
    }

    /** refresh sets the fields that tests look at. */
    public Peer refresh() {
        ServerState s = getPeerState();
        leader = s == ServerState.LEADING ? Mockito.mock(Leader.class) : null;
        follower = s == ServerState.FOLLOWING ? Mockito.mock(Follower.class) : null;
        observer = s == ServerState.OBSERVING ? Mockito.mock(Observer.class) : null;
        return this;
    }

    @Override public ServerState getPeerState() {
        String text = ask("srvr");
        if (text.contains("Mode: leader")) return ServerState.LEADING;
        if (text.contains("Mode: follower")) return ServerState.FOLLOWING;
        return text.contains("Mode: observer") ? ServerState.OBSERVING : ServerState.LOOKING;
    }

    @Override public synchronized QuorumVerifier getQuorumVerifier() {
        Properties members = new Properties();
        for (String line : ask("conf").split("\n")) {
            if (!line.matches("(server|group|weight)\\..*=.*|version=.*")) continue;
            members.setProperty(line.substring(0, line.indexOf('=')), line.substring(line.indexOf('=') + 1).trim());
        }
        if (members.isEmpty() && last != null) return last;
        boolean groups = members.stringPropertyNames().stream().anyMatch(n -> n.startsWith("group."));
        try {
            return last = groups ? new QuorumHierarchical(members) : new QuorumMaj(members);
        } catch (Exception e) {
            throw new IllegalStateException("conf of server " + id + ": " + members, e);
        }
    }

    @Override public Map<Long, QuorumServer> getView() { return getQuorumVerifier().getAllMembers(); }
    @Override public MultipleAddresses getQuorumAddress() { return own().addr; }
    @Override public MultipleAddresses getElectionAddress() { return own().electionAddr; }
    @Override public InetSocketAddress getClientAddress() { return own().clientAddr; }
    @Override public int getClientPort() { return port; }
    @Override public long getMyId() { return id; }
    @Override public FileTxnSnapLog getTxnFactory() {
        try {
            return new FileTxnSnapLog(dir, dir);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
    @Override public void shutdown() { if (server != null) server.stop(); }
    @Override public synchronized void start() { throw new UnsupportedOperationException("a process"); }

    private QuorumServer own() { return getView().get(id); }

    private String ask(String word) {
        try {
            return FourLetterWordMain.send4LetterWord("127.0.0.1", port, word);
        } catch (Exception e) { // it is down, or not serving
            return "";
        }
    }
}
