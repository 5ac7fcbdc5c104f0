package fairlead.kafka;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps a {@link PlanBook} current: one daemon thread that reads the plan topic and the members topic.
 *
 * <p>One a JVM: a broker makes many assignors of the same settings. It starts before its own broker serves,
 * and tries again quietly until that does; whatever happens to it, the assignors go on with what is known.
 */
final class BrokerReader implements Runnable {
    /** Who may write to the topics could fill the memory: plans take a part of it at most, rosters half of that. */
    private static final long MOST_BYTES = Runtime.getRuntime().maxMemory() / 8;
    /** A longer value is not read: doing so takes up to sixteen times as much. */
    private static final long LONGEST_VALUE = Runtime.getRuntime().maxMemory() / 32;
    private static final int MOST_NAMED = 10_000;
    private static final int LONGEST_NAME = 200;

    private static final Logger LOG = LoggerFactory.getLogger(BrokerReader.class);
    private static final Duration POLL = Duration.ofMillis(250);
    private static final Duration LOOK = Duration.ofSeconds(15);
    /** While there are plans and no topic that says who is who: it is made with the first plan of a broker. */
    private static final Duration LOOK_FOR_MEMBERS = Duration.ofSeconds(1);
    private static final long FIRST_PAUSE_MS = 250;
    private static final long LONGEST_PAUSE_MS = 5_000;
    private static final int TIMEOUT_MS = 10_000;
    private static final List<BrokerReader> READERS = new ArrayList<>();

    private final BrokerSettings settings;
    final PlanBook book = new PlanBook();
    private volatile Uuid planTopicId;
    private volatile String problem = "the topics have not been read to their ends yet";
    private volatile long readAt;
    private volatile long records;
    private volatile long skipped;
    /** Groups of which something was dropped, since memory is bounded. */
    private final Set<String> dropped = ConcurrentHashMap.newKeySet();
    private boolean reachedEnd;
    private Map<String, PlanCache> caches = new HashMap<>();

    BrokerReader(BrokerSettings settings) {
        this.settings = settings;
    }

    /** The reader of these settings, started by whoever asks first. */
    static BrokerReader of(BrokerSettings settings) {
        synchronized (READERS) {
            for (BrokerReader reader : READERS) {
                if (reader.settings.readsLike(settings)) {
                    return reader;
                }
            }
            var reader = new BrokerReader(settings);
            READERS.add(reader);
            var thread = new Thread(reader, "fairlead-group-assignor");
            thread.setDaemon(true);
            thread.start();
            return reader;
        }
    }

    /** The id of the plan topic; null: not known yet. */
    Uuid planTopicId() {
        return planTopicId;
    }

    /** Why plans cannot be read, or not all of them; null: they can. */
    String problem() {
        int groups = dropped.size();
        return problem != null || groups == 0 ? problem
            : "what the topics say of " + groups + " groups is dropped: all plans may take "
                + MOST_BYTES + " bytes of memory";
    }

    /** Of how many groups something was dropped, since memory is bounded. */
    int dropped() {
        return dropped.size();
    }

    /** When the topics were last known to be read to their ends, milliseconds since 1970; 0: never. */
    long readAt() {
        return readAt;
    }

    long records() {
        return records;
    }

    long skipped() {
        return skipped;
    }

    @Override
    public void run() {
        long pause = FIRST_PAUSE_MS;
        while (true) {
            reachedEnd = false;
            try {
                String reason = settings.bootstrapServers == null
                    ? "set " + BrokerSettings.BOOTSTRAP + ": no listener of this broker is PLAINTEXT"
                    : listens() ? read() : "no broker listens yet at " + settings.bootstrapServers;
                note(reason, null);
            } catch (Throwable error) { // whatever breaks, the assignors go on with what is known
                note(error.getClass().getSimpleName() + ": " + error.getMessage(), error);
            }
            pause = reachedEnd ? FIRST_PAUSE_MS : Math.min(2 * pause, LONGEST_PAUSE_MS);
            try {
                Thread.sleep(pause);
            } catch (InterruptedException error) {
                return;
            }
        }
    }

