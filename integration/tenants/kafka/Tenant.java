import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;

/** Kafka: topics come and go, users get rights and lose them, settings change, records are kept, controllers die. */
final class Tenant {
    private static final String RECORDS = "records";
    private static final int PARTITIONS = 6;
    private final Brokers brokers;
    private final Admin admin;
    private final Map<Integer, RecordMetadata> acknowledged = new ConcurrentHashMap<>();
    private int failOvers;

    private Tenant(String servers) throws Exception {
        brokers = new Brokers(servers);
        admin = Admin.create(Map.of("bootstrap.servers", brokers.addresses("INNER")));
    }

    public static void main(String[] args) throws Exception {
        try {
            new Tenant(args[args.length - 1]).run();
        } catch (Exception e) {
            e.printStackTrace();
            Report.wrong("the program ended with " + e);
        }
        Report.end();
    }

    private void run() throws Exception {
        done(admin.createTopics(List.of(new NewTopic(RECORDS, PARTITIONS, (short) Brokers.COUNT))).all());
        int before = brokers.elections();
        Report.ready();
        List<Thread> all = new ArrayList<>();
        try (KafkaProducer<Integer, Integer> producer = producer()) {
            all.add(Rounds.start("records", 100, n -> record(producer, n)));
            all.add(Rounds.start("topics", 500, this::topic));
            all.add(Rounds.start("users", 500, this::user));
            all.add(Rounds.start("settings", 500, this::setting));
            all.add(Rounds.start("controllers", 15_000, this::controller));
            for (Thread t : all) {
                t.join();
            }
        }
        brokers.checkSessions();
        int elected = brokers.elections() - before;
        Rounds.check(elected == failOvers, elected + " controllers were elected, want " + failOvers);
        Rounds.check(brokers.secret(), "passwords of users are readable without the brokers' certificate");
        Rounds.check(names().equals(Set.of(RECORDS)), "topics remain: " + names());
        checkRecords();
        Report.saw("no session expired, " + elected + " controllers elected, one for each that was stopped or killed");
        Report.saw("all acknowledged records were read back, each once, at the offset that was acknowledged");
    }

    private void record(KafkaProducer<Integer, Integer> producer, int n) {
        RecordMetadata m = Report.work("record acknowledged by all replicas in sync",
                () -> producer.send(new ProducerRecord<>(RECORDS, n, n)).get());
        if (m != null) {
            acknowledged.put(n, m);
        }
    }

    private void topic(int n) throws Exception {
        String name = "topic-" + n;
        Rounds.work("topic created", () -> names().contains(name)
                || done(admin.createTopics(List.of(new NewTopic(name, 3, (short) 2))).all()));
        Rounds.until("brokers know " + name, () -> replicas(name).size() == 2);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
        Rounds.work("topic's setting changed", () -> set(topic, "retention.ms", "" + (100_000 + n)));
        Rounds.until("the setting of " + name + " is there",
                () -> value(topic, "retention.ms").equals("" + (100_000 + n)));
        TopicPartition first = new TopicPartition(name, 0);
        List<Integer> now = replicas(name);
        List<Integer> others = List.of(now.get(1), 3 - now.get(0) - now.get(1)); // of 0, 1 and 2
        Report.work("partition moved", () -> {
            Rounds.until("partition 0 of " + name + " begins to move to " + others, // refused while one is away
                    () -> done(admin.alterPartitionReassignments(
                            Map.of(first, Optional.of(new NewPartitionReassignment(others)))).all()));
            Rounds.until("partition 0 of " + name + " is at " + others, () -> replicas(name).equals(others));
            return true;
        });
        Rounds.work("topic deleted", () -> !names().contains(name) || done(admin.deleteTopics(List.of(name)).all()));
        Rounds.until(name + " is gone", () -> !names().contains(name));
    }

    /** A user gets a password and a right, reads, and loses both: all brokers hear of it by their watches. */
    private void user(int n) throws Exception {
        String name = "user-" + n;
        AclBinding right = new AclBinding(new ResourcePattern(ResourceType.TOPIC, RECORDS, PatternType.LITERAL),
                new AccessControlEntry("User:" + name, "*", AclOperation.READ, AclPermissionType.ALLOW));
        UserScramCredentialUpsertion password = new UserScramCredentialUpsertion(name,
                new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret");
        Rounds.work("user created", () -> done(admin.alterUserScramCredentials(List.of(password)).all()));
        Rounds.work("ACL created", () -> done(admin.createAcls(List.of(right)).all()));
        Rounds.until(name + " may read", () -> mayRead(name));
        Rounds.work("ACL deleted", () -> admin.deleteAcls(List.of(right.toFilter())).all().get());
        Rounds.until(name + " may read no more", () -> !mayRead(name));
        Report.work("user deleted", () -> done(admin.alterUserScramCredentials(
                List.of(new UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_256))).all()));
    }

