package fairlead.kafka;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;

/** How long an application took for the records of one partition. */
final class Work {
    /** Number of earlier states that are kept, and seconds between two of them at least. */
    private static final int KEPT = 64;
    private static final double KEPT_EVERY_S = 1;
    /** Seconds for which the largest lead of commits over records counts. */
    private static final double LEAD_S = 600;
    private static final State BEFORE = new State(Double.NEGATIVE_INFINITY, -1, 0, 0);

    private long records;
    private double busy;
    private double squares;
    /** Offset of the last commit; how far commits were ahead of the records at most; since when. */
    private long committed = -1;
    private long lead;
    private double leadAt = Double.NEGATIVE_INFINITY;
    private final Deque<State> kept = new ArrayDeque<>();
    private State reported = new State(0, 0, 0, 0);

    /** Counters at a time: records, seconds spent on them, and the sum of the squares of these seconds. */
    static final class State {
        final double at;
        final long records;
        final double busy;
        final double squares;

        State(double at, long records, double busy, double squares) {
            this.at = at;
            this.records = records;
            this.busy = busy;
            this.squares = squares;
        }
    }

    void addRecords(long count) {
        records += count;
    }

    /** Adds the time that one record took. */
    void addTime(double seconds) {
        busy += seconds;
        addSpread(seconds);
    }

    /** Adds the square of a time only: it widens the interval of the mean. */
    void addSpread(double seconds) {
        squares += seconds * seconds;
    }

    /** Returns the counters, with a record under way that has taken some seconds so far. */
    State state(double now, double underWay) {
        return new State(now, records, busy + underWay, squares + underWay * underWay);
    }

    State reported() {
        return reported;
    }

    /**
     * Reports, from now on, the newest state that counts no record beyond an offset that is committed.
     *
     * <p>An application may commit ahead of its work or behind it. A reader can check the records of a
     * report against committed offsets only if reported records never grow by more.
     */
    void commit(long offset, State now) {
        long ahead = offset - now.records;
        if (offset < committed || now.at - leadAt > LEAD_S) {
            lead = ahead;
            leadAt = now.at;
        }
        lead = Math.max(lead, ahead);
        committed = offset;
        long allowed = offset - lead;
        keep(now, allowed);
        if (now.records <= allowed) {
            report(now);
            return;
        }
        for (Iterator<State> newestFirst = kept.descendingIterator(); newestFirst.hasNext();) {
            State earlier = newestFirst.next();
            if (earlier.records <= allowed) {
                report(earlier);
                return;
            }
        }
    }

    /** Keeps a state, unless it is so near the last one that the kept ones would not go back to {@code allowed}. */
    private void keep(State now, long allowed) {
        State last = kept.isEmpty() ? BEFORE : kept.getLast();
        double apart = 2.0 * (now.records - allowed) / KEPT;
        if (now.at - last.at >= KEPT_EVERY_S && now.records - last.records > apart) {
            kept.addLast(now);
            if (kept.size() > KEPT) {
                kept.removeFirst();
            }
        }
    }

    private void report(State state) {
        if (state.records >= reported.records) {
            reported = new State(state.at, state.records,
                Math.max(reported.busy, state.busy), Math.max(reported.squares, state.squares));
        }
    }
}
