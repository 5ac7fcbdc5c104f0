package fairlead.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * Fits a plan to the members that are really there: the decision of {@code fairlead/wire/fit.py}, partition
 * by partition.
 *
 * <p>Members that the plan names keep their share, as far as they still subscribe. A newcomer takes over the
 * whole share of a member that is gone, when it subscribes to all topics of it: the heaviest share first, to
 * the newcomer with the fewest topics. What is left is placed one by one: topics with the fewest subscribers
 * first, within equal subscribers the heaviest partition first, each to the subscriber with the fewest
 * partitions, then with the least weight, then the lowest name. Of partitions that weigh the same, who gets
 * which is then exchanged so that topics spread over members ({@link Spread}).
 *
 * <p>Names are in the order of their code points, and weights are added in the order of the document: so
 * that every language comes to the same sums.
 */
final class Fit {
    private final String[] members;
    private final String[] topics;
    private final Map<String, Integer> topicNumbers = new HashMap<>();
    /** Of each topic, the members that read it. */
    private final BitSet[] readers;
    /** Of each topic, the index of its partition 0; the last is the number of partitions. */
    private final int[] offsets;
    private final double[] weights;
    /** Of each partition, its member's number; -1: none. */
    private final int[] owner;
    private final PlanDocument plan;

    /**
     * Decides.
     *
     * @param plan its members, topics and partition counts may differ from the present ones
     * @param subscriptions member name to subscribed topics
     * @param partitionCounts topic to number of partitions, of the topics that exist
     * @return member name to topic to partition numbers, ascending; every member is present, topics of
     *     which it owns nothing are not
     */
    static Map<String, Map<String, int[]>> fit(
        PlanDocument plan, Map<String, ? extends Collection<String>> subscriptions,
        Map<String, Integer> partitionCounts) {
        return decide(plan, subscriptions, partitionCounts).byMember();
    }

    /** Decides the same, to be asked for {@link #owners}: a million partitions as maps take their time. */
    static Fit decide(
        PlanDocument plan, Map<String, ? extends Collection<String>> subscriptions,
        Map<String, Integer> partitionCounts) {
        Fit fit = new Fit(plan, subscriptions, partitionCounts);
        fit.keep();
        fit.takeOver();
        fit.place();
        return fit;
    }

    /** Member names, to which owners are the numbers. */
    String[] members() {
        return members;
    }

    /** The topics that exist and that somebody reads. */
    String[] topics() {
        return topics;
    }

    /** Whom the partitions of one of the topics go to. */
    int[] owners(int topic) {
        return Arrays.copyOfRange(owner, offsets[topic], offsets[topic + 1]);
    }

    private Fit(
        PlanDocument plan, Map<String, ? extends Collection<String>> subscriptions,
        Map<String, Integer> partitionCounts) {
        this.plan = plan;
        members = subscriptions.keySet().toArray(new String[0]);
        Arrays.sort(members, PlanDocument::compareNames);
        // Members that read the same may share what says so: it is then looked at once.
        Map<Collection<String>, int[]> numbersOf = new IdentityHashMap<>();
        subscriptions.values().forEach(read -> numbersOf.put(read, null));
        Set<String> existing = new HashSet<>();
        numbersOf.keySet().forEach(existing::addAll);
        existing.removeIf(topic -> !partitionCounts.containsKey(topic));
        topics = existing.toArray(new String[0]);
        Arrays.sort(topics, PlanDocument::compareNames);
        offsets = new int[topics.length + 1];
        readers = new BitSet[topics.length];
        for (int topic = 0; topic < topics.length; topic++) {
            topicNumbers.put(topics[topic], topic);
            offsets[topic + 1] = Math.addExact(offsets[topic], partitionCounts.get(topics[topic]));
            readers[topic] = new BitSet(members.length);
        }
        for (int member = 0; member < members.length; member++) {
            for (int number : numbersOf.computeIfAbsent(subscriptions.get(members[member]), this::numbers)) {
                readers[number].set(member);
            }
        }
        weights = new double[offsets[topics.length]];
        for (int topic = 0; topic < topics.length; topic++) {
            double[] known = plan.weights().get(topics[topic]);
            if (known != null) {
                int count = Math.min(known.length, offsets[topic + 1] - offsets[topic]);
                System.arraycopy(known, 0, weights, offsets[topic], count);
            }
        }
        owner = new int[weights.length];
        Arrays.fill(owner, -1);
    }

    private int[] numbers(Collection<String> read) {
        return read.stream().map(topicNumbers::get).filter(Objects::nonNull).mapToInt(number -> number).toArray();
    }

    /** What is done with each partition of a member's share that still exists. */
    private interface Planned {
        void partition(int topic, int index);
    }

