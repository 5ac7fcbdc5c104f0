package fairlead.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.IntSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.stream.IntStream;

/**
 * Places partitions that have no owner: first, members' counts become even; second, their weights. No other partition
 * moves. This is the same as the last step of {@code fairlead/wire/fit.py}.
 *
 * <p>Topics with the fewest readers come first, because they leave the least choice. Among topics with the same
 * readers, the heaviest partition comes first. Each partition goes to the reader with the fewest partitions, then with
 * the least weight, then with the lowest number.
 */
final class Placement {
    private Placement() {
    }

    /**
     * Assigns each partition that has no owner, if its topic has a reader.
     *
     * @param readers the members that read each topic
     * @param offsets index of each topic's partition 0, ascending; the last value is the number of partitions
     * @param weights weight of each partition
     * @param owner the member of each partition, -1 for none; changed in place
     * @param members number of members
     * @return {@code owner}
     */
    static int[] place(BitSet[] readers, int[] offsets, double[] weights, int[] owner, int members) {
        Map<BitSet, List<Integer>> orphansOf = new LinkedHashMap<>();
        for (int topic = 0; topic < readers.length; topic++) {
            for (int index = offsets[topic]; index < offsets[topic + 1]; index++) {
                if (owner[index] < 0 && !readers[topic].isEmpty()) {
                    orphansOf.computeIfAbsent(readers[topic], audience -> new ArrayList<>()).add(index);
                }
            }
        }
        int[] counts = new int[members];
        double[] loads = new double[members];
        for (int index = 0; index < owner.length && !orphansOf.isEmpty(); index++) {
            if (owner[index] >= 0) {
                counts[owner[index]]++;
                loads[owner[index]] += weights[index];
            }
        }
        List<BitSet> audiences = new ArrayList<>(orphansOf.keySet());
        // The sort is stable, so sets of readers with equal sizes stay in the order of their first topics.
        audiences.sort(Comparator.comparingInt(BitSet::cardinality));
        for (BitSet audience : audiences) {
            Integer[] orphans = orphansOf.get(audience).toArray(new Integer[0]);
            Arrays.sort(orphans, (one, other) -> compare(weights[other], weights[one])); // stable, too
            Queue<Integer> least = new PriorityQueue<>((one, other) -> {
                int by = Integer.compare(counts[one], counts[other]);
                by = by != 0 ? by : compare(loads[one], loads[other]);
                return by != 0 ? by : Integer.compare(one, other);
            });
            audience.stream().forEach(least::add);
            for (int index : orphans) {
                int member = least.remove();
                owner[index] = member;
                counts[member]++;
                loads[member] += weights[index];
                least.add(member);
            }
            dealInTurns(orphans, weights, owner, members);
        }
        return owner;
    }

    /**
     * Exchanges partitions of equal weight, which are adjacent in {@code placed}, between the members that get them.
     * Each member then gets its partitions at even intervals, so that each topic is spread over many members. The
     * number and the weight of each member's partitions stay the same.
     */
    private static void dealInTurns(Integer[] placed, double[] weights, int[] owner, int members) {
        for (int start = 0, end; start < placed.length; start = end) {
            end = start + 1;
            while (end < placed.length && weights[placed[end]] == weights[placed[start]]) {
                end++;
            }
            int[] received = new int[members];
            for (int at = start; at < end; at++) {
                received[owner[placed[at]]]++;
            }
            int[] takers = IntStream.range(0, members).filter(member -> received[member] > 0).toArray();
            IntSummaryStatistics sizes = Arrays.stream(takers).map(member -> received[member]).summaryStatistics();
            if (sizes.getMax() - sizes.getMin() > 1) {
                // For each partition that a member gets: its place between 0 and 1, at even intervals, and the member.
                List<Map.Entry<Double, Integer>> turns = new ArrayList<>();
                for (int member : takers) {
                    for (int nth = 0; nth < received[member]; nth++) {
                        turns.add(Map.entry((nth + 0.5) / received[member], member));
                    }
                }
                turns.sort(Map.Entry.<Double, Integer>comparingByKey().thenComparing(Map.Entry.comparingByValue()));
                for (int at = start; at < end; at++) {
                    owner[placed[at]] = turns.get(at - start).getValue();
                }
            }
        }
    }

    /** Compares numbers as Python does: 0.0 and -0.0 are equal. */
    static int compare(double one, double other) {
        return one < other ? -1 : one > other ? 1 : 0;
    }
}
