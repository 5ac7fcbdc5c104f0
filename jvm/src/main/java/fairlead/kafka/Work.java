package fairlead.kafka;

import java.util.ArrayDeque;
import java.util.Deque;

/** The counters of one partition's records, now and at committed offsets. */
final class Work {
    /** Maximum number of earlier states; then every other one is removed. */
    private static final int KEPT = 64;

    private long records;
    private double busy;
    private double squares;
    /** Offset of the last commit, and the maximum number of records that commits were ahead of the work. */
    private long committed = -1;
    private long lead;
    /** States since the reported state, in order. */
    private final Deque<State> kept = new ArrayDeque<>();
    private State reported = new State(0, 0, 0);

    /** Counters at one moment: records, their seconds, and the sum of the squared seconds per record. */
    record State(long records, double busy, double squares) {
        /** Returns the counters at a number of records between this state and a later one, in proportion. */
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

    /** Adds only the square of some seconds, which widens the confidence interval of the mean. */
    void addSpread(double seconds) {
        squares += seconds * seconds;
    }

    /** Returns the counters, including a record that has taken some seconds so far. */
    State state(double underWay) {
        return new State(records, busy + underWay, squares + underWay * underWay);
    }

    State reported() {
        return reported;
    }

    /**
     * Reports the state at a committed offset.
     *
     * <p>An application may commit ahead of its work or behind it. The planner ignores a report if its records grow
     * by more than the committed offset. So reported records are those up to the offset, less the largest lead.
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

    /** Returns the state at a number of records, and forgets the states before. */
    private State at(long count) {
        State before = reported;
        while (!kept.isEmpty() && kept.getFirst().records <= count) {
            before = kept.removeFirst();
        }
        return kept.isEmpty() || count <= before.records ? before : before.until(count, kept.getFirst());
    }
}