    private void each(PlanDocument.Share share, Planned planned) {
        share.ranges.forEach((name, ranges) -> {
            Integer topic = topicNumbers.get(name);
            if (topic != null) {
                int count = offsets[topic + 1] - offsets[topic];
                for (int range = 0; range < ranges.length; range += 2) {
                    for (int partition = ranges[range]; partition <= ranges[range + 1] && partition < count; partition++) {
                        planned.partition(topic, offsets[topic] + partition);
                    }
                }
            }
        });
    }

    private void keep() {
        for (int member = 0; member < members.length; member++) {
            PlanDocument.Share share = plan.members().get(members[member]);
            int number = member;
            if (share != null) {
                each(share, (topic, index) -> {
                    if (readers[topic].get(number)) {
                        owner[index] = number;
                    }
                });
            }
        }
    }

    /** The share of a member that is gone, as far as it still exists. */
    private static final class Gone {
        final String name;
        final PlanDocument.Share share;
        final BitSet topics = new BitSet();
        int size;
        double load;

        Gone(String name, PlanDocument.Share share) {
            this.name = name;
            this.share = share;
        }

        static int heaviestFirst(Gone one, Gone other) {
            int by = compare(other.load, one.load);
            by = by != 0 ? by : Integer.compare(other.size, one.size);
            return by != 0 ? by : PlanDocument.compareNames(one.name, other.name);
        }
    }

    private void takeOver() {
        Set<String> present = new HashSet<>(Arrays.asList(members));
        List<Integer> newcomers = new ArrayList<>();
        for (int member = 0; member < members.length; member++) {
            if (!plan.members().containsKey(members[member])) {
                newcomers.add(member);
            }
        }
        if (newcomers.isEmpty()) {
            return;
        }
        List<Gone> gone = new ArrayList<>();
        plan.members().forEach((name, share) -> {
            if (!present.contains(name)) {
                Gone one = new Gone(name, share);
                each(share, (topic, index) -> {
                    one.topics.set(topic);
                    one.size++;
                    one.load += weights[index];
                });
                if (one.size > 0) {
                    gone.add(one);
                }
            }
        });
        gone.sort(Gone::heaviestFirst);
        BitSet[] reads = new BitSet[members.length];
        for (int newcomer : newcomers) {
            reads[newcomer] = new BitSet(topics.length);
            for (int topic = 0; topic < topics.length; topic++) {
                reads[newcomer].set(topic, readers[topic].get(newcomer));
            }
        }
        newcomers.sort((one, other) -> Integer.compare(reads[one].cardinality(), reads[other].cardinality()));
        for (Gone one : gone) {
            for (int at = 0; at < newcomers.size(); at++) {
                int newcomer = newcomers.get(at);
                BitSet lacking = (BitSet) one.topics.clone();
                lacking.andNot(reads[newcomer]);
                if (lacking.isEmpty()) {
                    each(one.share, (topic, index) -> owner[index] = newcomer);
                    newcomers.remove(at);
                    break;
                }
            }
        }
    }

    private void place() {
        int[] counts = new int[members.length];
        double[] loads = new double[members.length];
        for (int index = 0; index < owner.length; index++) {
            if (owner[index] >= 0) {
                counts[owner[index]]++;
                loads[owner[index]] += weights[index];
            }
        }
        Map<BitSet, List<Integer>> same = new LinkedHashMap<>();
        for (int topic = 0; topic < topics.length; topic++) {
            if (hasOrphan(topic)) {
                same.computeIfAbsent(readers[topic], audience -> new ArrayList<>()).add(topic);
            }
        }
        List<BitSet> audiences = new ArrayList<>(same.keySet());
        // The sort is stable: audiences of one size stay in the order of their first topics.
        audiences.sort((one, other) -> Integer.compare(one.cardinality(), other.cardinality()));
        for (BitSet audience : audiences) {
            int[] orphans = heaviestFirst(orphans(same.get(audience)));
            int[] heap = audience.stream().toArray();
            for (int at = heap.length / 2 - 1; at >= 0; at--) {
                siftDown(heap, at, counts, loads);
            }
            for (int index : orphans) {
                int member = heap[0];
                owner[index] = member;
                counts[member]++;
                loads[member] += weights[index];
                siftDown(heap, 0, counts, loads);
            }
            spread(same.get(audience), audience.stream().toArray(), orphans);
        }
    }

    /** Exchanges what was placed among some members, the heaviest first, so that topics spread. */
    private void spread(List<Integer> ofTopics, int[] among, int[] placed) {
        if ((long) ofTopics.size() * among.length > Spread.PAIRS) {
            return;
        }
        Spread spread = null;
        for (int start = 0, end; start < placed.length; start = end) {
            end = start + 1;
            while (end < placed.length && weights[placed[end]] == weights[placed[start]]) {
                end++;
            }
            int[] rows = new int[end - start];
            int[] columns = new int[end - start];
            for (int at = start; at < end; at++) {
                rows[at - start] = Collections.binarySearch(ofTopics, topicOf(placed[at]));
                columns[at - start] = Arrays.binarySearch(among, owner[placed[at]]);
            }
            if (rows[0] != rows[rows.length - 1]) {
                spread = spread == null ? counted(ofTopics, among) : spread;
                spread.exchange(rows, columns);
                for (int at = start; at < end; at++) {
                    owner[placed[at]] = among[columns[at - start]];
                }
            }
        }
    }

