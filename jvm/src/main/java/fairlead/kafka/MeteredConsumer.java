package fairlead.kafka;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetCommitCallback;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.utils.Utils;

/**
 * A {@link KafkaConsumer} that reports how long the application takes for its records.
 *
 * <p>A report is 120 bytes of text. It is committed as the metadata of each offset for which the application gives
 * no metadata, by {@code commitSync}, {@code commitAsync} and automatic commits. Metadata of the application does
 * not change, and commit callbacks get the application's own offsets. Offsets that a producer sends to a
 * transaction get no report. With {@code fairlead.report.work=false}, this class is a plain {@code KafkaConsumer}.
 *
 * <p>The time of a record begins when an iterator's {@code next()} returns it, and ends with the next call of this
 * iterator. The iterator may be that of {@link ConsumerRecords}, or of the list of one partition or topic. Time
 * between the end of the iteration and the next {@code poll} belongs to no record. The reports contain no times if
 * a thread other than the polling one iterates over records, or if the application passes records on to other
 * threads.
 *
 * <p>Kafka's automatic commits cannot have metadata. With {@code enable.auto.commit}, this class turns them
 * off in Kafka and commits by the same rules: the positions of all assigned partitions, every
 * {@code auto.commit.interval.ms} in {@code poll}, before partitions are revoked and in {@code close}. There are
 * these differences:
 * <ul>
 * <li>Before partitions are revoked, {@code poll} waits until the commit has succeeded or failed, for
 * {@code default.api.timeout.ms} at most, even if its own timeout is shorter.</li>
 * <li>A cooperative rebalance that revokes nothing commits nothing. One that revokes partitions commits just before
 * the revocation, so the commit includes records that were read while the group rebalanced.</li>
 * <li>{@code unsubscribe} commits as well.</li>
 * <li>{@code close(CloseOptions)} commits only when partitions are revoked, and so not if they were assigned with
 * {@code assign}. In this case, use {@code close()} or {@code close(Duration)}.</li>
 * <li>The leader epoch is committed only if this consumer has read the record before the position.</li>
 * <li>Interceptors see these commits as if the application had made them, with reports. Kafka's metrics of
 * {@code poll} count a call that waits longer than the interval as several calls.</li>
 * </ul>
 *
 * @param <K> type of keys
 * @param <V> type of values
 */
public class MeteredConsumer<K, V> extends KafkaConsumer<K, V> {
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(30);
    /** Minimum time that {@code poll} waits between two automatic commits, in milliseconds. */
    private static final long SHORTEST_WAIT_MS = 100;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Null if nothing is reported. */
    private final Meter meter;
    /** Null if automatic commits are Kafka's own or turned off. */
    private final AutoCommit autoCommit;
    /** For each partition, the offset after the last record that was read, with the record's leader epoch. */
    private final Map<TopicPartition, OffsetAndMetadata> nextOffsets = new HashMap<>();

    /** See {@link KafkaConsumer#KafkaConsumer(Map)}. */
    public MeteredConsumer(Map<String, Object> configs) {
        this(configs, null, null);
    }

    /** See {@link KafkaConsumer#KafkaConsumer(Properties)}. */
    public MeteredConsumer(Properties properties) {
        this(properties, null, null);
    }

    /** See {@link KafkaConsumer#KafkaConsumer(Properties, Deserializer, Deserializer)}. */
    public MeteredConsumer(
        Properties properties, Deserializer<K> keyDeserializer, Deserializer<V> valueDeserializer) {
        this(Utils.propsToMap(properties), keyDeserializer, valueDeserializer);
    }

    /** See {@link KafkaConsumer#KafkaConsumer(Map, Deserializer, Deserializer)}. */
    public MeteredConsumer(
        Map<String, Object> configs, Deserializer<K> keyDeserializer, Deserializer<V> valueDeserializer) {
        this(new Metering(configs), keyDeserializer, valueDeserializer);
    }

    private MeteredConsumer(
        Metering settings, Deserializer<K> keyDeserializer, Deserializer<V> valueDeserializer) {
        super(settings.forKafka, keyDeserializer, valueDeserializer);
        meter = settings.reports
            ? new Meter(() -> System.nanoTime() / 1e9, settings.pollInterval.toMillis() / 1e3) : null;
        autoCommit = settings.commits ? new AutoCommit(settings) : null;
    }

    /**
     * Returns the metadata for an offset that is not committed by this consumer but, for example, in a producer's
     * transaction.
     *
     * @param partition a partition of this consumer
     * @param offset the offset to commit
     * @return a report; empty if reports are turned off
     */
    public String reportFor(TopicPartition partition, long offset) {
        return withReports(Map.of(partition, new OffsetAndMetadata(offset))).get(partition).metadata();
    }

    @Override
    public ConsumerRecords<K, V> poll(Duration timeout) {
        if (meter == null) {
            return super.poll(timeout);
        }
        meter.asked();
        double workedBefore = workedSeconds();
        meter.waits();
        ConsumerRecords<K, V> records;
        try {
            records = autoCommit == null || timeout.isNegative()
                ? super.poll(timeout) : pollAndCommit(timeout.toMillis());
        } finally {
            meter.waited(workedSeconds() - workedBefore);
        }
        nextOffsets.putAll(records.nextOffsets());
        return meter.took(records);
    }