    /** Reads as a user from every broker; each decides by itself. */
    private boolean mayRead(String user) throws Exception {
        Map<String, Object> c = consumer(brokers.addresses("USERS"));
        c.put("security.protocol", "SASL_PLAINTEXT");
        c.put("sasl.mechanism", "SCRAM-SHA-256");
        c.put("sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"" + user
                + "\" password=\"secret\";");
        try (KafkaConsumer<Integer, Integer> reader = new KafkaConsumer<>(c)) {
            return !read(reader, 1).isEmpty();
        } catch (TopicAuthorizationException e) {
            return false;
        }
    }

    /** A setting of all brokers: each has to show it. */
    private void setting(int n) throws Exception {
        String key = "message.max.bytes";
        String value = "" + (1_048_588 + n);
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        Rounds.work("brokers' setting changed", () -> set(all, key, value));
        for (int id = 0; id < Brokers.COUNT; id++) {
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "" + id);
            Rounds.until("broker " + id + " has " + key + "=" + value, () -> value(broker, key).equals(value));
        }
    }

    private void controller(int n) throws Exception {
        boolean atOnce = n % 2 == 0;
        Integer ended = Report.work("controller " + (atOnce ? "killed" : "stopped") + ", and another elected",
                () -> brokers.failOver(atOnce));
        failOvers++;
        brokers.start(ended);
        Rounds.until("all replicas are in sync",
                () -> partitions().stream().allMatch(p -> p.isr().size() == Brokers.COUNT));
        Report.work("preferred leaders elected", () -> {
            Rounds.until("preferred leaders are elected", () -> {
                admin.electLeaders(ElectionType.PREFERRED, null).partitions().get();
                return partitions().stream().allMatch(p -> p.leader().id() == p.replicas().get(0).id());
            });
            return true;
        });
    }

    /** Compares what is there with what was acknowledged. */
    private void checkRecords() throws Exception {
        Map<Integer, ConsumerRecord<Integer, Integer>> found = new HashMap<>();
        try (KafkaConsumer<Integer, Integer> reader = new KafkaConsumer<>(consumer(brokers.addresses("INNER")))) {
            for (ConsumerRecord<Integer, Integer> r : read(reader, Long.MAX_VALUE)) {
                Rounds.check(found.put(r.key(), r) == null, "record " + r.key() + " is there twice");
            }
        }
        acknowledged.forEach((n, m) -> {
            ConsumerRecord<Integer, Integer> r = found.get(n);
            Rounds.check(r != null && r.partition() == m.partition() && r.offset() == m.offset(),
                    "record " + n + ", acknowledged as " + m + ", is lost or elsewhere: " + r);
        });
    }

    /** Reads each partition from its beginning, at most so many records of each. */
    private List<ConsumerRecord<Integer, Integer>> read(KafkaConsumer<Integer, Integer> reader, long most) {
        List<ConsumerRecord<Integer, Integer>> all = new ArrayList<>();
        List<TopicPartition> partitions = new ArrayList<>();
        for (int p = 0; p < PARTITIONS; p++) {
            partitions.add(new TopicPartition(RECORDS, p));
        }
        for (TopicPartition p : partitions) {
            reader.assign(List.of(p));
            reader.seekToBeginning(List.of(p));
            long end = reader.endOffsets(List.of(p)).get(p);
            long enough = Math.min(end, most);
            while (reader.position(p) < enough) {
                all.addAll(reader.poll(Duration.ofSeconds(1)).records(p));
            }
        }
        return all;
    }

    private static Map<String, Object> consumer(String addresses) {
        return new HashMap<>(Map.of("bootstrap.servers", addresses, "key.deserializer", IntegerDeserializer.class,
                "value.deserializer", IntegerDeserializer.class));
    }

    private KafkaProducer<Integer, Integer> producer() throws Exception {
        return new KafkaProducer<>(Map.of("bootstrap.servers", brokers.addresses("INNER"), "acks", "all",
                "key.serializer", IntegerSerializer.class, "value.serializer", IntegerSerializer.class));
    }

    private Set<String> names() throws Exception {
        return admin.listTopics().names().get();
    }

    private TopicDescription describe(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private List<TopicPartitionInfo> partitions() throws Exception {
        return describe(RECORDS).partitions();
    }

    /** The brokers that have partition 0 of a topic. */
    private List<Integer> replicas(String topic) throws Exception {
        return describe(topic).partitions().get(0).replicas().stream().map(Node::id).toList();
    }

    private boolean set(ConfigResource of, String key, String value) throws Exception {
        return done(admin.incrementalAlterConfigs(Map.of(of,
                List.of(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)))).all());
    }

    private String value(ConfigResource of, String key) throws Exception {
        return admin.describeConfigs(List.of(of)).all().get().get(of).get(key).value();
    }

    private static boolean done(KafkaFuture<Void> f) throws ExecutionException, InterruptedException {
        f.get();
        return true;
    }
}
