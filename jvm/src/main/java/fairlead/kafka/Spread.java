package fairlead.kafka;

import java.util.Arrays;

/**
 * Spreads the topics of partitions that {@link Fit} places: who gets which of those that weigh the same.
 * The decision of {@code fairlead/wire/fit_spread.py}, step by step.
 *
 * <p>Partitions of one weight are gone through by turns over their topics, so many at once. Each gets, of the
 * members that these were dealt to, the one that has the fewest partitions of its topic; among equals who was
 * dealt to first. All is left as it was where no share is larger than even, or where that comes neither to a
 * smaller largest share nor, at the same, to a smaller sum of squares.
 */
final class Spread {
    /** Partitions that are exchanged among each other at most. */
    private static final int AT_ONCE = 256;
    /** Pairs of topic and member that are counted at most; beyond, all stays as it was dealt. */
    static final int PAIRS = 1 << 24;

    /** Of each topic, the partitions of each member. */
    private final int[][] counts;
    /** Of each topic, the fewest that the largest share can be. */
    private final int[] even;

    Spread(int[][] counts, int[] even) {
        this.counts = counts;
        this.even = even;
    }

    /**
     * Exchanges partitions of one weight, in the order in which they were dealt, where those of one topic
     * stand together.
     *
     * @param topics of each
     * @param members whom each was dealt to; changed to whom it goes
     */
    void exchange(int[] topics, int[] members) {
        int[] order = byTurns(topics);
        for (int start = 0; start < order.length; start += AT_ONCE) {
            exchange(topics, members, Arrays.copyOfRange(order, start, Math.min(start + AT_ONCE, order.length)));
        }
    }

    /** The first of every topic, then the second of every topic. */
    private static int[] byTurns(int[] topics) {
        long[] keys = new long[topics.length];
        int first = 0;
        for (int at = 0; at < topics.length; at++) {
            first = topics[at] == topics[first] ? first : at;
            keys[at] = (long) (at - first) << Integer.SIZE | at;
        }
        Arrays.sort(keys);
        return Arrays.stream(keys).mapToInt(key -> (int) key).toArray();
    }

    private void exchange(int[] topics, int[] members, int[] some) {
        int[] rows = Arrays.stream(some).map(at -> topics[at]).sorted().distinct().toArray();
        int[] columns = Arrays.stream(some).map(at -> members[at]).sorted().distinct().toArray();
        double worst = worst(rows, columns);
        if (worst <= 1) {
            return;
        }
        long squares = squares(rows, columns);
        int[] dealt = Arrays.stream(some).map(at -> members[at]).toArray();
        for (int at : some) {
            counts[topics[at]][members[at]]--;
        }
        boolean[] taken = new boolean[some.length];
        for (int at : some) {
            int[] have = counts[topics[at]];
            int least = -1;
            for (int slot = 0; slot < dealt.length; slot++) {
                if (!taken[slot] && (least < 0 || have[dealt[slot]] < have[dealt[least]])) {
                    least = slot;
                }
            }
            taken[least] = true;
            have[dealt[least]]++;
            members[at] = dealt[least];
        }
        double worstNow = worst(rows, columns);
        if (worstNow < worst || (worstNow == worst && squares(rows, columns) < squares)) {
            return;
        }
        for (int at : some) {
            counts[topics[at]][members[at]]--;
        }
        for (int slot = 0; slot < some.length; slot++) {
            members[some[slot]] = dealt[slot];
            counts[topics[some[slot]]][dealt[slot]]++;
        }
    }

    private double worst(int[] rows, int[] columns) {
        double worst = 0;
        for (int row : rows) {
            int largest = 0;
            for (int column : columns) {
                largest = Math.max(largest, counts[row][column]);
            }
            worst = Math.max(worst, largest / (double) even[row]);
        }
        return worst;
    }

    private long squares(int[] rows, int[] columns) {
        long sum = 0;
        for (int row : rows) {
            for (int column : columns) {
                sum += (long) counts[row][column] * counts[row][column];
            }
        }
        return sum;
    }
}