    /** Polls until there are records or the timeout is over; meanwhile commits when a commit is due. */
    private ConsumerRecords<K, V> pollAndCommit(long timeoutMs) {
        long start = System.nanoTime();
        while (true) {
            autoCommit.ifDue(this);
            long left = Math.max(0, timeoutMs - Duration.ofNanos(System.nanoTime() - start).toMillis());
            long wait = Math.min(left, Math.max(SHORTEST_WAIT_MS, autoCommit.untilDueMs()));
            ConsumerRecords<K, V> records = super.poll(Duration.ofMillis(wait));
            boolean advanced = !records.isEmpty() || !records.nextOffsets().isEmpty();
            if (advanced || wait >= left) {
                return records;
            }
        }
    }

    /** Returns the CPU seconds of this thread; 0 if the JVM does not measure them. */
    private static double workedSeconds() {
        return THREADS.isCurrentThreadCpuTimeSupported() ? THREADS.getCurrentThreadCpuTime() / 1e9 : 0;
    }

    @Override
    public void commitSync() {
        if (meter == null) {
            super.commitSync();
        } else {
            commitSync(positions());
        }
    }

    @Override
    public void commitSync(Duration timeout) {
        if (meter == null) {
            super.commitSync(timeout);
        } else {
            commitSync(positions(), timeout);
        }
    }

    @Override
    public void commitSync(Map<TopicPartition, OffsetAndMetadata> offsets) {
        super.commitSync(withReports(offsets));
    }

    @Override
    public void commitSync(Map<TopicPartition, OffsetAndMetadata> offsets, Duration timeout) {
        super.commitSync(withReports(offsets), timeout);
    }

    @Override
    public void commitAsync() {
        commitAsync(null);
    }

    @Override
    public void commitAsync(OffsetCommitCallback callback) {
        if (meter == null) {
            super.commitAsync(callback);
        } else {
            commitAsync(positions(), callback);
        }
    }

    @Override
    public void commitAsync(Map<TopicPartition, OffsetAndMetadata> offsets, OffsetCommitCallback callback) {
        Map<TopicPartition, OffsetAndMetadata> own = new HashMap<>(offsets);
        super.commitAsync(
            withReports(own), callback == null ? null : (reported, error) -> callback.onComplete(own, error));
    }

    /** Returns the offsets with reports as metadata where the application gave none. */
    private Map<TopicPartition, OffsetAndMetadata> withReports(Map<TopicPartition, OffsetAndMetadata> offsets) {
        if (meter == null) {
            return offsets;
        }
        String owner = meter.owner(groupMetadata().memberId());
        int paused = paused().size();
        Map<TopicPartition, OffsetAndMetadata> reported = new HashMap<>();
        offsets.forEach((partition, offset) -> reported.put(partition,
            WorkReport.hasMetadata(offset) ? offset : new OffsetAndMetadata(
                offset.offset(), offset.leaderEpoch(), meter.report(partition, offset.offset(), owner, paused))));
        return reported;
    }

    /** Returns the known positions of the assigned partitions, which Kafka commits if no offsets are given. */
    Map<TopicPartition, OffsetAndMetadata> positions() {
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        boolean woken = false;
        for (TopicPartition partition : assignment()) {
            try {
                long position = position(partition, Duration.ZERO);
                OffsetAndMetadata next = nextOffsets.get(partition);
                positions.put(partition,
                    next != null && next.offset() == position ? next : new OffsetAndMetadata(position));
            } catch (TimeoutException | IllegalStateException none) {
                continue; // the position is not known yet, or the partition is no longer assigned
            } catch (WakeupException wakeup) {
                woken = true;
            }
        }
        if (woken) {
            wakeup(); // repeat it for the application's next call that waits
        }
        return positions;
    }

    @Override
    public void subscribe(Collection<String> topics) {
        subscribe(topics, AutoCommit.NO_LISTENER);
    }

    @Override
    public void subscribe(Collection<String> topics, ConsumerRebalanceListener listener) {
        super.subscribe(topics, committing(listener));
    }

    @Override
    public void subscribe(Pattern pattern) {
        subscribe(pattern, AutoCommit.NO_LISTENER);
    }

    @Override
    public void subscribe(Pattern pattern, ConsumerRebalanceListener listener) {
        super.subscribe(pattern, committing(listener));
    }

    @Override
    public void subscribe(SubscriptionPattern pattern) {
        subscribe(pattern, AutoCommit.NO_LISTENER);
    }

    @Override
    public void subscribe(SubscriptionPattern pattern, ConsumerRebalanceListener listener) {
        super.subscribe(pattern, committing(listener));
    }

    private ConsumerRebalanceListener committing(ConsumerRebalanceListener listener) {
        return autoCommit == null || listener == null ? listener : autoCommit.before(this, listener);
    }

    @Override
    public void assign(Collection<TopicPartition> partitions) {
        if (autoCommit != null) {
            autoCommit.ifDue(this);
        }
        super.assign(partitions);
    }

    @Override
    public void unsubscribe() {
        if (autoCommit == null) {
            super.unsubscribe();
        } else {
            autoCommit.leave(this, CLOSE_TIMEOUT, super::unsubscribe);
        }
    }

    @Override
    public void close() {
        close(CLOSE_TIMEOUT);
    }

    @SuppressWarnings("deprecation") // Kafka 4.0 lacks the method with CloseOptions
    @Override
    public void close(Duration timeout) {
        if (autoCommit == null) {
            super.close(timeout);
            return;
        }
        long start = System.nanoTime();
        autoCommit.leave(this, timeout, () -> {
            Duration left = timeout.minusNanos(System.nanoTime() - start);
            super.close(left.isNegative() ? Duration.ZERO : left);
        });
    }
}
