package fairlead.kafka;

import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import org.apache.kafka.common.Uuid;

/**
 * The share of one member, topic id to partitions: an immutable view of three arrays.
 *
 * <p>A million partitions in 500 topics over 2,000 members make up to a million entries; as objects, they
 * would cause most of the cost of a call.
 */
final class ShareMap extends AbstractMap<Uuid, Set<Integer>> {
    private final Uuid[] topics;
    private final int[] cuts;
    private final int[] partitions;

    /** Ascending topics, the index at which each topic's partitions begin (and the end), and the partitions. */
    ShareMap(Uuid[] topics, int[] cuts, int[] partitions) {
        this.topics = topics;
        this.cuts = cuts;
        this.partitions = partitions;
    }

    /** Builds the share of one member, topic by topic, in the order of topic ids. */
    static final class Builder {
        private static final int FEW = 8;
        private final int[] partitions;
        private int[] numbers = new int[FEW];
        private int[] cuts = new int[FEW];
        private int filled;
        private int pieces;
        private int last = -1;

        /** A builder for a number of partitions. */
        Builder(int size) {
            partitions = new int[size];
        }

        /** Adds a partition of a topic, given by its number; calls come in ascending order of both. */
        void add(int topic, int partition) {
            if (topic != last) {
                if (pieces == numbers.length) {
                    numbers = Arrays.copyOf(numbers, 2 * pieces);
                    cuts = Arrays.copyOf(cuts, 2 * pieces);
                }
                numbers[pieces] = topic;
                cuts[pieces++] = filled;
                last = topic;
            }
            partitions[filled++] = partition;
        }

        /** Returns the share after the last addition, given the ids of the topics by number. */
        ShareMap build(Uuid[] called) {
            Uuid[] topics = new Uuid[pieces];
            Arrays.setAll(topics, piece -> called[numbers[piece]]);
            int[] ends = Arrays.copyOf(cuts, pieces + 1);
            ends[pieces] = filled;
            return new ShareMap(topics, ends, partitions);
        }
    }

    @Override
    public int size() {
        return topics.length;
    }

    @Override
    public boolean containsKey(Object topic) {
        return get(topic) != null;
    }

    @Override
    public Set<Integer> get(Object topic) {
        int number = topic instanceof Uuid ? Arrays.binarySearch(topics, (Uuid) topic) : -1;
        return number < 0 ? null : share(number);
    }

    private Set<Integer> share(int number) {
        return new PartitionSet(partitions, cuts[number], cuts[number + 1]);
    }

    @Override
    public Set<Map.Entry<Uuid, Set<Integer>>> entrySet() {
        return new AbstractSet<>() {
            @Override
            public int size() {
                return topics.length;
            }

            @Override
            public Iterator<Map.Entry<Uuid, Set<Integer>>> iterator() {
                return new Iterator<>() {
                    private int next = 0;

                    @Override
                    public boolean hasNext() {
                        return next < topics.length;
                    }

                    @Override
                    public Map.Entry<Uuid, Set<Integer>> next() {
                        if (next >= topics.length) {
                            throw new NoSuchElementException();
                        }
                        var entry = new SimpleImmutableEntry<>(topics[next], share(next));
                        next++;
                        return entry;
                    }
                };
            }
        };
    }
}
