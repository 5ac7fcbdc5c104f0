package fairlead.kafka;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;

/**
 * The members of a group at a rebalance, as its leader sees them, and computations without a plan: names,
 * {@code range}, and the partitions that cooperative members must give up first. The same as {@code
 * members.py}, {@code ranges.py} and {@code cooperation.py}.
 *
 * @param partitionCounts topic to number of partitions, for existing topics with subscribers
 */
record Group(List<Member> members, Map<String, Integer> partitionCounts) {
    /**
     * One member.
     *
     * @param instanceId {@code group.instance.id}, of static members, or null
     * @param owned the partitions that a cooperative member still owns; empty for an eager member, which has revoked all of them
     */
    record Member(
        String memberId, Collection<String> topics, String instanceId, Notes.Subscribed note,
        Collection<TopicPartition> owned) {
        Member {
            String known = instanceId == null || instanceId.isEmpty() ? note.instanceId() : instanceId;
            instanceId = known == null || known.isEmpty() ? null : known;
        }
    }

    /**
     * Returns the name of each member in plans: its instance id, else its client id if no other member has
     * the same, else its member id.
     */
    Map<String, String> names() {
        Map<String, Integer> instances = new HashMap<>();
        Map<String, Integer> clients = new HashMap<>();
        Set<String> memberIds = new HashSet<>();
        for (Member member : members) {
            memberIds.add(member.memberId);
            if (member.instanceId != null) {
                instances.merge(member.instanceId, 1, Integer::sum);
            } else if (member.note.clientId() != null) {
                clients.merge(member.note.clientId(), 1, Integer::sum);
            }
        }
        Map<String, String> names = new LinkedHashMap<>();
        for (Member member : members) {
            String client = member.note.clientId() == null ? "" : member.note.clientId();
            String name = member.instanceId != null ? member.instanceId : client;
            boolean unique = member.instanceId != null
                ? instances.get(name) == 1
                : !name.isEmpty() && clients.get(name) == 1 && !instances.containsKey(name);
            names.put(
                member.memberId, unique && !memberIds.contains(name) ? name : member.memberId);
        }
        return names;
    }

    /** Gives each subscriber of a topic one contiguous range: Kafka's default, without racks. */
    Map<String, List<TopicPartition>> range() {
        List<Member> ring = new ArrayList<>(members);
        ring.sort(Comparator.comparing(Member::instanceId, Comparator.nullsLast(Comparator.naturalOrder()))
            .thenComparing(Member::memberId));
        Map<String, List<TopicPartition>> shares = new LinkedHashMap<>();
        members.forEach(member -> shares.put(member.memberId, new ArrayList<>()));
        for (String topic : new TreeSet<>(partitionCounts.keySet())) {
            List<Member> readers = new ArrayList<>(ring);
            readers.removeIf(member -> !member.topics.contains(topic));
            int count = partitionCounts.get(topic);
            int next = 0;
            for (int at = 0; at < readers.size(); at++) {
                int size = count / readers.size() + (at < count % readers.size() ? 1 : 0);
                for (int end = next + size; next < end; next++) {
                    shares.get(readers.get(at).memberId).add(new TopicPartition(topic, next));
                }
            }
        }
        return shares;
    }

    /**
     * Removes from every share the partitions that another member still owns (KIP-429): their owner finds
     * them missing, gives them up and rejoins. A partition that two members claim is removed from both.
     */
    Map<String, List<TopicPartition>> firstRound(Map<String, List<TopicPartition>> shares) {
        Map<TopicPartition, Set<String>> holders = new HashMap<>();
        for (Member member : members) {
            for (TopicPartition partition : member.owned) {
                holders.computeIfAbsent(partition, one -> new HashSet<>()).add(member.memberId);
            }
        }
        Map<String, List<TopicPartition>> first = new LinkedHashMap<>();
        shares.forEach((memberId, share) -> first.put(memberId, share.stream()
            .filter(partition -> Set.of(memberId).containsAll(holders.getOrDefault(partition, Set.of())))
            .toList()));
        return first;
    }

    /** Returns the number of partitions. */
    static int size(Map<String, List<TopicPartition>> shares) {
        return shares.values().stream().mapToInt(List::size).sum();
    }
}
