import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.client.program.rest.RestClusterClient;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.util.Collector;

/**
 * Flink with two JobManagers, one of which leads, and a TaskManager, each a process of its own. A job counts numbers
 * and writes each of them exactly once, by checkpoints, which the leader finds in ZooKeeper; leaders are killed.
 */
public final class Tenant {
    private static final int KEYS = 10;
    private static final Duration PATIENCE = Duration.ofMinutes(2); // for a checkpoint
    private static final Path OUT = Path.of("out").toAbsolutePath();
    private static final String[] SETTINGS = {
        "high-availability.type: zookeeper",
        "high-availability.zookeeper.path.root: /flink",
        // Flink's own is a minute, for which a killed leader would be waited for.
        "high-availability.zookeeper.client.session-timeout: 10 s",
        "jobmanager.bind-host: localhost",
        "taskmanager.host: localhost",
        "taskmanager.numberOfTaskSlots: 1",
        "taskmanager.cpu.cores: 1.0",
        "taskmanager.memory.framework.heap.size: 128 mb",
        "taskmanager.memory.framework.off-heap.size: 128 mb",
        "taskmanager.memory.jvm-metaspace.size: 96 mb",
        "taskmanager.memory.jvm-overhead.min: 64 mb",
        "taskmanager.memory.jvm-overhead.max: 64 mb",
        "taskmanager.memory.task.heap.size: 64 mb",
        "taskmanager.memory.task.off-heap.size: 0 mb",
        "taskmanager.memory.managed.size: 0 mb",
        "taskmanager.memory.network.min: 32 mb",
        "taskmanager.memory.network.max: 32 mb",
        "execution.checkpointing.interval: 2 s",
        "execution.checkpointing.mode: EXACTLY_ONCE",
    };

    private static final int[] PORTS = {freePort(), freePort()};
    private static final Process[] MANAGERS = new Process[2];

    public static void main(String[] args) throws Exception {
        Configuration conf = configure(args[0]);
        for (int i = 0; i < MANAGERS.length; i++) {
            startManager(i);
        }
        RestClusterClient<String> client = new RestClusterClient<>(conf, "tenant");
        awaitLeader(client);
        run("tm", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner");
        JobID job = client.submitJob(job(conf)).get(PATIENCE.toMinutes(), TimeUnit.MINUTES);
        awaitCommit(0);
        Report.ready();
        int deaths = work(client);
        String savepoints = Path.of("savepoints").toUri().toString();
        Report.work("job stopped with a savepoint", () -> client.stopWithSavepoint(job, false, savepoints,
            SavepointFormatType.CANONICAL).get(PATIENCE.toMinutes(), TimeUnit.MINUTES));
        long numbers = verify();
        Report.saw(numbers + " numbers counted and written, each exactly once, through " + deaths
            + " deaths of the JobManager");
        Report.saw("the sessions of JobManagers expired when these were killed, and else " + expired() + " times");
        Report.end();
    }

    private static Configuration configure(String servers) throws IOException {
        List<String> lines = new ArrayList<>(List.of(SETTINGS));
        lines.add("high-availability.zookeeper.quorum: " + servers);
        lines.add("high-availability.storageDir: " + Path.of("ha").toUri());
        lines.add("execution.checkpointing.dir: " + Path.of("checkpoints").toUri());
        Files.write(Path.of("config.yaml"), lines);
        return GlobalConfiguration.loadConfiguration(Path.of("").toAbsolutePath().toString());
    }

    private static void startManager(int i) throws IOException {
        MANAGERS[i] = run("jm" + i, "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
            "-Djobmanager.rpc.address=localhost", "-Drest.port=" + PORTS[i]);
    }

    private static Process run(String name, String program, String... arguments) throws IOException {
        List<String> flags = new ArrayList<>(Child.zooKeeperFlags());
        flags.addAll(List.of("-Dlog=INFO, file", "-Dfile=" + name + ".log",
            "-Djava.io.tmpdir=" + Files.createDirectories(Path.of("tmp").toAbsolutePath()), // it leaves files there
            "--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"));
        List<String> all = new ArrayList<>(List.of("--configDir", Path.of("").toAbsolutePath().toString()));
        all.addAll(List.of(arguments));
        return Child.start(flags, program, all.toArray(new String[0]));
    }

    /** A job that counts the numbers of each key, and writes each number with its key's count. */
    private static org.apache.flink.runtime.jobgraph.JobGraph job(Configuration conf) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(conf);
        env.setParallelism(1);
        DataGeneratorSource<Long> numbers = new DataGeneratorSource<>(n -> n, Long.MAX_VALUE,
            RateLimiterStrategy.perSecond(50), Types.LONG);
        FileSink<String> files = FileSink
            .forRowFormat(new org.apache.flink.core.fs.Path(OUT.toUri()), new SimpleStringEncoder<String>())
            .withRollingPolicy(OnCheckpointRollingPolicy.build()).build();
        env.fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers")
            .keyBy(n -> n % KEYS).process(new Count()).sinkTo(files);
        return env.getStreamGraph().getJobGraph();
    }

