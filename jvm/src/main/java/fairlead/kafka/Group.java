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
 * The members of a group at a rebalance, as its leader sees them. Also computes the members' names, {@code range},
 * and the partitions that cooperative members must give up first, as {@code members.py}, {@code ranges.py} and
 * {@code cooperation.py} do.
 *
 * @param partitionCounts map from each existing topic with subscribers to its number of partitions
 */
record Group(List<Member> members, Map<String, Integer> partitionCounts) {
    /**
     * One member.
     *
     * @param instanceId {@code group.instance.id} of a static member, else null
     * @param owned the partitions that a cooperative member still owns; empty for an eager member, which has
     *     revoked all its partitions
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
     * Returns a map from member id to the name in plans: the instance id, else the client id if no other member
     * has the same one, else the member id.
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

    /** Gives each subscriber of a topic one contiguous range, as Kafka's default assignor does without racks. */
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
     * Removes from every share the partitions that another member still owns (KIP-429). Their owner does not find
     * them in its share, gives them up and rejoins. A partition that two members claim to own is in no share.
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

    /** Returns the number of partitions in all shares. */
    static int size(Map<String, List<TopicPartition>> shares) {
        return shares.values().stream().mapToInt(List::size).sum();
    }
}
