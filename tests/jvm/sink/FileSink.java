import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import javax.management.JMException;
import javax.management.ObjectName;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/**
 * Adds a line "partition value" for each record to `messages` in the worker's folder. Each task says in a file
 * `state-N` beside it what it owns and follows, as storm_worker.py does, for as long as it runs.
 */
public final class FileSink extends SinkConnector {
    private Map<String, String> properties = Map.of();

    @Override
    public void start(Map<String, String> given) {
        properties = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Lines.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int tasks) {
        List<Map<String, String>> configs = new ArrayList<>();
        for (int number = 0; number < tasks; number++) {
            Map<String, String> config = new HashMap<>(properties);
            config.put("number", String.valueOf(number));
            configs.add(config);
        }
        return configs;
    }

    @Override
    public void stop() { }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "0";
    }

    /** Writes what its partitions have. */
    public static final class Lines extends SinkTask {
        private final Path folder = Path.of(System.getProperty("sink.folder"));
        private final TreeSet<Integer> owned = new TreeSet<>();
        private Path state;
        private ObjectName follower;
        private String said = "";

        @Override
        public void start(Map<String, String> given) {
            state = folder.resolve("state-" + given.get("number"));
            String name = given.get("name");
            String group = given.getOrDefault("consumer.override.group.id", "connect-" + name);
            try {
                follower = new ObjectName("fairlead:type=follower,group=" + ObjectName.quote(group) + ",client-id="
                    + ObjectName.quote("connector-consumer-" + name + "-" + given.get("number")));
            } catch (JMException wrong) {
                throw new ConnectException(wrong);
            }
        }

        @Override
        public void open(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> owned.add(partition.partition()));
        }

        @Override
        public void close(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> owned.remove(partition.partition()));
            say();
        }

        @Override
        public void put(Collection<SinkRecord> records) {
            StringBuilder lines = new StringBuilder();
            records.forEach(each -> lines.append(each.kafkaPartition()).append(' ').append(each.value()).append('\n'));
            try {
                Files.writeString(folder.resolve("messages"), lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException failed) {
                throw new ConnectException(failed);
            }
            say();
        }

        private void say() {
            try {
                String now = "{\"owned\":" + owned + ",\"version\":" + orNull(shown("PlanVersion")) + ",\"latest\":"
                    + orNull(shown("LatestVersion")) + ",\"problem\":" + (shown("LatestProblem") != null) + ",\"joined\":"
                    + ((Integer) shown("Rebalances") > 0) + "}";
                if (!now.equals(said)) {
                    Path written = folder.resolve("new-" + state.getFileName());
                    Files.writeString(written, now);
                    Files.move(written, state, StandardCopyOption.ATOMIC_MOVE);
                    said = now;
                }
            } catch (IOException | JMException failed) {
                throw new ConnectException(failed);
            }
        }

        private Object shown(String attribute) throws JMException {
            return ManagementFactory.getPlatformMBeanServer().getAttribute(follower, attribute);
        }

        private static Object orNull(Object version) {
            return Long.valueOf(0).equals(version) ? null : version;
        }

        @Override
        public void stop() {
            try {
                Files.deleteIfExists(state);
            } catch (IOException failed) {
                throw new ConnectException(failed);
            }
        }

        @Override
        public String version() {
            return "0";
        }
    }
}
