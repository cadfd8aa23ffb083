import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.helix.HelixManager;
import org.apache.helix.HelixManagerFactory;
import org.apache.helix.InstanceType;
import org.apache.helix.NotificationContext;
import org.apache.helix.controller.HelixControllerMain;
import org.apache.helix.manager.zk.ZKHelixAdmin;
import org.apache.helix.model.ExternalView;
import org.apache.helix.model.IdealState.RebalanceMode;
import org.apache.helix.model.InstanceConfig;
import org.apache.helix.model.MasterSlaveSMD;
import org.apache.helix.model.Message;
import org.apache.helix.participant.statemachine.StateModel;
import org.apache.helix.participant.statemachine.StateModelFactory;

/**
 * A Helix cluster of five participants and two controllers, which gives each of 20 partitions a master and two slaves.
 * Participants stop and start, and so does the controller that leads; each time each partition gets its master again.
 */
public final class Tenant {
    private static final String CLUSTER = "helix";
    private static final String RESOURCE = "database";
    private static final int PARTITIONS = 20;
    private static final int PARTICIPANTS = 5;
    private static final long PATIENCE = TimeUnit.MINUTES.toNanos(2);

    /** The participant that is a partition's master by its own transitions. */
    private static final Map<String, Factory> MASTERS = new ConcurrentHashMap<>();
    private static final AtomicInteger TRANSITIONS = new AtomicInteger();
    /** The session of each manager that is connected, as it was when it connected. */
    private static final Map<HelixManager, String> SESSIONS = new ConcurrentHashMap<>();

    private static final HelixManager[] participants = new HelixManager[PARTICIPANTS];
    private static final Factory[] factories = new Factory[PARTICIPANTS];
    private static final HelixManager[] controllers = new HelixManager[2];
    private static String servers;
    private static ZKHelixAdmin admin;
    private static int expired;

    public static void main(String[] args) throws Exception {
        servers = args[0];
        admin = new ZKHelixAdmin.Builder().setZkAddress(servers).build();
        admin.addCluster(CLUSTER);
        admin.addStateModelDef(CLUSTER, MasterSlaveSMD.name, MasterSlaveSMD.build());
        for (int i = 0; i < PARTICIPANTS; i++) {
            admin.addInstance(CLUSTER, new InstanceConfig(name(i)));
            startParticipant(i);
        }
        for (int i = 0; i < controllers.length; i++) {
            startController(i);
        }
        addResource(RESOURCE);
        awaitMasters(RESOURCE);
        Report.ready();
        int rounds = work();
        for (HelixManager m : participants) {
            checkSession(m);
        }
        for (HelixManager m : controllers) {
            checkSession(m);
        }
        awaitMasters(RESOURCE);
        for (Map.Entry<String, Map<String, String>> p : admin.getResourceExternalView(CLUSTER, RESOURCE).getRecord()
            .getMapFields().entrySet()) {
            String master = MASTERS.get(p.getKey()).participant;
            if (!"MASTER".equals(p.getValue().get(master))) {
                Report.wrong("the external view has " + p.getValue() + " for " + p.getKey() + ", whose master is "
                    + master);
            }
        }
        Report.saw(TRANSITIONS + " transitions of state in " + rounds + " rounds, never two masters of a partition");
        Report.saw(expired + " sessions of Helix expired or were replaced");
        Report.end();
    }

    /** Stops and starts a participant or the leading controller, or adds and drops a resource; returns how often. */
    private static int work() throws Exception {
        int rounds = 0;
        for (; Report.working(); rounds++) {
            int i = rounds % PARTICIPANTS;
            Report.work("participant stopped, masters moved", () -> {
                factories[i].stopped = true; // what it was ends with its session
                stop(participants[i]);
                return awaitMasters(RESOURCE);
            });
            Report.work("participant started, masters balanced", () -> {
                startParticipant(i);
                return awaitMasters(RESOURCE);
            });
            if (rounds % 3 == 1) {
                Report.work("leading controller stopped, the other took over", () -> {
                    int leader = awaitLeader();
                    stop(controllers[leader]);
                    if (awaitLeader() == leader) {
                        throw new IllegalStateException("the controller that was stopped leads");
                    }
                    startController(leader);
                    return awaitMasters(RESOURCE);
                });
            }
            String other = "other-" + rounds;
            Report.work("resource added and dropped", () -> {
                addResource(other);
                awaitMasters(other);
                admin.dropResource(CLUSTER, other);
                return await("the view of " + other + " is gone",
                    () -> admin.getResourceExternalView(CLUSTER, other) == null);
            });
        }
        return rounds;
    }

