package fairlead.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * A group as its coordinator describes it, in arrays: members and topics have numbers, and partition p of topic
 * t has the index {@code offsets[t] + p}.
 *
 * <p>Triggers are left out: they join only to make the coordinator compute targets, and read nothing.
 */
final class GroupView {
    final GroupSpec spec;
    /** Member ids, ascending, without triggers. */
    final String[] members;
    /** The {@code group.instance.id} of each; null: it has none. */
    final String[] instances;
    /** Existing topics that have a reader, ascending. */
    final Uuid[] topics;
    /** Index of each topic's partition 0; the last value is the number of partitions. */
    final int[] offsets;
    /** The numbers of the topics that each member reads. Members with equal subscriptions share one array. */
    final BitSet[] reads;
    /** Whether all members read the same topics. */
    final boolean alike;
    /** The triggers that were left out. */
    final List<TriggerRack> triggers;

    private final Map<Uuid, Integer> numbers;

    /** One member's target. */
    private record Share(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {}

    /** The plan topic's id identifies triggers, which read nothing else; null: it is not known yet. */
    GroupView(GroupSpec spec, SubscribedTopicDescriber describer, Uuid planTopic) {
        this.spec = spec;
        triggers = new ArrayList<>();
        var ids = new ArrayList<String>();
        for (String id : spec.memberIds()) {
            TriggerRack trigger = triggerOf(spec.memberSubscription(id), planTopic);
            if (trigger == null) {
                ids.add(id);
            } else {
                triggers.add(trigger);
            }
        }
        members = ids.toArray(new String[0]);
        Arrays.sort(members);
        instances = new String[members.length];
        List<Set<Uuid>> subscriptions = new ArrayList<>(members.length);
        Set<Uuid> wanted = new HashSet<>();
        Set<Uuid> last = null;
        for (int m = 0; m < members.length; m++) {
            var subscription = spec.memberSubscription(members[m]);
            instances[m] = subscription.instanceId().filter(text -> !text.isEmpty()).orElse(null);
            Set<Uuid> read = subscription.subscribedTopicIds();
            if (last != null && last.equals(read)) {
                read = last;
            } else {
                wanted.addAll(read);
            }
            subscriptions.add(read);
            last = read;
        }
        Map<Uuid, Integer> counts = new HashMap<>();
        for (Uuid topic : wanted) {
            int count = describer.numPartitions(topic);
            if (count > 0) {
                counts.put(topic, count);
            }
        }
        topics = new TreeSet<>(counts.keySet()).toArray(new Uuid[0]);
        offsets = new int[topics.length + 1];
        numbers = new HashMap<>();
        for (int t = 0; t < topics.length; t++) {
            offsets[t + 1] = Math.addExact(offsets[t], counts.get(topics[t]));
            numbers.put(topics[t], t);
        }
        reads = new BitSet[members.length];
        var known = new IdentityHashMap<Set<Uuid>, BitSet>();
        var distinct = new HashMap<BitSet, BitSet>();
        for (int m = 0; m < members.length; m++) {
            BitSet bits = known.computeIfAbsent(subscriptions.get(m), this::bitsOf);
            reads[m] = distinct.computeIfAbsent(bits, same -> same);
        }
        alike = distinct.size() <= 1;
    }

    /**
     * The rack of a member that is a trigger; null: it is no trigger. A member that reads any topic except the
     * plan topic is no trigger, whatever its rack: the partitions of its topics must have owners.
     */
    private static TriggerRack triggerOf(MemberSubscription member, Uuid planTopic) {
        TriggerRack trigger = member.rackId().map(TriggerRack::of).orElse(null);
        if (trigger == null || member.instanceId().isPresent()) {
            return null;
        }
        // The coordinator's set of topics equals only sets of its own class.
        Set<Uuid> read = new HashSet<>(member.subscribedTopicIds());
        read.remove(planTopic);
        return read.size() <= (planTopic == null ? 1 : 0) ? trigger : null;
    }

    private BitSet bitsOf(Set<Uuid> read) {
        var bits = new BitSet(topics.length);
        for (Uuid topic : read) {
            Integer number = numbers.get(topic);
            if (number != null) {
                bits.set(number);
            }
        }
        return bits;
    }

    /** The number of a topic; -1: it has no reader or does not exist. */
    int numberOf(Uuid topic) {
        return numbers.getOrDefault(topic, -1);
    }

    /** Number of partitions of all topics. */
    int size() {
        return offsets[topics.length];
    }

    /** Partitions of one topic. */
    int count(int topic) {
        return offsets[topic + 1] - offsets[topic];
    }

    /** The present target of each partition; -1: none, or a member that no longer reads the topic. */
    int[] targets() {
        return targets(new BitSet());
    }

    /** Returns the same, and notes the members that lose a target. */
    private int[] targets(BitSet losing) {
        int[] owner = new int[size()];
        Arrays.fill(owner, -1);
        var walk = new TargetWalk(owner, losing);
        for (int m = 0; m < members.length; m++) {
            walk.member = m;
            walk.read = reads[m];
            spec.memberAssignment(members[m]).partitions().forEach(walk);
        }
        return owner;
    }

    /**
     * Notes the targets, member by member. Uses forEach, because creating a million entries
     * as objects would be half of the cost of a call.
     */
    private final class TargetWalk implements BiConsumer<Uuid, Set<Integer>> {
        private final int[] owner;
        private final BitSet losing;
        private int member;
        private BitSet read;

        TargetWalk(int[] owner, BitSet losing) {
            this.owner = owner;
            this.losing = losing;
        }

        @Override
        public void accept(Uuid id, Set<Integer> partitions) {
            int topic = numberOf(id);
            if (topic < 0 || !read.get(topic)) {
                losing.set(member);
                return;
            }
            int first = offsets[topic];
            int count = offsets[topic + 1] - first;
            for (int partition : partitions) {
                if (partition >= 0 && partition < count && owner[first + partition] < 0) {
                    owner[first + partition] = member;
                } else {
                    losing.set(member);
                }
            }
        }
    }

    /** Keeps the targets, and place partitions without an owner. Unchanged members keep the same object. */
    GroupAssignment keep() {
        var changed = new BitSet(members.length);
        if (isWhole()) {
            return assignment(new int[0], changed);
        }
        int[] owner = targets(changed);
        int[] before = counts(owner);
        int[] after = counts(place(owner));
        for (int m = 0; m < members.length; m++) {
            if (after[m] != before[m]) {
                changed.set(m);
            }
        }
        return assignment(owner, changed);
    }

    /**
     * Whether all targets can stay: each partition has a member that reads its topic. Only counts partitions,
     * which is half as much work as checking each of them. The coordinator guarantees that no partition is the
     * target of two members, as for Kafka's own assignors.
     */
    private boolean isWhole() {
        for (int t = 0; t < topics.length; t++) {
            for (int partition = 0; partition < count(t); partition++) {
                if (!spec.isPartitionAssigned(topics[t], partition)) {
                    return false;
                }
            }
        }
        int[] missing = new int[topics.length];
        Arrays.setAll(missing, this::count);
        boolean[] stray = new boolean[1];
        for (int m = 0; m < members.length; m++) {
            BitSet read = reads[m];
            spec.memberAssignment(members[m]).partitions().forEach((id, partitions) -> {
                int topic = numberOf(id);
                if (topic < 0 || !read.get(topic)) {
                    stray[0] = true;
                } else {
                    missing[topic] -= partitions.size();
                }
            });
        }
        return !stray[0] && Arrays.stream(missing).allMatch(number -> number == 0);
    }

    /** Gives each partition without an owner to a member, evenly by count. */
    int[] place(int[] owner) {
        BitSet[] readers = new BitSet[topics.length];
        Arrays.setAll(readers, topic -> new BitSet(members.length));
        for (int m = 0; m < members.length; m++) {
            int member = m;
            reads[m].stream().forEach(topic -> readers[topic].set(member));
        }
        return Placement.place(readers, offsets, new double[owner.length], owner, members.length);
    }

    /** Number of partitions of each member. */
    int[] counts(int[] owner) {
        int[] counts = new int[members.length];
        for (int m : owner) {
            if (m >= 0) {
                counts[m]++;
            }
        }
        return counts;
    }

    /** Whether no member except triggers has a target: the group has just begun. */
    boolean untouched() {
        for (String member : members) {
            if (!spec.memberAssignment(member).partitions().isEmpty()) {
                return false;
            }
        }
        return true;
    }

    /** Returns the assignment of all members; triggers get no partitions. */
    GroupAssignment assignment(int[] owner) {
        var everybody = new BitSet(members.length);
        everybody.set(0, members.length);
        return assignment(owner, everybody);
    }

    /** Returns the same; members that are not in {@code changed} keep their targets. */
    private GroupAssignment assignment(int[] owner, BitSet changed) {
        Map<String, MemberAssignment> found = new HashMap<>(2 * spec.memberIds().size());
        for (int m = changed.nextClearBit(0); m < members.length; m = changed.nextClearBit(m + 1)) {
            found.put(members[m], new Share(Collections.unmodifiableMap(
                spec.memberAssignment(members[m]).partitions())));
        }
        if (!changed.isEmpty()) {
            allot(owner, changed, found);
        }
        return complete(found);
    }

    private void allot(int[] owner, BitSet changed, Map<String, MemberAssignment> found) {
        int[] counts = counts(owner);
        var shares = new ShareMap.Builder[members.length];
        changed.stream().forEach(m -> shares[m] = new ShareMap.Builder(counts[m]));
        for (int t = 0; t < topics.length; t++) {
            for (int index = offsets[t]; index < offsets[t + 1]; index++) {
                ShareMap.Builder share = owner[index] < 0 ? null : shares[owner[index]];
                if (share != null) {
                    share.add(t, index - offsets[t]);
                }
            }
        }
        changed.stream().forEach(m -> found.put(members[m], new Share(shares[m].build(topics))));
    }

    /** The group as Kafka's own assignors see it, without triggers, which they do not know. */
    GroupSpec withoutTriggers() {
        return new GroupSpec() {
            @Override
            public Collection<String> memberIds() {
                return Collections.unmodifiableList(Arrays.asList(members));
            }

            @Override
            public SubscriptionType subscriptionType() {
                return alike ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
            }

            @Override
            public boolean isPartitionAssigned(Uuid topic, int partition) {
                return spec.isPartitionAssigned(topic, partition);
            }

            /** For share groups, from Kafka 4.1 on: 4.0 does not call this. */
            public boolean isPartitionAssignable(Uuid topic, int partition) {
                return true;
            }

            @Override
            public MemberSubscription memberSubscription(String member) {
                return spec.memberSubscription(member);
            }

            @Override
            public MemberAssignment memberAssignment(String member) {
                // The uniform assignor decides by the map's class whether it may change the map.
                Map<Uuid, Set<Integer>> targets = spec.memberAssignment(member).partitions();
                return new Share(Collections.unmodifiableMap(targets));
            }
        };
    }

    /** Adds the members without partitions, triggers included. */
    GroupAssignment complete(Map<String, MemberAssignment> found) {
        for (String id : spec.memberIds()) {
            found.putIfAbsent(id, new Share(Map.of()));
        }
        return new GroupAssignment(found);
    }
}
