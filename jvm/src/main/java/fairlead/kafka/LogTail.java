package fairlead.kafka;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads a compacted topic on a daemon thread, from its beginning and then on, whatever happens.
 *
 * <p>Each connection reads anew. It ends, and the next one begins after a growing pause, when something
 * fails, when the topic has grown or was made anew, and when {@link #reopen} asks for it. Nothing is
 * thrown out of the thread; the same failure is logged once.
 */
abstract class LogTail {
    private static final Logger LOG = LoggerFactory.getLogger(LogTail.class);
    private static final Duration READ = Duration.ofMillis(250);
    private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final long FIRST_BACKOFF_MS = 500;
    private static final long LONGEST_BACKOFF_MS = 30_000;
    private static final long ASK_S = 15;

    private final String topic;
    private final Map<String, Object> connection;
    private final Object wake = new Object();
    private boolean reopen;
    private String knownProblem;

    /**
     * @param topic what to read
     * @param connection how the cluster is reached, and {@code client.id}
     */
    LogTail(String topic, Map<String, Object> connection) {
        this.topic = topic;
        this.connection = connection;
    }

    /** Says which of the topic's partitions to read. */
    abstract Collection<Integer> partitions(int count);

    /** A connection begins to read from the beginning. */
    abstract void opened(Told.Origin origin);

    /** A record, in the order of its partition. */
    abstract void read(ConsumerRecord<byte[], byte[]> record);

    /** Everything that was there when the connection began has been read; said after each read. */
    abstract void atEnd();

    /** The topic does not exist, or may not be read. */
    abstract void absent();

    /** Said four times a second, and after each failure. */
    abstract void tick();

    /** Whether somebody still wants to know. */
    abstract boolean wanted();

    /** Begins to read. */
    void start(String name) {
        Thread thread = new Thread(this::run, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Lets the present connection end, and the next one begin at once. */
    void reopen() {
        synchronized (wake) {
            reopen = true;
            wake.notifyAll();
        }
    }

    private void run() {
        long backoffMs = FIRST_BACKOFF_MS;
        while (wanted()) {
            long started = System.nanoTime();
            String problem;
            try {
                problem = connectAndRead();
            } catch (Throwable error) { // whatever breaks, whoever asked goes on
                problem = error.getClass().getSimpleName() + ": " + error.getMessage();
            }
            if (problem != null) {
                if (problem.equals(knownProblem)) {
                    LOG.debug("Cannot read {}: {}", topic, problem);
                } else {
                    LOG.warn("Cannot read {}, trying again: {}", topic, problem);
                }
                if (System.nanoTime() - started > LOOK_NANOS) {
                    backoffMs = FIRST_BACKOFF_MS;
                }
                pause(backoffMs);
                backoffMs = Math.min(2 * backoffMs, LONGEST_BACKOFF_MS);
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
            LOG.debug("Reading {} goes on although it was interrupted", topic);
        } catch (RuntimeException error) {
            LOG.warn("Reading {} goes on after", topic, error);
        }
    }

    /** Reads until something is to be done anew. Returns why that comes only after a pause, if so. */
    private String connectAndRead() throws Exception {
        synchronized (wake) {
            reopen = false;
        }
        try (Admin admin = Admin.create(connection)) {
            TopicDescription description = describe(admin);
            if (description == null) {
                absent();
                tick();
                return "the topic does not exist, or may not be read";
            }
            String cluster = admin.describeCluster().clusterId().get(ASK_S, TimeUnit.SECONDS);
            List<TopicPartition> partitions = partitions(description.partitions().size()).stream()
                .map(number -> new TopicPartition(topic, number))
                .collect(Collectors.toList());
            Map<String, Object> configs = consumerConfigs();
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(configs, bytes, bytes)) {
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
                Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
                opened(new Told.Origin(topic, cluster == null ? "" : cluster, id(description)));
                return readOn(admin, consumer, description, ends);
            }
        }
    }

    private String readOn(
        Admin admin, KafkaConsumer<byte[], byte[]> consumer, TopicDescription description,
        Map<TopicPartition, Long> ends) throws Exception {
        boolean atEnd = false;
        long lookAt = System.nanoTime() + LOOK_NANOS;
        while (wanted()) {
            synchronized (wake) {
                if (reopen) {
                    return null;
                }
            }
            if (System.nanoTime() - lookAt >= 0) {
                TopicDescription now = describe(admin);
                if (now == null || !now.topicId().equals(description.topicId())
                    || now.partitions().size() != description.partitions().size()) {
                    return "the topic has grown, was made anew, or is gone";
                }
                lookAt = System.nanoTime() + LOOK_NANOS;
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(READ)) {
                read(record);
            }
            atEnd = atEnd || ends.entrySet().stream()
                .allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
            if (atEnd) {
                atEnd();
                knownProblem = null;
            }
            tick();
        }
        return null;
    }

    /** Describes the topic; null: it does not exist, or may not be read. */
    private TopicDescription describe(Admin admin) throws Exception {
        try {
            return admin.describeTopics(Set.of(topic)).topicNameValues().get(topic)
                .get(ASK_S, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException
                || error.getCause() instanceof TopicAuthorizationException) {
                return null;
            }
            throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
        }
    }

    private Map<String, Object> consumerConfigs() {
        Map<String, Object> configs = new HashMap<>(connection);
        configs.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        configs.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        // A topic that was made anew counts from 0: this connection then ends.
        configs.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none");
        configs.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        configs.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, 5000); // plans are rare: ask seldom
        configs.put("group.protocol", "classic");
        return configs;
    }

    private static String id(TopicDescription description) {
        Uuid id = description.topicId();
        return id == null || id.equals(Uuid.ZERO_UUID) ? "" : id.toString();
    }
}
