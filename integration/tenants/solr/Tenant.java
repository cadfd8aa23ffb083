import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.apache.solr.client.solrj.SolrQuery;
import org.apache.solr.client.solrj.impl.CloudHttp2SolrClient;
import org.apache.solr.client.solrj.impl.CloudSolrClient;
import org.apache.solr.client.solrj.impl.Http2SolrClient;
import org.apache.solr.client.solrj.request.CollectionAdminRequest;
import org.apache.solr.client.solrj.request.ConfigSetAdminRequest;
import org.apache.solr.cloud.OverseerTaskProcessor;
import org.apache.solr.common.SolrDocument;
import org.apache.solr.common.SolrInputDocument;
import org.apache.solr.common.cloud.DocCollection;
import org.apache.solr.common.cloud.Replica;
import org.apache.solr.common.cloud.Slice;
import org.apache.solr.common.util.ContentStreamBase;

/**
 * Three nodes of Solr: documents are indexed and counted, collections created, split, aliased and deleted with
 * configurations of their own, and the overseer's node, or another, is stopped and started.
 */
public final class Tenant {
    private static final List<Node> NODES = new ArrayList<>();
    private static final Set<String> ACKNOWLEDGED = ConcurrentHashMap.newKeySet();
    private static final AtomicInteger ELECTIONS = new AtomicInteger();
    /** Held while a node is down, or a collection is created or changed, which waits for all nodes. */
    private static final ReentrantLock CHANGE = new ReentrantLock(true);

    private static CloudSolrClient client;

    public static void main(String[] args) throws Exception {
        System.setProperty("createZkChroot", "true");
        for (int n = 0; n < 3; n++) {
            NODES.add(new Node(n, args[0] + "/solr"));
            NODES.get(n).start();
        }
        client = new CloudHttp2SolrClient.Builder(List.of(args[0].split(",")), Optional.of("/solr"))
            .withZkClientTimeout(Node.SESSION, TimeUnit.MILLISECONDS).build();
        client.connect();
        upload("lasting");
        CollectionAdminRequest.createCollection("facts", "lasting", 2, 2).process(client);
        Rounds.until("facts are active", () -> active("facts"));
        for (Node node : NODES) {
            node.keepSession(client);
        }
        Report.ready();
        List<Thread> threads = List.of(Rounds.start("indexing", 200, Tenant::index),
            Rounds.start("collections", 2000, n -> alone(() -> collection(n))),
            Rounds.start("restarts", 20_000, n -> alone(() -> restart(n % 2 == 0))));
        for (Thread t : threads) {
            t.join();
        }
        verify();
        Report.end();
    }

    private interface Step {
        void run() throws Exception;
    }

    private static void alone(Step step) throws Exception {
        CHANGE.lock();
        try {
            step.run();
        } finally {
            CHANGE.unlock();
        }
    }

