package fairlead.kafka;

import java.util.ArrayDeque;
import java.util.Deque;

/** Counts the records of one partition and their time, and finds the counters to report at a committed offset. */
final class Work {
    /** Maximum number of earlier states. If there are more, every other one is removed. */
    private static final int KEPT = 64;

    private long records;
    private double busy;
    private double squares;
    /** Offset of the last commit. {@code lead}: maximum by which a committed offset exceeded the number of records. */
    private long committed = -1;
    private long lead;
    /** States after the reported state, in order. */
    private final Deque<State> kept = new ArrayDeque<>();
    private State reported = new State(0, 0, 0);

    /** Counters at one moment: number of records, sum of their seconds, and sum of their squared seconds. */
    record State(long records, double busy, double squares) {
        /** Interpolates the counters at a number of records between this state and a later one. */
        State until(long count, State later) {
            double share = (double) (count - records) / (later.records - records);
            return new State(count, busy + share * (later.busy - busy), squares + share * (later.squares - squares));
        }
    }

    void addRecords(long count) {
        records += count;
    }

    /** Adds the seconds of one record. */
    void addTime(double seconds) {
        busy += seconds;
        addSpread(seconds);
    }

    /** Adds seconds only to the sum of squares, which widens the confidence interval of the mean. */
    void addSpread(double seconds) {
        squares += seconds * seconds;
    }

    /** Returns the counters, with the seconds that the present record has taken so far. */
    State state(double underWay) {
        return new State(records, busy + underWay, squares + underWay * underWay);
    }

    State reported() {
        return reported;
    }

    /**
     * Sets the state to report with a committed offset.
     *
     * <p>An application may commit before or after it processes records. The planner ignores a report whose number of
     * records grows by more than the committed offset. So this method looks up the state at a smaller number of
     * records: the offset, minus the largest difference so far between a committed offset and the counted records.
     */
    void commit(long offset, State now) {
        long ahead = offset - now.records;
        if (committed < 0 || offset < committed) {
            lead = ahead;
            kept.clear();
        }
        lead = Math.max(lead, ahead);
        committed = offset;
        keep(now);
        State found = at(offset - lead);
        if (found.records >= reported.records) {
            reported = new State(found.records,
                Math.max(reported.busy, found.busy), Math.max(reported.squares, found.squares));
        }
    }

    private void keep(State now) {
        if (!kept.isEmpty() && kept.getLast().records == now.records) {
            kept.removeLast();
        }
        if (kept.size() >= KEPT) {
            boolean[] every = {false};
            kept.removeIf(state -> every[0] = !every[0]);
        }
        kept.addLast(now);
    }

    /** Returns the state at a number of records, and removes all earlier states. */
    private State at(long count) {
        State before = reported;
        while (!kept.isEmpty() && kept.getFirst().records <= count) {
            before = kept.removeFirst();
        }
        return kept.isEmpty() || count <= before.records ? before : before.until(count, kept.getFirst());
    }
}