    private static void addResource(String resource) {
        admin.addResource(CLUSTER, resource, PARTITIONS, MasterSlaveSMD.name, RebalanceMode.FULL_AUTO.name());
        admin.rebalance(CLUSTER, resource, 3);
    }

    private static String name(int i) {
        return "localhost_" + (12000 + i);
    }

    private static void startParticipant(int i) throws Exception {
        HelixManager m = HelixManagerFactory.getZKHelixManager(CLUSTER, name(i), InstanceType.PARTICIPANT, servers);
        factories[i] = new Factory(name(i));
        m.getStateMachineEngine().registerStateModelFactory(MasterSlaveSMD.name, factories[i]);
        m.connect();
        SESSIONS.put(m, m.getSessionId());
        participants[i] = m;
    }

    private static void startController(int i) {
        controllers[i] = HelixControllerMain.startHelixController(servers, CLUSTER, "controller-" + i,
            HelixControllerMain.STANDALONE);
        SESSIONS.put(controllers[i], controllers[i].getSessionId());
    }

    private static void stop(HelixManager m) {
        checkSession(m);
        m.disconnect();
    }

    private static void checkSession(HelixManager m) {
        String first = SESSIONS.remove(m);
        if (!first.equals(m.getSessionId())) {
            Report.wrong(m.getInstanceName() + " has session " + m.getSessionId() + ", and had " + first);
            expired++;
        }
    }

    /** Waits until a connected controller leads, and returns it; both at once are wrong. */
    private static int awaitLeader() throws Exception {
        int[] leader = {-1};
        await("a controller leads", () -> {
            List<Integer> leaders = new ArrayList<>();
            for (int i = 0; i < controllers.length; i++) {
                if (controllers[i].isConnected() && controllers[i].isLeader()) {
                    leaders.add(i);
                }
            }
            if (leaders.size() == 1) {
                leader[0] = leaders.get(0);
            }
            return leaders.size() == 1;
        });
        return leader[0];
    }

    /** Waits until each partition has one master and two slaves, all of which live. */
    private static boolean awaitMasters(String resource) throws Exception {
        return await("each partition of " + resource + " has a master and two slaves", () -> {
            Set<String> live = new HashSet<>();
            for (HelixManager m : participants) {
                if (m.isConnected()) {
                    live.add(m.getInstanceName());
                }
            }
            ExternalView view = admin.getResourceExternalView(CLUSTER, resource);
            if (view == null || view.getPartitionSet().size() != PARTITIONS) {
                return false;
            }
            for (String p : view.getPartitionSet()) {
                Map<String, String> states = view.getStateMap(p);
                List<String> sorted = states.values().stream().sorted().toList();
                if (!sorted.equals(List.of("MASTER", "SLAVE", "SLAVE")) || !live.containsAll(states.keySet())) {
                    return false;
                }
            }
            return true;
        });
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static boolean await(String what, Condition condition) throws Exception {
        for (long end = System.nanoTime() + PATIENCE; !condition.holds(); Thread.sleep(100)) {
            if (System.nanoTime() > end) {
                Report.wrong("not within two minutes: " + what);
                throw new IllegalStateException("not within two minutes: " + what);
            }
        }
        return true;
    }

    private static final class Factory extends StateModelFactory<StateModel> {
        final String participant;
        volatile boolean stopped;

        Factory(String participant) {
            this.participant = participant;
        }

        @Override
        public StateModel createNewStateModel(String resource, String partition) {
            return new Model(this);
        }
    }

    /** The state of a partition at a participant. Its methods are named as Helix calls them. */
    public static final class Model extends StateModel {
        private final Factory at;

        Model(Factory at) {
            this.at = at;
        }

        public void onBecomeSlaveFromOffline(Message m, NotificationContext c) {
            TRANSITIONS.incrementAndGet();
        }

        public void onBecomeMasterFromSlave(Message m, NotificationContext c) {
            TRANSITIONS.incrementAndGet();
            Factory other = MASTERS.put(m.getPartitionName(), at);
            if (other != null && !other.stopped) {
                Report.wrong(at.participant + " became the master of " + m.getPartitionName() + " while "
                    + other.participant + " was");
            }
        }

        public void onBecomeSlaveFromMaster(Message m, NotificationContext c) {
            TRANSITIONS.incrementAndGet();
            MASTERS.remove(m.getPartitionName(), at);
        }

        public void onBecomeOfflineFromSlave(Message m, NotificationContext c) {
            TRANSITIONS.incrementAndGet();
        }

        public void onBecomeDroppedFromOffline(Message m, NotificationContext c) {
            TRANSITIONS.incrementAndGet();
        }
    }
}
