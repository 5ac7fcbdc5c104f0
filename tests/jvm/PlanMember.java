package fairlead.kafka;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A plain Java consumer with `PlanAssignor` in its configuration. Its only argument is a task,
 * {"configs": {..}, "topic": "t", "folder": "..."}. The consumer writes the same files as
 * storm_worker.py, but lines of `messages` have no offset, and assignments are not recorded.
 */
final class PlanMember {
    private static final String STRATEGY = "partition.assignment.strategy";

    private PlanMember() {
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> task = PlanDocument.object(
            Json.parse(arguments[0].getBytes(StandardCharsets.UTF_8)), "the task");
        Map<String, Object> configs = configs(PlanDocument.object(task.get("configs"), "configs"));
        Path folder = Path.of((String) task.get("folder"));
        Thread main = Thread.currentThread();
        AtomicBoolean stopping = new AtomicBoolean();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping.set(true);
            try {
                main.join();
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
            Runtime.getRuntime().halt(0);
        }));
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        AtomicInteger revoked = new AtomicInteger();
        AtomicReference<String> last = new AtomicReference<>("");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(configs, bytes, bytes);
            Writer messages = Files.newBufferedWriter(folder.resolve("messages"))) {
            consumer.subscribe(List.of((String) task.get("topic")), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    revoked.addAndGet(partitions.size());
                    commit(consumer);
                    note(folder, last, state(configs, consumer, revoked.get(), partitions));
                }

                @Override
                public void onPartitionsLost(Collection<TopicPartition> partitions) {
                    revoked.addAndGet(partitions.size()); // other members may own them now: do not commit
                    note(folder, last, state(configs, consumer, revoked.get(), partitions));
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    // owned partitions are noted after each poll
                }
            });
            while (!stopping.get()) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    messages.write(record.partition() + " " + new String(record.value(), StandardCharsets.UTF_8) + "\n");
                }
                messages.flush();
                note(folder, last, state(configs, consumer, revoked.get(), Set.of()));
            }
        }
    }

    /** Replaces the file `state` if the state has changed. */
    private static void note(Path folder, AtomicReference<String> last, String state) {
        if (!state.equals(last.getAndSet(state))) {
            Path written = folder.resolve("state.new");
            try {
                Files.writeString(written, state, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING);
                Files.move(written, folder.resolve("state"), StandardCopyOption.ATOMIC_MOVE);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    /**
     * Commits read records before partitions are given up, because Kafka's automatic commit before a
     * cooperative rebalance does not include records read during the rebalance.
     */
    private static void commit(KafkaConsumer<?, ?> consumer) {
        try {
            consumer.commitSync();
        } catch (KafkaException error) { // the next owner reads the records again
            System.err.println("Not committed: " + error);
        }
    }

    /** Returns Java's settings; given names may be Java's or those of Fairlead's Python followers. */
    private static Map<String, Object> configs(Map<String, Object> given) {
        Map<String, Object> configs = new HashMap<>();
        if (!"consumer".equals(given.get("group_protocol"))) { // with the consumer protocol the broker assigns
            configs.put(STRATEGY, PlanAssignor.class.getName());
        }
        given.forEach((name, value) -> {
            if (name.equals("plan_topic")) {
                configs.put(Settings.PLAN_TOPIC, value);
            } else if (name.equals("rejoin_jitter_s")) {
                configs.put(Settings.JITTER_MS, String.valueOf(Math.round((Double) value * 1000)));
            } else {
                configs.put(name.replace('_', '.'), String.valueOf(value));
            }
        });
        return configs;
    }

    /** Returns as JSON the owned partitions except those of `without`, and the plan that the member follows. */
    private static String state(
        Map<String, Object> configs, KafkaConsumer<?, ?> consumer, int revoked, Collection<TopicPartition> without) {
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("owned", consumer.assignment().stream().filter(owned -> !without.contains(owned))
            .map(TopicPartition::partition).sorted().collect(Collectors.toList()));
        state.put("revoked", revoked);
        try {
            follow(configs, state);
        } catch (JMException error) {
            throw new IllegalStateException(error);
        }
        return Json.write(state);
    }

    private static void follow(Map<String, Object> configs, Map<String, Object> state) throws JMException {
        if (!configs.containsKey(STRATEGY)) {
            return;
        }
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = new ObjectName("fairlead:type=follower,group="
            + ObjectName.quote((String) configs.get("group.id")) + ",client-id="
            + ObjectName.quote((String) configs.get("client.id")));
        long version = (Long) server.getAttribute(name, "PlanVersion");
        state.put("version", version == 0 ? null : version);
        state.put("latest", server.getAttribute(name, "LatestVersion"));
        state.put("problem", server.getAttribute(name, "LatestProblem") != null);
        state.put("reason", server.getAttribute(name, "FallbackReason"));
        state.put("idle", server.getAttribute(name, "IdleReason"));
        int rebalances = (Integer) server.getAttribute(name, "Rebalances");
        state.put("skipped", server.getAttribute(name, "RecordsSkipped"));
        state.put("joined", rebalances > 0);
        state.put("rebalances", rebalances);
        state.put("asked", server.getAttribute(name, "RejoinsAsked"));
    }
}
