package fairlead.kafka;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.TopicPartition;

/**
 * Measures how long an application processes the records of one consumer. The counters never decrease.
 *
 * <p>While the application iterates over a batch, the meter assigns time to the record that the iterator
 * returned last. Other time of a batch, such as one insert for all rows, cannot be assigned to a record. It only
 * widens the intervals of the partitions in the batch.
 */
final class Meter {
    private final DoubleSupplier clock;
    private final double recordMax;
    private final double created;
    private final String token = WorkReport.newToken();
    private final Map<TopicPartition, Work> works = new HashMap<>();
    /** What the application works on, and since when; null: no batch, no record. */
    private Batch batch;
    private Work running;
    private double since;
    private double handler;
    private double waiting;
    /** NaN: it does not wait. */
    private double waitingSince = Double.NaN;
    private long calls;
    /** Set by whatever thread iterates. */
    private volatile boolean severalThreads;

    /** Records that one call of {@code poll} returned. */
    static final class Batch {
        private final Thread thread = Thread.currentThread();
        private final List<TimedList<?>> lists = new ArrayList<>();
        /** Seconds that belong to no record. */
        private double loose;
    }

    /**
     * @param clock seconds
     * @param recordMax seconds; no record counts for more, as the group would have taken its partition away
     */
    Meter(DoubleSupplier clock, double recordMax) {
        this.clock = clock;
        this.recordMax = recordMax;
        this.created = clock.getAsDouble();
    }

    /** Notes that the application asks for more, and so is done with its batch. */
    void asked() {
        if (batch != null) {
            take(null);
            double loose = Math.min(batch.loose, recordMax);
            for (TimedList<?> list : batch.lists) {
                list.work().addRecords(list.left());
                // As if one record had taken all of it: the interval is narrow only if that changes little.
                if (batch.lists.size() == 1) {
                    list.work().addTime(loose);
                } else {
                    list.work().addSpread(loose);
                }
            }
            batch = null;
        }
    }

    /** Notes that a call to Kafka begins. */
    void waits() {
        waitingSince = clock.getAsDouble();
    }

    /**
     * Notes that the call has ended.
     *
     * @param working seconds of it in which the thread worked
     */
    void waited(double working) {
        waiting += Math.max(0, clock.getAsDouble() - waitingSince - working);
        waitingSince = Double.NaN;
    }

    /** Notes that the application takes a batch; returns it with lists that are timed. */
    <K, V> ConsumerRecords<K, V> took(ConsumerRecords<K, V> records) {
        if (records.isEmpty()) {
            return records;
        }
        Batch taken = new Batch();
        Map<TopicPartition, List<ConsumerRecord<K, V>>> timed = new LinkedHashMap<>();
        for (TopicPartition partition : records.partitions()) {
            TimedList<ConsumerRecord<K, V>> list =
                new TimedList<>(this, taken, work(partition), records.records(partition));
            taken.lists.add(list);
            timed.put(partition, list);
        }
        calls++;
        batch = taken;
        running = null;
        since = clock.getAsDouble();
        return new ConsumerRecords<>(timed, records.nextOffsets());
    }

    /** Returns whether iterating over a batch is timed: on the thread that polled, until it polls again. */
    boolean times(Batch iterated) {
        if (Thread.currentThread() != iterated.thread) {
            severalThreads = true;
            return false;
        }
        return iterated == batch;
    }

    /** Counts the time since the last call for the record in hand; then takes one of another partition, or none. */
    void take(Work next) {
        double now = clock.getAsDouble();
        double took = now - since;
        handler += took;
        if (running == null) {
            batch.loose += took;
        } else {
            running.addTime(Math.min(took, recordMax));
        }
        running = next;
        since = now;
    }

    /** Returns what identifies the consumer in its reports. */
    String owner(String memberId) {
        return WorkReport.memberHash(memberId) + token;
    }

    /** Returns the report to commit with an offset of a partition. */
    String report(TopicPartition partition, long offset, String owner, int paused) {
        double now = clock.getAsDouble();
        double underWay = batch == null ? 0 : now - since;
        Work work = work(partition);
        if (!severalThreads) {
            work.commit(offset, work.state(running == work ? Math.min(underWay, recordMax) : 0));
        }
        Work.State reported = work.reported();
        double waitingNow = Double.isNaN(waitingSince) ? 0 : now - waitingSince;
        return WorkReport.text(owner,
            milliseconds(now - created), milliseconds(waiting + waitingNow), milliseconds(handler + underWay),
            calls, reported.records, milliseconds(reported.busy), (long) Math.rint(reported.squares * 1e6),
            severalThreads ? WorkReport.SEVERAL_AT_A_TIME : paused, System.currentTimeMillis());
    }

    private Work work(TopicPartition partition) {
        return works.computeIfAbsent(partition, any -> new Work());
    }

    private static long milliseconds(double seconds) {
        return (long) Math.rint(seconds * 1e3);
    }
}
