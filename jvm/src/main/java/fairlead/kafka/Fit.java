package fairlead.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

/**
 * Fits a plan to the present members. The result is the same as that of {@code fairlead/wire/fit.py}.
 *
 * <p>Members that the plan names keep their share, if they still subscribe to its topics. A new member takes
 * over the whole share of an absent member if it subscribes to all topics of the share. The heaviest share goes
 * first, to the new member with the fewest topics. All other partitions are placed one by one: those of topics
 * with the fewest subscribers first, among these the heaviest first. Each goes to the subscriber with the fewest
 * partitions, then with the least weight, then with the lowest name. Members take turns with partitions of the
 * same weight, so that each topic is spread over many members.
 *
 * <p>To give the same sums in every language, names are ordered by code points, and weights are added in the
 * order of the document.
 */
final class Fit {
    /** Names of the members. A member's number is its index here. */
    final String[] members;
    private final String[] topics;
    private final Map<String, Integer> topicNumbers = new HashMap<>();
    /** The readers of each topic. The next field has the topics of each member. */
    private final BitSet[] readers;
    private final BitSet[] reads;
    /** For each topic, the index of its partition 0. The last value is the number of all partitions. */
    private final int[] offsets;
    private final double[] weights;
    /** For each partition, the number of its member; -1 for none. */
    private final int[] owner;
    private final PlanDocument plan;

    /**
     * Returns the assignment.
     *
     * @param plan the plan; its members, topics and partition counts may differ from the present ones
     * @param subscriptions map from each present member to its subscribed topics
     * @param partitionCounts map from each existing topic to its number of partitions
     * @return map from every present member to its partitions, ascending
     */
    static Map<String, List<TopicPartition>> fit(
        PlanDocument plan, Map<String, ? extends Collection<String>> subscriptions,
        Map<String, Integer> partitionCounts) {
        return decide(plan, subscriptions, partitionCounts).byMember();
    }

    /** Returns the assignment in arrays, for {@link #owners}. Maps of a million partitions would be slow. */
    static Fit decide(
        PlanDocument plan, Map<String, ? extends Collection<String>> subscriptions,
        Map<String, Integer> partitionCounts) {
        Fit fit = new Fit(plan, subscriptions, partitionCounts);
        fit.keep();
        fit.takeOver();
        Placement.place(fit.readers, fit.offsets, fit.weights, fit.owner, fit.members.length);
        return fit;
    }

    /** Returns the owner of each partition of a topic. The topic must exist and have a subscriber. */
    int[] owners(String name) {
        int topic = topicNumbers.get(name);
        return Arrays.copyOfRange(owner, offsets[topic], offsets[topic + 1]);
    }

    private Fit(
        PlanDocument plan, Map<String, ? extends Collection<String>> subscriptions,
        Map<String, Integer> partitionCounts) {
        this.plan = plan;
        members = subscriptions.keySet().toArray(new String[0]);
        Arrays.sort(members, PlanDocument::compareNames);
        // Members with equal subscriptions may share one collection, which is then converted only once.
        Map<Collection<String>, BitSet> numbersOf = new IdentityHashMap<>();
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
        reads = new BitSet[members.length];
        for (int m = 0; m < members.length; m++) {
            int member = m;
            reads[m] = numbersOf.computeIfAbsent(subscriptions.get(members[m]), this::numbers);
            reads[m].stream().forEach(topic -> readers[topic].set(member));
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

    private BitSet numbers(Collection<String> read) {
        BitSet numbers = new BitSet(topics.length);
        read.stream().map(topicNumbers::get).filter(Objects::nonNull).forEach(numbers::set);
        return numbers;
    }

    /** Called for each partition of a member's share that still exists. */
    private interface Planned {
        void partition(int topic, int index);
    }

    private void each(PlanDocument.Share share, Planned planned) {
        share.ranges().forEach((name, ranges) -> {
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

    /** The share of an absent member, without partitions that no longer exist. */
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
            int by = Placement.compare(other.load, one.load);
            by = by != 0 ? by : Integer.compare(other.size, one.size);
            return by != 0 ? by : PlanDocument.compareNames(one.name, other.name);
        }
    }

    private void takeOver() {
        Set<String> present = new HashSet<>(Arrays.asList(members));
        List<Integer> newMembers = new ArrayList<>();
        for (int member = 0; member < members.length; member++) {
            if (!plan.members().containsKey(members[member])) {
                newMembers.add(member);
            }
        }
        if (newMembers.isEmpty()) {
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
        newMembers.sort(Comparator.comparingInt(member -> reads[member].cardinality()));
        for (Gone one : gone) {
            for (int at = 0; at < newMembers.size(); at++) {
                int newMember = newMembers.get(at);
                BitSet lacking = (BitSet) one.topics.clone();
                lacking.andNot(reads[newMember]);
                if (lacking.isEmpty()) {
                    each(one.share, (topic, index) -> owner[index] = newMember);
                    newMembers.remove(at);
                    break;
                }
            }
        }
    }

    private Map<String, List<TopicPartition>> byMember() {
        Map<String, List<TopicPartition>> shares = new LinkedHashMap<>();
        for (String member : members) {
            shares.put(member, new ArrayList<>());
        }
        for (int topic = 0; topic < topics.length; topic++) {
            for (int index = offsets[topic]; index < offsets[topic + 1]; index++) {
                shares.get(members[owner[index]]).add(new TopicPartition(topics[topic], index - offsets[topic]));
            }
        }
        return shares;
    }
}
