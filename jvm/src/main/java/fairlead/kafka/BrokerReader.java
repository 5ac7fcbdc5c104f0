package fairlead.kafka;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps a {@link PlanBook} current: a daemon thread reads the plan topic and the members topic.
 *
 * <p>All assignors of a JVM with equal settings share one reader, because a broker creates many of them. The
 * reader starts before its own broker accepts connections, and retries without logging until then. If it
 * fails, the assignors continue with the plans read so far.
 */
final class BrokerReader extends LogTail {
    /**
     * Maximum memory for plans, in bytes; half as much for rosters (members' names). Without a limit, every
     * user who can write to the topics could fill the heap.
     */
    private static final long MOST_BYTES = Runtime.getRuntime().maxMemory() / 8;
    /** Maximum length of a record's value, in bytes. Parsing takes up to sixteen times as much memory. */
    private static final long LONGEST_VALUE = Runtime.getRuntime().maxMemory() / 32;
    private static final int MOST_NAMED = 10_000;
    private static final int LONGEST_NAME = 200;

    private static final Logger LOG = LoggerFactory.getLogger(BrokerReader.class);
    private static final Map<Map<String, String>, BrokerReader> READERS = new HashMap<>();

    private final BrokerSettings settings;
    final PlanBook book = new PlanBook();
    final BrokerMetrics metrics = new BrokerMetrics(this);
    /** The id of the plan topic; null if it is not known yet. */
    volatile Uuid planTopicId;
    private volatile String problem = "the topics have not been read to their ends yet";
    /** When the topics were last read to their ends, in milliseconds since 1970; 0 if they never were. */
    volatile long readAt;
    volatile long skipped;
    /** Number of records read. Only the reading thread changes it. */
    volatile long records;
    /** Groups whose plan or roster was dropped for lack of memory. */
    final Set<String> dropped = ConcurrentHashMap.newKeySet();
    private Pass pass;
    private Map<String, PlanCache> caches = new HashMap<>();

    BrokerReader(BrokerSettings settings) {
        super(List.of(settings.planTopic, settings.membersTopic), settings.connection(),
            Duration.ofSeconds(15), Duration.ofSeconds(5));
        this.settings = settings;
    }

    /** Returns the reader for these settings; the first caller starts it. */
    static BrokerReader of(BrokerSettings settings) {
        synchronized (READERS) {
            return READERS.computeIfAbsent(settings.said, said -> started(settings));
        }
    }

    private static BrokerReader started(BrokerSettings settings) {
        var reader = new BrokerReader(settings);
        reader.metrics.register();
        if (settings.bootstrapServers == null) {
            reader.failed("set " + BrokerSettings.BOOTSTRAP + ": no listener of this broker is PLAINTEXT");
        } else {
            reader.start("fairlead-group-assignor");
        }
        return reader;
    }

    /** Returns why some or all plans cannot be read; null if all can be read. */
    String problem() {
        int groups = dropped.size();
        return problem != null || groups == 0 ? problem
            : "the plans or members of " + groups + " groups are dropped: all plans together may take "
                + MOST_BYTES + " bytes of memory";
    }

    /** Returns null if a bootstrap server accepts connections. If none does, Kafka's clients would fill the log. */
    @Override
    String unreachable() {
        for (String server : settings.bootstrapServers.split(",")) {
            String host = Utils.getHost(server.trim());
            Integer port = Utils.getPort(server.trim());
            if (host == null || port == null) {
                continue;
            }
            try (var socket = new Socket()) {
                socket.connect(new InetSocketAddress(host, port), 2_000);
                return null;
            } catch (IOException error) {
                LOG.trace("{} does not listen yet", server);
            }
        }
        return "no broker listens yet at " + settings.bootstrapServers;
    }

    @Override
    void failed(String reason) {
        LOG.info("Cannot read plans, trying again: {}; plans that were read stay in force", reason);
        problem = reason;
    }

    @Override
    Map<String, Object> consumerConfigs() {
        Map<String, Object> configs = super.consumerConfigs();
        // Read one record at a time, since compressed records can be much larger in memory.
        configs.put("max.poll.records", 1);
        return configs;
    }

    @Override
    void opened(List<VerifiedRecord.Origin> origins) {
        planTopicId = Uuid.fromString(origins.get(0).log());
        dropped.clear();
        pass = new Pass(origins.get(0), origins.get(1));
    }

    @Override
    void read(ConsumerRecord<byte[], byte[]> record) {
        records++;
        pass.apply(record, caughtUp());
    }

    @Override
    void atEnd() {
        if (!caughtUp()) {
            pass.publish();
        }
        readAt = System.currentTimeMillis();
    }

