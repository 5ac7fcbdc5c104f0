package fairlead.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * A group as its coordinator describes it, converted to arrays. Members and topics have numbers, and partition p
 * of topic t has the index {@code offsets[t] + p}.
 *
 * <p>Rebalance triggers are left out. They join only to make the coordinator compute targets.
 */
final class GroupView {
    final GroupSpec spec;
    /** Member ids, ascending, without triggers. */
    final String[] members;
    /** The {@code group.instance.id} of each member, or null. */
    final String[] instances;
    /** Ids of the existing topics that a member reads, ascending. */
    final Uuid[] topics;
    /** Index of each topic's partition 0; the last value is the number of partitions. */
    final int[] offsets;
    /** The numbers of the topics that each member reads. */
    final BitSet[] reads;
    /** Whether all members read the same topics. */
    final boolean alike;
    /** The racks of the triggers that were left out. */
    final List<TriggerRack> triggers;

    private final Map<Uuid, Integer> numbers = new HashMap<>();

    /** One member's target. */
    private record Share(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {}

    /** {@code planTopic} is the plan topic's id, by which triggers are recognised; null if it is not known yet. */
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
        Set<Uuid> read = new HashSet<>();
        for (int m = 0; m < members.length; m++) {
            MemberSubscription subscription = spec.memberSubscription(members[m]);
            instances[m] = subscription.instanceId().filter(text -> !text.isEmpty()).orElse(null);
            read.addAll(subscription.subscribedTopicIds());
        }
        topics = read.stream().filter(topic -> describer.numPartitions(topic) > 0).sorted().toArray(Uuid[]::new);
        offsets = new int[topics.length + 1];
        for (int t = 0; t < topics.length; t++) {
            offsets[t + 1] = Math.addExact(offsets[t], describer.numPartitions(topics[t]));
            numbers.put(topics[t], t);
        }
        reads = new BitSet[members.length];
        Arrays.setAll(reads, m -> bitsOf(spec.memberSubscription(members[m]).subscribedTopicIds()));
        alike = Arrays.stream(reads).distinct().count() <= 1;
    }

    /**
     * Returns the rack of a member if it is a trigger, else null. A member that reads any topic except the plan
     * topic is not a trigger, even with such a rack, because the partitions of its topics must have owners.
     */
    private static TriggerRack triggerOf(MemberSubscription member, Uuid planTopic) {
        TriggerRack trigger = member.rackId().map(TriggerRack::of).orElse(null);
        if (trigger == null || member.instanceId().isPresent()) {
            return null;
        }
        // Copied, because the coordinator's set of topics equals only sets of its own class.
        Set<Uuid> read = new HashSet<>(member.subscribedTopicIds());
        read.remove(planTopic);
        return read.size() <= (planTopic == null ? 1 : 0) ? trigger : null;
    }

    private BitSet bitsOf(Set<Uuid> read) {
        var bits = new BitSet(topics.length);
        read.stream().map(numbers::get).filter(Objects::nonNull).forEach(bits::set);
        return bits;
    }

    /** Returns the number of a topic; -1 if it does not exist or no member reads it. */
    int numberOf(Uuid topic) {
        return numbers.getOrDefault(topic, -1);
    }

    /** Returns the number of partitions of all topics. */
    int size() {
        return offsets[topics.length];
    }

    /** Returns the number of partitions of a topic. */
    int count(int topic) {
        return offsets[topic + 1] - offsets[topic];
    }

    /** Returns each partition's present target; -1 if there is none, or if that member no longer reads the topic. */
    int[] targets() {
        int[] owner = new int[size()];
        Arrays.fill(owner, -1);
        for (int m = 0; m < members.length; m++) {
            int member = m;
            // forEach creates no entry objects, of which a large group would need a million.
            spec.memberAssignment(members[m]).partitions().forEach((id, partitions) -> {
                int topic = numberOf(id);
                if (topic >= 0 && reads[member].get(topic)) {
                    for (int partition : partitions) {
                        if (partition >= 0 && partition < count(topic) && owner[offsets[topic] + partition] < 0) {
                            owner[offsets[topic] + partition] = member;
                        }
                    }
                }
            });
        }
        return owner;
    }

    /** Returns the present targets, with partitions without an owner placed. */
    GroupAssignment keep() {
        return assignment(place(targets()));
    }

    /** Gives each partition without an owner to a member, so that counts become even. */
    int[] place(int[] owner) {
        BitSet[] readers = new BitSet[topics.length];
        Arrays.setAll(readers, topic -> new BitSet(members.length));
        for (int m = 0; m < members.length; m++) {
            int member = m;
            reads[m].stream().forEach(topic -> readers[topic].set(member));
        }
        return Placement.place(readers, offsets, new double[owner.length], owner, members.length);
    }

    /** Returns whether no member has a target yet, as in a group that has just begun. */
    boolean untouched() {
        return Arrays.stream(members).allMatch(member -> spec.memberAssignment(member).partitions().isEmpty());
    }

    /** Returns the assignment of all members; triggers get no partitions. */
    GroupAssignment assignment(int[] owner) {
        List<Map<Uuid, Set<Integer>>> shares = new ArrayList<>();
        for (int m = 0; m < members.length; m++) {
            shares.add(new HashMap<>());
        }
        for (int t = 0; t < topics.length; t++) {
            int[] sizes = new int[members.length];
            for (int index = offsets[t]; index < offsets[t + 1]; index++) {
                if (owner[index] >= 0) {
                    sizes[owner[index]]++;
                }
            }
            Integer[][] owned = new Integer[members.length][];
            for (int index = offsets[t + 1] - 1; index >= offsets[t]; index--) {
                int m = owner[index];
                if (m >= 0) {
                    owned[m] = owned[m] == null ? new Integer[sizes[m]] : owned[m];
                    owned[m][--sizes[m]] = index - offsets[t];
                }
            }
            for (int m = 0; m < members.length; m++) {
                if (owned[m] != null) {
                    shares.get(m).put(topics[t], Set.of(owned[m]));
                }
            }
        }
        Map<String, MemberAssignment> found = new HashMap<>();
        for (int m = 0; m < members.length; m++) {
            found.put(members[m], new Share(shares.get(m)));
        }
        return complete(found);
    }

    /** Returns the group without triggers, for Kafka's own assignors: they would assign partitions to triggers. */
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

            /** Kafka calls this from 4.1 on, for share groups. */
            public boolean isPartitionAssignable(Uuid topic, int partition) {
                return true;
            }

            @Override
            public MemberSubscription memberSubscription(String member) {
                return spec.memberSubscription(member);
            }

            @Override
            public MemberAssignment memberAssignment(String member) {
                // The uniform assignor sees from the map's class whether it may change the map.
                Map<Uuid, Set<Integer>> targets = spec.memberAssignment(member).partitions();
                return new Share(Collections.unmodifiableMap(targets));
            }
        };
    }

    /** Adds the members without partitions, including triggers. */
    GroupAssignment complete(Map<String, MemberAssignment> found) {
        for (String id : spec.memberIds()) {
            found.putIfAbsent(id, new Share(Map.of()));
        }
        return new GroupAssignment(found);
    }
}
