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
    /** The batch and record in progress, and since when; null: no batch, no record. */
    private Batch batch;
    private Work running;
    private double since;
    private double handler;
    private double waiting;
    /** When the consumer began to wait; NaN: it does not wait. */
    private double waitingSince = Double.NaN;
    private long calls;
    /** Calls whose records took less than {@link PassingOn#QUICK} each. */
    private long quick;
    private final PassingOn passingOn = new PassingOn();
    /** Set by the thread that iterates, which may be any thread. */
    private volatile boolean severalThreads;

    /** Number of records that one call of {@code poll} returned. */
    static final class Batch {
        private final Thread thread = Thread.currentThread();
        private final List<TimedList<?>> lists = new ArrayList<>();
        /** Seconds that belong to no record. */
        private double loose;
        private final int records;
        /** Seconds in the application before this batch. */
        private final double handlerBefore;

        Batch(int records, double handlerBefore) {
            this.records = records;
            this.handlerBefore = handlerBefore;
        }
    }

    /**
     * @param clock seconds
     * @param recordMax maximum seconds of a record; after that, the group would have revoked its partition
     */
    Meter(DoubleSupplier clock, double recordMax) {
        this.clock = clock;
        this.recordMax = recordMax;
        this.created = clock.getAsDouble();
    }

    /** Notes a call of {@code poll}, which ends the application's batch. */
    void asked() {
        if (batch != null) {
            take(null);
            if (handler - batch.handlerBefore < PassingOn.QUICK * batch.records) {
                quick++;
            }
            double loose = Math.min(batch.loose, recordMax);
            for (TimedList<?> list : batch.lists) {
                list.work.addRecords(list.left);
                // As if a single record had taken all this time, so that the interval covers this case, too.
                if (batch.lists.size() == 1) {
                    list.work.addTime(loose);
                } else {
                    list.work.addSpread(loose);
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
     * @param working seconds of the call in which the thread worked
     */
    void waited(double working) {
        waiting += Math.max(0, clock.getAsDouble() - waitingSince - working);
        waitingSince = Double.NaN;
    }

    /** Notes that the application gets a batch; returns the batch with timed lists. */
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

    /** Returns whether iteration over a batch is timed: on the polling thread, until its next poll. */
    boolean times(Batch iterated) {
        if (Thread.currentThread() != iterated.thread) {
            severalThreads = true;
            return false;
        }
        return iterated == batch;
    }

    /** Adds the time since the last call to the current record, and makes another record, or none, the current one. */
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

    /** Returns the identification of the consumer in its reports. */
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