    /** Uploads a configuration, with a file of 180 KB beside what is needed. */
    private static Object upload(String name) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
            for (Map.Entry<String, String> file : Map.of(
                "solrconfig.xml", "<config><luceneMatchVersion>9.12</luceneMatchVersion>"
                    + "<updateHandler class='solr.DirectUpdateHandler2'><updateLog/></updateHandler>"
                    + "<requestHandler name='/select' class='solr.SearchHandler'/></config>",
                "schema.xml", "<schema name='facts' version='1.6'><uniqueKey>id</uniqueKey>"
                    + "<fieldType name='string' class='solr.StrField'/>"
                    + "<fieldType name='long' class='solr.LongPointField' docValues='true'/>"
                    + "<field name='id' type='string' required='true' stored='true'/>"
                    + "<field name='_version_' type='long'/></schema>",
                "synonyms.txt", "word, another word\n".repeat(10_000)).entrySet()) {
                zip.putNextEntry(new ZipEntry(file.getKey()));
                zip.write(file.getValue().getBytes(StandardCharsets.UTF_8));
            }
        }
        return new ConfigSetAdminRequest.Upload().setConfigSetName(name).setUploadStream(
            new ContentStreamBase.ByteArrayStream(bytes.toByteArray(), name, "application/zip")).process(client);
    }

    /** Indexes five documents, again until they are acknowledged. */
    private static void index(int n) throws Exception {
        List<SolrInputDocument> documents = documents(5 * n, 5);
        Rounds.work("batch of documents indexed", () -> client.add("facts", documents));
        documents.forEach(d -> ACKNOWLEDGED.add((String) d.getFieldValue("id")));
    }

    private static List<SolrInputDocument> documents(int from, int count) {
        List<SolrInputDocument> documents = new ArrayList<>();
        for (int i = from; i < from + count; i++) {
            documents.add(new SolrInputDocument("id", "fact" + i));
        }
        return documents;
    }

    /** Creates, changes and deletes a collection. Solr may refuse a step, but what it did must last. */
    private static void collection(int n) throws Exception {
        String name = "passing" + n;
        String alias = "alias" + n % 2;
        Rounds.work("configuration uploaded", () -> upload(name));
        if (Report.work("collection created",
                () -> CollectionAdminRequest.createCollection(name, name, 1, 2).process(client)) != null) {
            Rounds.until(name + " is active", () -> active(name));
            Rounds.until(name + " takes documents", () -> client.add(name, documents(0, 50)) != null);
            if (Report.work("shard split",
                    () -> CollectionAdminRequest.splitShard(name).setShardName("shard1").process(client)) != null) {
                Rounds.until(name + " is split", () -> slices(name).size() == 2 && active(name));
            }
            Rounds.work("alias created", () -> CollectionAdminRequest.createAlias(alias, name).process(client));
            long[] found = new long[1];
            Rounds.until(name + " is read through " + alias, () -> {
                client.commit(name);
                found[0] = client.query(alias, new SolrQuery("*:*")).getResults().getNumFound();
                return true;
            });
            Rounds.check(found[0] == 50, found[0] + " of 50 documents are in " + name + " after its split");
            Rounds.work("alias deleted", () -> CollectionAdminRequest.deleteAlias(alias).process(client));
        }
        Rounds.until(name + " is deleted", () -> slices(name).isEmpty() || Report.work("collection deleted",
            () -> CollectionAdminRequest.deleteCollection(name).process(client)) != null);
        Report.work("configuration deleted",
            () -> new ConfigSetAdminRequest.Delete().setConfigSetName(name).process(client));
    }

    /** Stops and starts the overseer's node, or another one. */
    private static void restart(boolean overseer) throws Exception {
        Rounds.until("an overseer", () -> overseer() != null);
        String leader = overseer();
        Node node = NODES.stream().filter(r -> r.name().equals(leader) == overseer).findFirst().orElseThrow();
        node.checkSession(client);
        node.stop();
        try {
            if (overseer) {
                Rounds.work("overseer stopped, and another elected", () -> {
                    Rounds.until("another overseer", () -> overseer() != null && !leader.equals(overseer()));
                    return ELECTIONS.incrementAndGet();
                });
            }
        } finally {
            Rounds.check(Report.work("node started, its replicas active", () -> {
                node.start();
                node.keepSession(client);
                Rounds.until("facts are active", () -> active("facts"));
                return true;
            }) != null, "node " + node.name() + " or its replicas did not come back");
        }
    }

    private static String overseer() throws Exception {
        return OverseerTaskProcessor.getLeaderNode(Node.zooKeeper(client));
    }

    private static List<Slice> slices(String collection) {
        DocCollection state = client.getClusterState().getCollectionOrNull(collection);
        return state == null ? List.of() : List.copyOf(state.getActiveSlices());
    }

    /** Whether all replicas of a collection are active on live nodes, and have a leader. */
    private static boolean active(String collection) {
        Set<String> live = client.getClusterState().getLiveNodes();
        return !slices(collection).isEmpty() && slices(collection).stream().allMatch(s -> s.getLeader() != null
            && s.getReplicas().stream().allMatch(r -> r.getState() == Replica.State.ACTIVE
                && live.contains(r.getNodeName())));
    }

    /** Compares what each replica has with what was acknowledged. */
    private static void verify() throws Exception {
        Rounds.until("facts are active", () -> active("facts"));
        Rounds.until("facts are committed", () -> client.commit("facts") != null);
        Map<String, Set<String>> copies = new TreeMap<>(); // the first replicas of all shards, and the second
        for (Slice slice : slices("facts")) {
            int copy = 0;
            for (Replica replica : slice.getReplicas()) {
                Set<String> ids = copies.computeIfAbsent("copy " + ++copy, c -> new HashSet<>());
                Rounds.until(replica.getCoreName() + " is read", () -> ids.addAll(read(replica)));
            }
        }
        Rounds.check(copies.size() == 2, "facts have " + copies.size() + " copies, not 2");
        copies.forEach((name, ids) -> {
            List<String> lost = ACKNOWLEDGED.stream().filter(id -> !ids.contains(id)).sorted().toList();
            Rounds.check(lost.isEmpty(), name + " lacks " + lost.size() + " of " + ACKNOWLEDGED.size()
                + " documents: " + lost);
        });
        for (Node node : NODES) {
            node.checkSession(client);
        }
        Report.saw("all " + ACKNOWLEDGED.size() + " acknowledged documents in both copies of each shard");
        Report.saw("no session expired, and another overseer was elected for each that was stopped: " + ELECTIONS);
    }

    private static List<String> read(Replica replica) throws Exception {
        try (Http2SolrClient one = new Http2SolrClient.Builder(replica.getBaseUrl()).build()) {
            SolrQuery all = new SolrQuery("*:*").setRows(1_000_000).setFields("id");
            all.set("distrib", false);
            List<String> ids = new ArrayList<>();
            for (SolrDocument d : one.query(replica.getCoreName(), all).getResults()) {
                ids.add((String) d.getFieldValue("id"));
            }
            return ids;
        }
    }
}