    /** Counts the numbers of each key. */
    public static final class Count extends KeyedProcessFunction<Long, Long, String> {
        private final ValueStateDescriptor<Long> count = new ValueStateDescriptor<>("count", Types.LONG);

        @Override
        public void processElement(Long n, Context context, Collector<String> out) throws Exception {
            ValueState<Long> state = getRuntimeContext().getState(count);
            long counted = state.value() == null ? 1 : state.value() + 1;
            state.update(counted);
            out.collect(n + " " + counted);
        }
    }

    /** Waits for checkpoints, and kills the JobManager that leads every 30 seconds; returns how often. */
    private static int work(RestClusterClient<String> client) throws Exception {
        int deaths = 0;
        for (long last = System.nanoTime(); Report.working(); ) {
            long before = committed().size();
            if (System.nanoTime() - last < TimeUnit.SECONDS.toNanos(30)) {
                Report.work("checkpoint", () -> awaitCommit(before));
                continue;
            }
            int leader = client.getWebInterfaceURL().endsWith(":" + PORTS[0]) ? 0 : 1;
            Child.stop(MANAGERS[leader], true);
            deaths++;
            long old = committed().size() + 1; // the checkpoint that was completed at the time may still be committed
            if (Report.work("checkpoint after the death of a JobManager", () -> awaitCommit(old)) == null) {
                Report.wrong("no checkpoint within " + PATIENCE + " after JobManager " + leader + " was killed");
            }
            startManager(leader);
            last = System.nanoTime();
        }
        return deaths;
    }

    /** Waits until a JobManager leads and answers. */
    private static void awaitLeader(RestClusterClient<String> client) throws Exception {
        for (long end = System.nanoTime() + PATIENCE.toNanos(); ; Thread.sleep(1000)) {
            try {
                client.listJobs().get();
                return;
            } catch (ExecutionException e) {
                if (System.nanoTime() > end) {
                    throw e;
                }
            }
        }
    }

    /** Waits until more than so many files are committed: each checkpoint commits one. */
    private static boolean awaitCommit(long before) throws Exception {
        for (long end = System.nanoTime() + PATIENCE.toNanos(); committed().size() <= before; Thread.sleep(100)) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("no checkpoint within " + PATIENCE);
            }
        }
        return true;
    }

    /** The files that checkpoints have committed; the names of others begin with a dot. */
    private static List<Path> committed() throws IOException {
        if (!Files.exists(OUT)) {
            return List.of();
        }
        try (Stream<Path> files = Files.walk(OUT)) {
            return files.filter(f -> f.getFileName().toString().startsWith("part-")).toList();
        }
    }

    /** Compares what was written with what a job without failures would have written; returns how many numbers. */
    private static long verify() throws IOException {
        Map<Long, Long> counts = new TreeMap<>();
        for (Path file : committed()) {
            for (String line : Files.readAllLines(file)) {
                String[] words = line.split(" ");
                if (counts.put(Long.valueOf(words[0]), Long.valueOf(words[1])) != null) {
                    Report.wrong("the number " + words[0] + " was written twice");
                }
            }
        }
        long want = 0;
        for (Map.Entry<Long, Long> e : counts.entrySet()) {
            if (e.getKey() != want || e.getValue() != want / KEYS + 1) {
                Report.wrong("got the number " + e.getKey() + " with count " + e.getValue() + ", want " + want
                    + " with " + (want / KEYS + 1));
                break;
            }
            want++;
        }
        return want;
    }

    /** How often the logs of JobManagers and the TaskManager tell of a session that expired. */
    private static int expired() throws IOException {
        int expired = 0;
        for (String name : List.of("jm0", "jm1", "tm")) {
            for (String line : Files.readAllLines(Path.of(name + ".log"))) {
                if (line.contains("Session expired")) {
                    Report.wrong(name + " logged: " + line);
                    expired++;
                }
            }
        }
        return expired;
    }

    /** A port below those that the system and the test give to others, so that it is still free after a restart. */
    private static int freePort() {
        while (true) {
            try (ServerSocket s = new ServerSocket(ThreadLocalRandom.current().nextInt(2_000, 10_000))) {
                return s.getLocalPort();
            } catch (IOException e) {
                System.err.println("a port is taken: " + e);
            }
        }
    }
}
