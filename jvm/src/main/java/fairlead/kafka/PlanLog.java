package fairlead.kafka;

import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Utils;

/**
 * The newest plans of a client's groups, read on a daemon thread. Followers with equal configurations share a thread.
 *
 * <p>The thread reads only the partitions with its groups' keys, stores only these groups' plans, and ends when no
 * follower uses it any more.
 */
final class PlanLog extends LogTail {
    private static final String NOT_READ = "the plan topic has not been read to its end yet";
    private static final String NO_TOPIC = "the plan topic does not exist, or may not be read";
    private static final PlanState UNREAD = PlanState.UNKNOWN.withProblem(NOT_READ);
    private static final Map<Object, PlanLog> SHARED = new HashMap<>();
    private static final AtomicInteger MADE = new AtomicInteger();

    private final Object key;
    private final Signatures signatures;
    private final List<WeakReference<Follower>> readers = new ArrayList<>();
    /** Each group's plan when the topic was last read to its end. This object guards this field and the next two. */
    private Map<String, PlanState> states = new HashMap<>();
    /** Groups whose partition has been read to its end. */
    private final Set<String> caughtUp = new HashSet<>();
    private String topicProblem;
    /** The caches of the present connection. Only the thread uses this field and the next three. */
    private Map<String, PlanCache> caches = new HashMap<>();
    private Set<String> reading = new HashSet<>();
    private VerifiedRecord.Origin origin;
    private boolean news;

    private PlanLog(Object key, String topic, Map<String, Object> connection, Signatures signatures) {
        super(List.of(topic), connection, Duration.ofSeconds(30), Duration.ofSeconds(30));
        this.key = key;
        this.signatures = signatures;
    }

    /**
     * Reads plans for a follower's group until the follower is garbage-collected. Only a weak reference is stored.
     *
     * @param connection settings of the connection to the cluster
     */
    static PlanLog follow(
        Map<String, Object> connection, String topic, String publicKeys, Follower reader) {
        Signatures signatures = Signatures.of(publicKeys);
        Object key = Arrays.asList(connection, topic, publicKeys);
        synchronized (SHARED) {
            PlanLog log = SHARED.get(key);
            boolean isNew = log == null;
            if (isNew) {
                Map<String, Object> configs = new HashMap<>(connection);
                configs.putIfAbsent(
                    CommonClientConfigs.CLIENT_ID_CONFIG, "fairlead-plans-" + MADE.incrementAndGet());
                log = new PlanLog(key, topic, configs, signatures);
                SHARED.put(key, log);
            }
            log.add(reader);
            if (isNew) {
                log.start("fairlead-plans");
            }
            return log;
        }
    }

    private synchronized void add(Follower reader) {
        boolean known = groups().contains(reader.group());
        readers.add(new WeakReference<>(reader));
        if (!known) {
            reopen();
        }
    }

    private synchronized List<Follower> readers() {
        readers.removeIf(reader -> reader.get() == null);
        return readers.stream().map(WeakReference::get).filter(Objects::nonNull).toList();
    }

    private Set<String> groups() {
        Set<String> groups = new TreeSet<>();
        readers().forEach(reader -> groups.add(reader.group()));
        return groups;
    }

    /** Returns the state of a group's plan without waiting. */
    synchronized PlanState state(String group) {
        return caughtUp.contains(group)
            ? states.getOrDefault(group, none()) : states.getOrDefault(group, UNREAD);
    }

    /**
     * Returns the state of a group's plan, after waiting for a record that another member has already read.
     *
     * @param atLeast the newest record that any member has read
     * @param timeoutMs maximum milliseconds to wait before the known state is returned
     */
    synchronized PlanState current(String group, Identity atLeast, long timeoutMs) {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        while (!caughtUp.contains(group) || atLeast.isNewerThan(state(group).seen())) {
            long leftMs = TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime());
            if (leftMs <= 0) {
                break;
            }
            try {
                wait(leftMs);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                break;
            }
        }
        return state(group);
    }

    private PlanState none() {
        return PlanState.UNKNOWN.withProblem(topicProblem);
    }

    /** Returns which of {@code count} partitions has the records of a group. */
    static int partitionForKey(String group, int count) {
        return Utils.toPositive(Utils.murmur2(PlanDocument.key(group))) % count;
    }

    @Override
    Collection<Integer> partitions(int count) {
        Set<Integer> numbers = new TreeSet<>();
        synchronized (this) {
            reading = groups();
        }
        reading.forEach(group -> numbers.add(partitionForKey(group, count)));
        return numbers;
    }

    @Override
    void opened(List<VerifiedRecord.Origin> origins) {
        origin = origins.get(0);
        news = true;
        caches = new HashMap<>();
        // A known state remains valid even if its record no longer exists.
        synchronized (this) {
            states.forEach(
                (group, state) -> caches.put(group, new PlanCache(group, origin, signatures, state)));
        }
    }

    @Override
    void read(ConsumerRecord<byte[], byte[]> record) {
        if (record.key() == null) {
            return;
        }
        String group = new String(record.key(), StandardCharsets.UTF_8);
        if (reading.contains(group) && Arrays.equals(record.key(), PlanDocument.key(group))) {
            news = true;
            caches.computeIfAbsent(group, one -> new PlanCache(one, origin, signatures, null))
                .apply(record.offset(), record.value(), record.headers());
        }
    }

    @Override
    void atEnd() {
        if (!news) {
            return;
        }
        news = false;
        Map<String, PlanState> read = new HashMap<>();
        caches.forEach((group, cache) -> read.put(group, cache.state()));
        synchronized (this) {
            topicProblem = null;
            publish(read);
        }
    }

    @Override
    void absent() {
        synchronized (this) {
            topicProblem = NO_TOPIC;
            reading = groups();
            Map<String, PlanState> kept = new HashMap<>(); // valid until their leases expire
            states.forEach((group, state) -> kept.put(group, state.withProblem(NO_TOPIC)));
            publish(kept);
        }
    }

    private void publish(Map<String, PlanState> read) {
        states = read;
        caughtUp.addAll(reading);
        notifyAll();
    }

    @Override
    void tick() {
        readers().forEach(Follower::tick);
    }

    @Override
    boolean wanted() {
        synchronized (SHARED) {
            synchronized (this) {
                boolean wanted = !readers().isEmpty();
                if (!wanted) {
                    SHARED.remove(key, this);
                }
                return wanted;
            }
        }
    }
}
