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
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * A group as its coordinator shows it, as arrays: members and topics have numbers, and partition p of
 * topic t has the index {@code offsets[t] + p}.
 *
 * <p>Nudges are left out: members that came to have the target computed, and read nothing.
 */
final class GroupView {
    final GroupSpec spec;
    /** Member ids, ascending, without nudges. */
    final String[] members;
    /** The {@code group.instance.id} of each; null: it has none. */
    final String[] instances;
    /** Topics that exist and that somebody reads, ascending. */
    final Uuid[] topics;
    /** Where each topic's partitions begin, and the end of all. */
    final int[] offsets;
    /** Of each member, the numbers of the topics it reads. Members that read the same share one. */
    final BitSet[] reads;
    /** Whether all members read the same. */
    final boolean alike;
    /** The nudges that were left out. */
    final List<NudgeRack> nudges;

    private final Map<Uuid, Integer> numbers;

    /** What one member is to read. */
    private record Share(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {}

    /** The plan topic's id tells nudges, which read nothing else; null: it is not known yet. */
    GroupView(GroupSpec spec, SubscribedTopicDescriber describer, Uuid planTopic) {
        this.spec = spec;
        nudges = new ArrayList<>();
        var ids = new ArrayList<String>();
        for (String id : spec.memberIds()) {
            NudgeRack nudge = nudgeOf(spec.memberSubscription(id), planTopic);
            if (nudge == null) {
                ids.add(id);
            } else {
                nudges.add(nudge);
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
     * What a member that came as a nudge says; null: it is none. One that reads something else than the plan
     * topic is none, whatever its rack says: what it reads must have an owner.
     */
    private static NudgeRack nudgeOf(MemberSubscription member, Uuid planTopic) {
        NudgeRack nudge = member.rackId().map(NudgeRack::of).orElse(null);
        if (nudge == null || member.instanceId().isPresent()) {
            return null;
        }
        // The coordinator's set of topics equals none but its own kind.
        Set<Uuid> read = new HashSet<>(member.subscribedTopicIds());
        read.remove(planTopic);
        return read.size() <= (planTopic == null ? 1 : 0) ? nudge : null;
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

    /** The number of a topic; -1: nobody reads it, or it does not exist. */
    int numberOf(Uuid topic) {
        return numbers.getOrDefault(topic, -1);
    }

    /** How many partitions all topics have. */
    int size() {
        return offsets[topics.length];
    }

    /** Partitions of one topic. */
    int count(int topic) {
        return offsets[topic + 1] - offsets[topic];
    }

    /** The targets as they are: of each partition the member that is to read it, and still may; else -1. */
    int[] targets() {
        int[] owner = new int[size()];
        Arrays.fill(owner, -1);
        for (int m = 0; m < members.length; m++) {
            for (var share : spec.memberAssignment(members[m]).partitions().entrySet()) {
                int topic = numberOf(share.getKey());
                if (topic < 0 || !reads[m].get(topic)) {
                    continue;
                }
                int first = offsets[topic];
                int count = offsets[topic + 1] - first;
                for (int partition : share.getValue()) {
                    if (partition >= 0 && partition < count && owner[first + partition] < 0) {
                        owner[first + partition] = m;
                    }
                }
            }
        }
        return owner;
    }

    /** Whether no member that is no nudge has a target: the group has just begun. */
    boolean untouched() {
        for (String member : members) {
            if (!spec.memberAssignment(member).partitions().isEmpty()) {
                return false;
            }
        }
        return true;
    }

    /** Say who reads what: every member is there, nudges with nothing. */
    GroupAssignment assignment(int[] owner) {
        int[][] partitions = new int[members.length][];
        int[][] cuts = new int[members.length][];
        int[][] read = new int[members.length][];
        allot(owner, partitions, cuts, read);
        int[] filled = new int[members.length];
        int[] pieces = new int[members.length];
        for (int t = 0; t < topics.length; t++) {
            for (int index = offsets[t]; index < offsets[t + 1]; index++) {
                int m = owner[index];
                if (m < 0) {
                    continue;
                }
                if (pieces[m] == 0 || read[m][pieces[m] - 1] != t) {
                    read[m][pieces[m]] = t;
                    cuts[m][pieces[m]++] = filled[m];
                }
                partitions[m][filled[m]++] = index - offsets[t];
            }
        }
        Map<String, MemberAssignment> found = new HashMap<>(2 * spec.memberIds().size());
        for (int m = 0; m < members.length; m++) {
            Uuid[] ids = new Uuid[read[m].length];
            for (int n = 0; n < ids.length; n++) {
                ids[n] = topics[read[m][n]];
            }
            cuts[m][ids.length] = filled[m];
            found.put(members[m], new Share(new ShareMap(ids, cuts[m], partitions[m])));
        }
        return complete(found);
    }

    private void allot(int[] owner, int[][] partitions, int[][] cuts, int[][] read) {
        int[] sizes = new int[members.length];
        int[] pieces = new int[members.length];
        int[] last = new int[members.length];
        Arrays.fill(last, -1);
        for (int t = 0; t < topics.length; t++) {
            for (int index = offsets[t]; index < offsets[t + 1]; index++) {
                int m = owner[index];
                if (m >= 0) {
                    sizes[m]++;
                    if (last[m] != t) {
                        last[m] = t;
                        pieces[m]++;
                    }
                }
            }
        }
        for (int m = 0; m < members.length; m++) {
            partitions[m] = new int[sizes[m]];
            cuts[m] = new int[pieces[m] + 1];
            read[m] = new int[pieces[m]];
        }
    }

    /** The group as Kafka's own assignors may see it: without nudges, of which they know nothing. */
    GroupSpec withoutNudges() {
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

            @Override
            public boolean isPartitionAssignable(Uuid topic, int partition) {
                return spec.isPartitionAssignable(topic, partition);
            }

            @Override
            public MemberSubscription memberSubscription(String member) {
                return spec.memberSubscription(member);
            }

            @Override
            public MemberAssignment memberAssignment(String member) {
                // The uniform assignor tells by the map's class whether it may go on with it.
                Map<Uuid, Set<Integer>> targets = spec.memberAssignment(member).partitions();
                return new Share(Collections.unmodifiableMap(targets));
            }
        };
    }

    /** Add the members that get nothing, nudges among them. */
    GroupAssignment complete(Map<String, MemberAssignment> found) {
        for (String id : spec.memberIds()) {
            found.putIfAbsent(id, new Share(Map.of()));
        }
        return new GroupAssignment(found);
    }
}