    @Override
    ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) {
        try {
            return super.poll(consumer);
        } catch (OutOfMemoryError error) {
            stepOver(consumer);
            return ConsumerRecords.empty();
        }
    }

    /** In each partition, skips the next record if it does not fit into memory. */
    private void stepOver(KafkaConsumer<byte[], byte[]> consumer) {
        Set<TopicPartition> all = consumer.assignment();
        for (TopicPartition partition : all) {
            long at = consumer.position(partition);
            consumer.pause(all);
            consumer.resume(Set.of(partition));
            try {
                consumer.poll(READ);
                consumer.seek(partition, at);
            } catch (OutOfMemoryError error) {
                consumer.seek(partition, at + 1);
                skip(partition, at, "it does not fit into memory");
            }
        }
        consumer.resume(all);
    }

    private void skip(TopicPartition partition, long offset, String problem) {
        skipped++;
        LOG.warn("The record at {}, offset {}, is skipped: {}", partition, offset, problem);
    }

    /** Registers {@code groups} as dropped; {@code group} is the one whose record was stored instead. */
    private void drop(String group, List<String> groups, String what) {
        dropped.remove(group);
        for (String lost : groups) {
            if (dropped.size() < MOST_NAMED && dropped.add(lost.substring(0, Math.min(LONGEST_NAME, lost.length())))) {
                LOG.warn("The {} of group {} is dropped: all plans may take {} bytes of memory",
                    what, lost, MOST_BYTES);
            }
        }
    }

    /** Reads the topics from their beginnings. Until it reaches the ends, plans of the previous pass stay in force. */
    final class Pass {
        private final VerifiedRecord.Origin plans;
        private final VerifiedRecord.Origin members;
        private final Held<PlanCache> fresh = new Held<>(MOST_BYTES, book::met);
        private final Held<Roster> rosters = new Held<>(MOST_BYTES / 2, book::met);

        Pass(VerifiedRecord.Origin plans, VerifiedRecord.Origin members) {
            this.plans = plans;
            this.members = members;
            caches.forEach((group, cache) -> {
                var kept = new PlanCache(group, plans, settings.signatures, cache.state());
                if (kept.state().plan() != null) {
                    fresh.put(group, kept, kept.state().plan().bytes(), false);
                }
            });
        }

        void apply(ConsumerRecord<byte[], byte[]> record, boolean live) {
            if (record.key() == null) {
                return;
            }
            String group = new String(record.key(), StandardCharsets.UTF_8);
            try {
                if (record.serializedValueSize() > LONGEST_VALUE) {
                    throw new InvalidPlanException("it is longer than " + LONGEST_VALUE + " bytes");
                }
                if (record.topic().equals(settings.planTopic)) {
                    applyPlan(group, record, live);
                } else {
                    applyRoster(group, record, live);
                }
            } catch (InvalidPlanException | OutOfMemoryError error) {
                skip(new TopicPartition(record.topic(), record.partition()), record.offset(), error.getMessage());
            }
        }

        private void applyPlan(String group, ConsumerRecord<byte[], byte[]> record, boolean live)
            throws InvalidPlanException {
            PlanCache known = fresh.values.get(group);
            PlanCache cache = known != null ? known : new PlanCache(group, plans, settings.signatures, null);
            int before = cache.state().skipped();
            cache.apply(record.offset(), record.value(), record.headers());
            skipped += cache.state().skipped() - before;
            PlanDocument plan = cache.state().plan();
            List<String> gone = fresh.put(group, cache, plan == null ? 0 : plan.bytes(), plan == null);
            drop(group, gone, "plan");
            if (live) {
                book.put(PlanBook.Plan.of(group, cache.state()));
                gone.forEach(book.plans::remove);
            }
        }

        private void applyRoster(String group, ConsumerRecord<byte[], byte[]> record, boolean live)
            throws InvalidPlanException {
            if (record.value() == null) {
                if (settings.signatures != null) {
                    throw new InvalidPlanException("A tombstone is not signed");
                }
                rosters.remove(group);
                if (live) {
                    book.removeRoster(group);
                }
                return;
            }
            Roster roster = Roster.read(record.value(), record.headers(), group, members, settings.signatures);
            Roster old = rosters.values.get(group);
            if (old != null && old.epoch() > roster.epoch()) {
                return;
            }
            List<String> gone = rosters.put(group, roster, roster.bytes(), false);
            drop(group, gone, "roster");
            if (live) {
                book.put(roster);
                gone.forEach(book::removeRoster);
            }
        }

        void publish() {
            caches = fresh.values;
            caches.forEach((group, cache) -> book.put(PlanBook.Plan.of(group, cache.state())));
            book.plans.keySet().retainAll(caches.keySet());
            rosters.values.values().forEach(book::put);
            for (Roster roster : List.copyOf(book.rosters.values())) {
                if (rosters.values.get(roster.group()) == null) {
                    book.removeRoster(roster.group());
                }
            }
            boolean first = !book.complete;
            book.complete = true;
            problem = null;
            if (first) {
                LOG.info("Read the plans of {} groups, and the members of {}", caches.size(), rosters.values.size());
            }
        }
    }
}
