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
 * <p>A batch is the result of one {@code poll}. While the application iterates over it, the meter assigns time to
 * the record that the iterator returned last. Other time in a batch, for example to insert all its rows, cannot be
 * assigned to a record. It only widens the confidence intervals of the partitions in the batch.
 */
final class Meter {
    private final DoubleSupplier clock;
    private final double recordMax;
    private final double created;
    private final String token = WorkReport.newToken();
    private final Map<TopicPartition, Work> works = new HashMap<>();
    /** The present batch, or null. Next: counters of the present record's partition, start of the record's time. */
    private Batch batch;
    private Work running;
    private double since;
    private double handler;
    private double waiting;
    /** When the consumer began to wait; NaN if it does not wait. */
    private double waitingSince = Double.NaN;
    private long calls;
    /** Number of calls of {@code poll} whose records took less than {@link PassingOn#QUICK} each. */
    private long quick;
    private final PassingOn passingOn = new PassingOn();
    /** Whether a thread other than the polling one has iterated over records. Any thread may set it. */
    private volatile boolean severalThreads;

    /** The records that one call of {@code poll} returned. */
    static final class Batch {
        private final Thread thread = Thread.currentThread();
        private final List<TimedList<?>> lists = new ArrayList<>();
        /** Seconds in the application that cannot be assigned to a record. */
        private double loose;
        private final int records;
        /** Total seconds in the application before this batch. */
        private final double handlerBefore;

        Batch(int records, double handlerBefore) {
            this.records = records;
            this.handlerBefore = handlerBefore;
        }
    }

    /**
     * @param clock returns the time in seconds
     * @param recordMax maximum seconds that count for a record, after which the group revokes its partition
     */
    Meter(DoubleSupplier clock, double recordMax) {
        this.clock = clock;
        this.recordMax = recordMax;
        this.created = clock.getAsDouble();
    }

    /** To be called when the application calls {@code poll}. This call ends the present batch. */
    void asked() {
        if (batch != null) {
            take(null);
            if (handler - batch.handlerBefore < PassingOn.QUICK * batch.records) {
                quick++;
            }
            double loose = Math.min(batch.loose, recordMax);
            for (TimedList<?> list : batch.lists) {
                list.work.addRecords(list.left);
                // Count the time as that of a single record, so that the interval covers this case, too.
                if (batch.lists.size() == 1) {
                    list.work.addTime(loose);
                } else {
                    list.work.addSpread(loose);
                }
            }
            batch = null;
        }
    }

    /** To be called when a call to Kafka begins. */
    void waits() {
        waitingSince = clock.getAsDouble();
    }

    /**
     * To be called when the call to Kafka has ended.
     *
     * @param working seconds of the call in which the thread did not wait but work
     */
    void waited(double working) {
        waiting += Math.max(0, clock.getAsDouble() - waitingSince - working);
        waitingSince = Double.NaN;
    }

    /** To be called before the application gets a batch. Returns the batch with timed lists. */
    <K, V> ConsumerRecords<K, V> took(ConsumerRecords<K, V> records) {
        if (records.isEmpty()) {
            return records;
        }
        Batch taken = new Batch(records.count(), handler);
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

    /** Returns whether to time iteration over a batch: only on the polling thread, and until its next poll. */
    boolean times(Batch iterated) {
        if (Thread.currentThread() != iterated.thread) {
            severalThreads = true;
            return false;
        }
        return iterated == batch;
    }

    /**
     * Ends the time of the present record and starts that of another.
     *
     * @param next the counters of the next record's partition; null if no record follows
     */
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

    /** Returns the text that identifies the consumer in its reports. */
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
        PassingOn.Totals totals = new PassingOn.Totals(
            now - created, waiting + waitingNow, handler + underWay, calls, quick);
        boolean unknown = passingOn.detected(totals) || severalThreads;
        return WorkReport.text(owner,
            milliseconds(totals.elapsed()), milliseconds(totals.waiting()), milliseconds(totals.handler()),
            calls, reported.records(), milliseconds(reported.busy()), (long) Math.rint(reported.squares() * 1e6),
            unknown ? WorkReport.TIMES_UNKNOWN : paused, System.currentTimeMillis());
    }

    private Work work(TopicPartition partition) {
        return works.computeIfAbsent(partition, any -> new Work());
    }

    private static long milliseconds(double seconds) {
        return (long) Math.rint(seconds * 1e3);
    }
}