    private Spread counted(List<Integer> ofTopics, int[] among) {
        int[] columns = new int[members.length];
        for (int column = 0; column < among.length; column++) {
            columns[among[column]] = column;
        }
        int[][] counts = new int[ofTopics.size()][among.length];
        int[] even = new int[ofTopics.size()];
        for (int row = 0; row < counts.length; row++) {
            int topic = ofTopics.get(row);
            for (int index = offsets[topic]; index < offsets[topic + 1]; index++) {
                counts[row][columns[owner[index]]]++;
            }
            even[row] = (offsets[topic + 1] - offsets[topic] + among.length - 1) / among.length;
        }
        return new Spread(counts, even);
    }

    /** The last of the topics that start there: the others have no partitions. */
    private int topicOf(int index) {
        int low = 0;
        int high = topics.length;
        while (low + 1 < high) {
            int middle = (low + high) >>> 1;
            if (offsets[middle] <= index) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return low;
    }

    private boolean hasOrphan(int topic) {
        for (int index = offsets[topic]; index < offsets[topic + 1]; index++) {
            if (owner[index] < 0) {
                return true;
            }
        }
        return false;
    }

    private int[] orphans(List<Integer> ofTopics) {
        int[] found = new int[64];
        int size = 0;
        for (int topic : ofTopics) {
            for (int index = offsets[topic]; index < offsets[topic + 1]; index++) {
                if (owner[index] < 0) {
                    found = size == found.length ? Arrays.copyOf(found, 2 * size) : found;
                    found[size++] = index;
                }
            }
        }
        return Arrays.copyOf(found, size);
    }

    /** Sorts by weight, the heaviest first, and stably: a merge sort from below. */
    private int[] heaviestFirst(int[] indexes) {
        int[] from = indexes;
        int[] to = new int[from.length];
        for (int width = 1; width < from.length && !isSorted(from); width *= 2) {
            for (int start = 0; start < from.length; start += 2 * width) {
                int middle = Math.min(start + width, from.length);
                int end = Math.min(start + 2 * width, from.length);
                int left = start;
                int right = middle;
                for (int at = start; at < end; at++) {
                    boolean second = left == middle
                        || (right < end && weights[from[right]] > weights[from[left]]);
                    to[at] = from[second ? right++ : left++];
                }
            }
            int[] sorted = to;
            to = from;
            from = sorted;
        }
        return from;
    }

    private boolean isSorted(int[] indexes) {
        for (int at = 1; at < indexes.length; at++) {
            if (weights[indexes[at]] > weights[indexes[at - 1]]) {
                return false;
            }
        }
        return true;
    }

    private static void siftDown(int[] heap, int start, int[] counts, double[] loads) {
        int at = start;
        int moved = heap[at];
        while (2 * at + 1 < heap.length) {
            int child = 2 * at + 1;
            if (child + 1 < heap.length && isLess(heap[child + 1], heap[child], counts, loads)) {
                child++;
            }
            if (!isLess(heap[child], moved, counts, loads)) {
                break;
            }
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = moved;
    }

    private static boolean isLess(int one, int other, int[] counts, double[] loads) {
        int by = Integer.compare(counts[one], counts[other]);
        by = by != 0 ? by : compare(loads[one], loads[other]);
        return by != 0 ? by < 0 : one < other;
    }

    /** Compares as Python does, to which both zeros are one. */
    private static int compare(double one, double other) {
        return one < other ? -1 : one > other ? 1 : 0;
    }

    private Map<String, Map<String, int[]>> byMember() {
        Map<String, Map<String, int[]>> shares = new LinkedHashMap<>();
        for (String member : members) {
            shares.put(member, new LinkedHashMap<>());
        }
        int[] sizes = new int[members.length];
        for (int topic = 0; topic < topics.length; topic++) {
            Arrays.fill(sizes, 0);
            for (int index = offsets[topic]; index < offsets[topic + 1]; index++) {
                sizes[owner[index]]++;
            }
            int[][] found = new int[members.length][];
            for (int member = 0; member < members.length; member++) {
                if (sizes[member] > 0) {
                    found[member] = new int[sizes[member]];
                    shares.get(members[member]).put(topics[topic], found[member]);
                }
            }
            Arrays.fill(sizes, 0);
            for (int index = offsets[topic]; index < offsets[topic + 1]; index++) {
                int member = owner[index];
                found[member][sizes[member]++] = index - offsets[topic];
            }
        }
        return shares;
    }
}
