package fairlead.kafka;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads compacted topics from their beginnings on a daemon thread, and then waits for new records.
 *
 * <p>Each connection reads from the beginning. It ends after a failure; when a topic was created, has grown or was
 * created again; and when {@link #reopen} is called. After failures, the next connection begins after a pause that
 * doubles each time. The thread catches every exception. A failure that repeats is logged once.
 */
abstract class LogTail {
    static final Duration READ = Duration.ofMillis(250);

    private static final Logger LOG = LoggerFactory.getLogger(LogTail.class);
    /** Time between two checks whether a missing topic now exists. */
    private static final Duration LOOK_FOR_MISSING = Duration.ofSeconds(1);
    private static final long FIRST_BACKOFF_MS = 500;
    private static final long ASK_S = 15;

    private final List<String> topics;
    private final Map<String, Object> connection;
    private final Duration lookEvery;
    private final Duration longestBackoff;
    private final Object wake = new Object();
    private boolean reopen;
    private boolean caughtUp;
    private String knownProblem;

    /**
     * @param topics the topics to read; nothing is read until the first one exists
     * @param connection settings of the connection to the cluster, including {@code client.id}
     * @param lookEvery time between two checks whether topics were created again or have grown
     * @param longestBackoff maximum pause between two connections
     */
    LogTail(List<String> topics, Map<String, Object> connection, Duration lookEvery, Duration longestBackoff) {
        this.topics = topics;
        this.connection = connection;
        this.lookEvery = lookEvery;
        this.longestBackoff = longestBackoff;
    }

    /** Returns why not to connect now; null if the thread should connect. */
    String unreachable() {
        return null;
    }

    /** Returns which partitions of a topic to read; {@code count} is their total number. */
    Collection<Integer> partitions(int count) {
        return IntStream.range(0, count).boxed().toList();
    }

    /** Called when a connection begins to read, with the origin of each topic's records; "" if one is missing. */
    abstract void opened(List<VerifiedRecord.Origin> origins);

    /** Called with each record; those of a partition come in the order of offsets. */
    abstract void read(ConsumerRecord<byte[], byte[]> record);

    /** Called after each read, once all records that existed when the connection began have been read. */
    abstract void atEnd();

    /** Returns whether {@link #atEnd} has been called for this connection. */
    final boolean caughtUp() {
        return caughtUp;
    }

    /** Called if the first topic does not exist, or this client may not read it. */
    void absent() {
    }

    /** Called four times per second, also while there is no connection. */
    void tick() {
    }

    /** Returns whether to continue reading. */
    boolean wanted() {
        return true;
    }

    /** Called when nothing can be read; not called again while the reason stays the same. */
    void failed(String problem) {
        LOG.warn("Cannot read {}, trying again: {}", topics, problem);
    }

    /** Starts the thread. */
    void start(String name) {
        Thread thread = new Thread(this::run, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Ends the present connection and begins the next one at once. */
    void reopen() {
        synchronized (wake) {
            reopen = true;
            wake.notifyAll();
        }
    }

    private void run() {
        long backoffMs = FIRST_BACKOFF_MS;
        while (wanted()) {
            caughtUp = false;
            String problem;
            try {
                problem = connectAndRead();
            } catch (Throwable error) { // the next connection tries again
                problem = error.getClass().getSimpleName() + ": " + error.getMessage();
                LOG.debug("Cannot read {}", topics, error);
            }
            if (problem != null) {
                if (!problem.equals(knownProblem)) {
                    failed(problem);
                }
                if (caughtUp) {
                    backoffMs = FIRST_BACKOFF_MS;
                }
                pause(backoffMs);
                backoffMs = Math.min(2 * backoffMs, longestBackoff.toMillis());
            }
            knownProblem = problem;
        }
    }

    private void pause(long milliseconds) {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
        try {
            for (long left = milliseconds; left > 0 && wanted();
                left = TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime())) {
                synchronized (wake) {
                    if (reopen) {
                        return;
                    }
                    wake.wait(Math.min(left, READ.toMillis()));
                }
                tick();
            }
        } catch (InterruptedException error) {
            LOG.debug("Reading {} continues although it was interrupted", topics);
        } catch (RuntimeException error) {
            LOG.warn("Reading {} continues after an error", topics, error);
        }
    }

    /** Reads until a new connection is necessary. Returns why to pause before it; null if no pause is needed. */
    private String connectAndRead() throws Exception {
        synchronized (wake) {
            reopen = false;
        }
        String reason = unreachable();
        if (reason != null) {
            return reason;
        }
        try (Admin admin = Admin.create(connection)) {
            Map<String, TopicDescription> known = describe(admin);
            if (!known.containsKey(topics.get(0))) {
                absent();
                tick();
                return "there is no topic " + topics.get(0) + ", or it may not be read";
            }
            String cluster = admin.describeCluster().clusterId().get(ASK_S, TimeUnit.SECONDS);
            List<TopicPartition> partitions = new ArrayList<>();
            known.forEach((topic, description) -> partitions(description.partitions().size())
                .forEach(number -> partitions.add(new TopicPartition(topic, number))));
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consumerConfigs(), bytes, bytes)) {
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
                Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
                opened(topics.stream()
                    .map(topic -> new VerifiedRecord.Origin(topic, cluster == null ? "" : cluster, id(known.get(topic))))
                    .toList());
                return readOn(admin, consumer, known, ends);
            }
        }
    }

    private String readOn(
        Admin admin, KafkaConsumer<byte[], byte[]> consumer, Map<String, TopicDescription> known,
        Map<TopicPartition, Long> ends) throws Exception {
        Queue<Map.Entry<TopicPartition, Long>> behind = new ArrayDeque<>(ends.entrySet());
        long everyNanos = (known.size() < topics.size() ? LOOK_FOR_MISSING : lookEvery).toNanos();
        long lookAt = System.nanoTime() + everyNanos;
        while (wanted()) {
            synchronized (wake) {
                if (reopen) {
                    return null;
                }
            }
            if (System.nanoTime() - lookAt >= 0) {
                if (!shape(describe(admin)).equals(shape(known))) {
                    return "a topic was created, grew, or was deleted";
                }
                lookAt = System.nanoTime() + everyNanos;
            }
            for (ConsumerRecord<byte[], byte[]> record : poll(consumer)) {
                read(record);
            }
            while (!behind.isEmpty() && consumer.position(behind.peek().getKey()) >= behind.peek().getValue()) {
                behind.remove();
            }
            if (behind.isEmpty()) {
                atEnd();
                caughtUp = true;
                knownProblem = null;
            }
            tick();
        }
        return null;
    }

    /** Waits for records for a quarter of a second at most. */
    ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) {
        return consumer.poll(READ);
    }

    /** Describes the topics that exist; omits the first one, too, if this client may not describe it. */
    private Map<String, TopicDescription> describe(Admin admin) throws Exception {
        Map<String, TopicDescription> known = new LinkedHashMap<>();
        Map<String, KafkaFuture<TopicDescription>> topicFutures = admin.describeTopics(topics).topicNameValues();
        for (String topic : topics) {
            try {
                known.put(topic, topicFutures.get(topic).get(ASK_S, TimeUnit.SECONDS));
            } catch (ExecutionException error) {
                Throwable cause = error.getCause();
                boolean hidden = cause instanceof TopicAuthorizationException && topic.equals(topics.get(0));
                if (!hidden && !(cause instanceof UnknownTopicOrPartitionException)) {
                    throw cause instanceof Exception exception ? exception : error;
                }
            }
        }
        return known;
    }

    /** Returns topic ids and partition counts. If these change, the connection ends. */
    private static Map<String, List<Object>> shape(Map<String, TopicDescription> known) {
        return known.values().stream().collect(Collectors.toMap(
            TopicDescription::name, topic -> Arrays.asList(topic.topicId(), topic.partitions().size())));
    }

    /** Returns the settings of a connection's consumer. */
    Map<String, Object> consumerConfigs() {
        Map<String, Object> configs = new HashMap<>(connection);
        configs.remove(ConsumerConfig.GROUP_ID_CONFIG);
        configs.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        configs.putIfAbsent(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        // Offsets start from 0 again if a topic is created again. Then poll fails, and this connection ends.
        configs.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none");
        configs.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        configs.putIfAbsent(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, 5000); // plans are rare, so fetch seldom
        configs.put("group.protocol", "classic");
        return configs;
    }

    private static String id(TopicDescription description) {
        Uuid id = description == null ? null : description.topicId();
        return id == null || id.equals(Uuid.ZERO_UUID) ? "" : id.toString();
    }
}