    /** Takes note of why nothing is read, once for each reason. */
    private void note(String reason, Throwable error) {
        if (reason != null && !reason.equals(problem)) {
            LOG.info("Plans are not read at the moment, trying again: {}; what is known stays", reason);
            LOG.debug("Plans are not read", error);
        }
        problem = reason == null ? problem : reason;
    }

    /** Whether some bootstrap server takes connections: clients would fill the log with that none does. */
    private boolean listens() {
        for (String server : settings.bootstrapServers.split(",")) {
            String host = Utils.getHost(server.trim());
            Integer port = Utils.getPort(server.trim());
            if (host == null || port == null) {
                continue;
            }
            try (var socket = new Socket()) {
                socket.connect(new InetSocketAddress(host, port), 2_000);
                return true;
            } catch (IOException error) {
                LOG.trace("{} does not listen yet", server);
            }
        }
        return false;
    }

    /** What the cluster says of the two topics. */
    private record Topics(String cluster, TopicDescription plans, TopicDescription members) {
        /** Whether another look shows the same topics with the same partitions. */
        boolean same(Topics other) {
            return cluster.equals(other.cluster) && same(plans, other.plans) && same(members, other.members);
        }

        private static boolean same(TopicDescription one, TopicDescription other) {
            return one == null || other == null
                ? one == other
                : one.topicId().equals(other.topicId()) && one.partitions().size() == other.partitions().size();
        }
    }

    private Topics look(Admin admin) throws Exception {
        String cluster = admin.describeCluster().clusterId().get(TIMEOUT_MS, TimeUnit.MILLISECONDS);
        return new Topics(cluster == null ? "" : cluster,
            describe(admin, settings.planTopic), describe(admin, settings.membersTopic));
    }

    /** Describes a topic; null: there is none. */
    private static TopicDescription describe(Admin admin, String topic) throws Exception {
        try {
            return admin.describeTopics(Set.of(topic)).topicNameValues().get(topic)
                .get(TIMEOUT_MS, TimeUnit.MILLISECONDS);
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                return null;
            }
            throw error;
        }
    }

    /** Reads until the topics are others; returns why nothing can be read. */
    private String read() throws Exception {
        try (Admin admin = Admin.create(settings.clientProperties())) {
            Topics topics = look(admin);
            if (topics.plans() == null) {
                return "there is no topic " + settings.planTopic + ", or it may not be described";
            }
            planTopicId = topics.plans().topicId();
            var properties = settings.clientProperties();
            properties.putIfAbsent("isolation.level", "read_committed");
            properties.put("enable.auto.commit", "false");
            properties.put("allow.auto.create.topics", "false");
            // However small compressed ones are, in memory there is one record at a time.
            properties.put("max.poll.records", "1");
            properties.remove("group.id");
            var bytes = new ByteArrayDeserializer();
            try (var consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
                return follow(admin, consumer, topics);
            }
        }
    }

    private String follow(Admin admin, KafkaConsumer<byte[], byte[]> consumer, Topics topics) throws Exception {
        var partitions = new ArrayList<TopicPartition>();
        for (TopicDescription topic : new TopicDescription[] {topics.plans(), topics.members()}) {
            for (int p = 0; topic != null && p < topic.partitions().size(); p++) {
                partitions.add(new TopicPartition(topic.name(), p));
            }
        }
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        dropped.clear();
        String membersLog = topics.members() == null ? "" : topics.members().topicId().toString();
        var pass = new Pass(
            new Told.Origin(settings.planTopic, topics.cluster(), topics.plans().topicId().toString()),
            new Told.Origin(settings.membersTopic, topics.cluster(), membersLog));
        var behind = new HashSet<>(partitions);
        boolean atEnd = false;
        Duration every = topics.members() == null ? LOOK_FOR_MEMBERS : LOOK;
        long lookAt = System.nanoTime() + every.toNanos();
        while (true) {
            ConsumerRecords<byte[], byte[]> records = poll(consumer);
            for (ConsumerRecord<byte[], byte[]> record : records) {
                pass.apply(record, atEnd);
            }
            if (!atEnd) {
                behind.removeIf(one -> (records.isEmpty() || records.partitions().contains(one))
                    && consumer.position(one) >= ends.get(one));
                atEnd = behind.isEmpty();
                if (atEnd) {
                    pass.publish();
                }
            }
            if (atEnd) {
                readAt = System.currentTimeMillis();
            }
            if (System.nanoTime() > lookAt) {
                Topics now = look(admin);
                if (!now.same(topics)) {
                    return now.plans() == null
                        ? "there is no topic " + settings.planTopic + " any more"
                        : "the topics have grown or were made anew: reading them again";
                }
                lookAt = System.nanoTime() + every.toNanos();
            }
        }
    }

    private ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) {
        try {
            return consumer.poll(POLL);
        } catch (OutOfMemoryError error) {
            stepOver(consumer);
            return ConsumerRecords.empty();
        }
    }

    /** Goes on behind the next record of each partition where it does not fit into memory. */
    private void stepOver(KafkaConsumer<byte[], byte[]> consumer) {
        Set<TopicPartition> all = consumer.assignment();
        for (TopicPartition one : all) {
            long at = consumer.position(one);
            consumer.pause(all);
            consumer.resume(Set.of(one));
            try {
                consumer.poll(POLL);
                consumer.seek(one, at);
            } catch (OutOfMemoryError error) {
                consumer.seek(one, at + 1);
                skip(one, at, "it does not fit into memory");
            }
        }
        consumer.resume(all);
    }

    private void skip(TopicPartition partition, long offset, String problem) {
        skipped++;
        LOG.warn("The record at {}, offset {}, is skipped: {}", partition, offset, problem);
    }

    /** Takes note of what is dropped for what was read of a group. */
    private void drop(String group, List<String> groups, String what) {
        dropped.remove(group);
        for (String one : groups) {
            if (dropped.size() < MOST_NAMED && dropped.add(one.substring(0, Math.min(LONGEST_NAME, one.length())))) {
                LOG.warn("The {} of group {} is dropped: all plans may take {} bytes of memory",
                    what, one, MOST_BYTES);
            }
        }
    }

    /** One reading of the topics from their beginnings. Until their ends what was known before stays. */
    final class Pass {
        private final Told.Origin plans;
        private final Told.Origin members;
        private final Held<PlanCache> fresh = new Held<>(MOST_BYTES, book::met);
        private final Held<Roster> rosters = new Held<>(MOST_BYTES / 2, book::met);

        Pass(Told.Origin plans, Told.Origin members) {
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
            records++;
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
            } catch (InvalidPlanException error) {
                skip(new TopicPartition(record.topic(), record.partition()), record.offset(), error.getMessage());
            } catch (OutOfMemoryError error) {
                skip(new TopicPartition(record.topic(), record.partition()), record.offset(),
                    "reading it takes more memory than there is");
            }
        }

        private void applyPlan(String group, ConsumerRecord<byte[], byte[]> record, boolean live)
            throws InvalidPlanException {
            PlanCache known = fresh.get(group);
            PlanCache cache = known != null ? known : new PlanCache(group, plans, settings.signatures, null);
            int before = cache.state().skipped;
            cache.apply(record.offset(), record.value(), record.headers());
            skipped += cache.state().skipped - before;
            PlanDocument plan = cache.state().plan();
            List<String> gone = fresh.put(group, cache, plan == null ? 0 : plan.bytes(), plan == null);
            drop(group, gone, "plan");
            if (live) {
                book.put(PlanBook.Plan.of(group, cache.state()));
                gone.forEach(book::removePlan);
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
            Roster old = rosters.get(group);
            if (old != null && old.epoch > roster.epoch) {
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
            caches = fresh.values();
            caches.forEach((group, cache) -> book.put(PlanBook.Plan.of(group, cache.state())));
            book.keepPlans(caches.keySet());
            rosters.values().values().forEach(book::put);
            for (Roster roster : List.copyOf(book.rosters())) {
                if (rosters.get(roster.group) == null) {
                    book.removeRoster(roster.group);
                }
            }
            boolean first = !book.complete();
            book.setComplete();
            reachedEnd = true;
            problem = null;
            if (first) {
                LOG.info("Read the plans of {} groups, and the members of {}", caches.size(), rosters.values().size());
            }
        }
    }
}
