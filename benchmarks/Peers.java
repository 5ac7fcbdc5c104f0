import java.io.DataInputStream;
import java.io.BufferedInputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Times an assignor of Kafka, or a published loop over partitions, on one problem: Peers.java FILE PEER WARM_UPS RUNS.
 * The last two lines of output are lists: nanoseconds of each run, and number of partitions of each member. Building
 * the input is not timed.
 */
public final class Peers {
    private final int[] counts;
    private final int[][] subscriptions;
    private final int[] owner;
    private final long[] lags;
    /** The number of each member's rack. In the next field, each partition has a bit per rack with a replica. */
    private final int[] rackOfMember;
    private final int[] racksOfPartition;
    private final String[] topics;
    private final String[] members;

    private Peers(Path file) throws Exception {
        try (var in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file), 1 << 20))) {
            counts = ints(in);
            int[] offsets = ints(in);
            int[] read = ints(in);
            owner = ints(in);
            lags = new long[owner.length];
            ByteBuffer.wrap(in.readNBytes(8 * owner.length)).asLongBuffer().get(lags);
            rackOfMember = ints(in);
            racksOfPartition = ints(in);
            subscriptions = new int[offsets.length - 1][];
            for (int m = 0; m < subscriptions.length; m++) {
                subscriptions[m] = Arrays.copyOfRange(read, offsets[m], offsets[m + 1]);
            }
        }
        topics = new String[counts.length];
        for (int t = 0; t < topics.length; t++) topics[t] = String.format("t%06d", t);
        members = new String[subscriptions.length];
        for (int m = 0; m < members.length; m++) members[m] = String.format("m%06d", m);
    }

    private static int[] ints(DataInputStream in) throws Exception {
        int[] values = new int[in.readInt()];
        ByteBuffer.wrap(in.readNBytes(4 * values.length)).asIntBuffer().get(values);
        return values;
    }

    /** A run to be timed; returns the number of partitions of each member. */
    private interface Run {
        int[] result();
    }

    private interface Peer {
        Run prepare();
    }

    public static void main(String[] arguments) throws Exception {
        var peers = new Peers(Path.of(arguments[0]));
        Peer peer = switch (arguments[1]) {
            case "RangeAssignor" -> () -> peers.classic(new RangeAssignor());
            case "RoundRobinAssignor" -> () -> peers.classic(new RoundRobinAssignor());
            case "StickyAssignor" -> () -> peers.classic(new StickyAssignor());
            case "UniformAssignor" -> peers::uniform;
            case "lag-aware loop" -> () -> peers::lagAware;
            case "fair loop" -> () -> peers::fair;
            default -> throw new IllegalArgumentException(arguments[1]);
        };
        int warmUps = Integer.parseInt(arguments[2]);
        int runs = Integer.parseInt(arguments[3]);
        List<Long> times = new ArrayList<>();
        int[] result = {};
        for (int i = 0; i < warmUps + runs; i++) {
            Run run = peer.prepare();
            long start = System.nanoTime();
            result = run.result();
            if (i >= warmUps) times.add(System.nanoTime() - start);
        }
        System.out.println(times);
        System.out.println(Arrays.toString(result));
    }

    private Run classic(AbstractPartitionAssignor assignor) {
        boolean sticky = assignor instanceof StickyAssignor;
        List<List<TopicPartition>> owned = new ArrayList<>();
        for (String member : members) owned.add(new ArrayList<>());
        forEachOwned((member, topic, partition) ->
            owned.get(member).add(new TopicPartition(topics[topic], partition)));
        Map<String, Integer> partitions = new HashMap<>();
        Map<String, Subscription> group = new HashMap<>();
        for (int m = 0; m < members.length; m++) {
            List<String> read = new ArrayList<>();
            for (int t : subscriptions[m]) {
                read.add(topics[t]);
                partitions.put(topics[t], counts[t]);
            }
            ByteBuffer userData = null;
            if (sticky && !owned.get(m).isEmpty()) {
                var writer = new StickyAssignor();
                writer.onAssignment(new Assignment(owned.get(m)),
                    new ConsumerGroupMetadata("g", 1, members[m], Optional.empty()));
                userData = writer.subscriptionUserData(Set.of());
            }
            group.put(members[m], new Subscription(read, userData, List.of(), -1, rackOf(m)));
        }
        Map<String, List<PartitionInfo>> infos = rackOfMember.length == 0 ? null : partitionInfos();
        return () -> {
            var assignment = infos == null
                ? assignor.assign(partitions, group) : assignor.assignPartitions(infos, group);
            int[] sizes = new int[members.length];
            for (int m = 0; m < sizes.length; m++) sizes[m] = assignment.get(members[m]).size();
            return sizes;
        };
    }

    private Optional<String> rackOf(int member) {
        return rackOfMember.length == 0
            ? Optional.empty() : Optional.of("r" + rackOfMember[member]);
    }

    private Set<String> racksOf(int partition) {
        Set<String> racks = new HashSet<>();
        for (int bits = racksOfPartition[partition]; bits != 0; bits &= bits - 1) {
            racks.add("r" + Integer.numberOfTrailingZeros(bits));
        }
        return racks;
    }

    private Map<String, List<PartitionInfo>> partitionInfos() {
        Map<String, List<PartitionInfo>> infos = new HashMap<>();
        for (int t = 0, index = 0; t < counts.length; t++) {
            List<PartitionInfo> rows = new ArrayList<>();
            for (int p = 0; p < counts[t]; p++, index++) {
                Node[] replicas = racksOf(index).stream()
                    .map(rack -> new Node(rack.charAt(1), "", 0, rack)).toArray(Node[]::new);
                rows.add(new PartitionInfo(topics[t], p, replicas[0], replicas, replicas));
            }
            infos.put(topics[t], rows);
        }
        return infos;
    }

    private Run uniform() {
        Uuid[] ids = new Uuid[topics.length];
        Map<Uuid, Integer> sizes = new HashMap<>();
        Map<Uuid, List<Set<String>>> racks = new HashMap<>();
        for (int t = 0, index = 0; t < ids.length; t++) {
            ids[t] = new Uuid(1, t + 1);
            sizes.put(ids[t], counts[t]);
            List<Set<String>> rows = new ArrayList<>();
            for (int p = 0; p < counts[t]; p++, index++) {
                rows.add(racksOfPartition.length == 0 ? Set.of() : racksOf(index));
            }
            racks.put(ids[t], rows);
        }
        List<Map<Uuid, Set<Integer>>> owned = new ArrayList<>();
        for (String member : members) owned.add(new HashMap<>());
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        forEachOwned((member, topic, partition) -> {
            owned.get(member).computeIfAbsent(ids[topic], x -> new HashSet<>()).add(partition);
            owners.computeIfAbsent(ids[topic], x -> new HashMap<>()).put(partition, members[member]);
        });
        Map<String, MemberSubscriptionAndAssignmentImpl> group = new HashMap<>();
        boolean equal = true;
        for (int m = 0; m < members.length; m++) {
            Set<Uuid> read = new HashSet<>();
            for (int t : subscriptions[m]) read.add(ids[t]);
            equal &= Arrays.equals(subscriptions[m], subscriptions[0]);
            group.put(members[m], new MemberSubscriptionAndAssignmentImpl(rackOf(m), Optional.empty(),
                read, new org.apache.kafka.coordinator.group.modern.Assignment(owned.get(m))));
        }
        var spec = new GroupSpecImpl(
            group, equal ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, owners);
        var describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) {
                return sizes.get(topic);
            }

            public Set<String> racksForPartition(Uuid topic, int partition) {
                return racks.get(topic).get(partition);
            }
        };
        return () -> {
            var assignment = new UniformAssignor().assign(spec, describer).members();
            int[] result = new int[members.length];
            for (int m = 0; m < result.length; m++) {
                for (Set<Integer> share : assignment.get(members[m]).partitions().values()) {
                    result[m] += share.size();
                }
            }
            return result;
        };
    }

    private interface Visitor {
        void visit(int member, int topic, int partition);
    }

    private void forEachOwned(Visitor visitor) {
        int index = 0;
        for (int t = 0; t < counts.length; t++) {
            for (int p = 0; p < counts[t]; p++, index++) {
                if (owner[index] >= 0) visitor.visit(owner[index], t, p);
            }
        }
    }

    private int[][] subscribers() {
        List<List<Integer>> rows = new ArrayList<>();
        for (int count : counts) rows.add(new ArrayList<>());
        for (int m = 0; m < members.length; m++) {
            for (int t : subscriptions[m]) rows.get(t).add(m);
        }
        return rows.stream().map(row -> row.stream().mapToInt(x -> x).toArray()).toArray(int[][]::new);
    }

    /** The loop of KAFKA-5337: a topic's partitions, by descending lag, go to the member with fewest of the topic. */
    private int[] lagAware() {
        int[][] subscribers = subscribers();
        int[] result = new int[members.length];
        int first = 0;
        for (int t = 0; t < counts.length; first += counts[t], t++) {
            int start = first;
            Integer[] order = new Integer[counts[t]];
            for (int p = 0; p < order.length; p++) order[p] = p;
            Arrays.sort(order, (a, b) -> Long.compare(lags[start + b], lags[start + a]));
            int[] held = new int[members.length];
            long[] total = new long[members.length];
            for (int p : order) {
                int least = -1;
                for (int m : subscribers[t]) {
                    if (least < 0 || held[m] < held[least]
                        || held[m] == held[least] && total[m] < total[least]) least = m;
                }
                held[least]++;
                total[least] += lags[start + p];
                result[least]++;
            }
        }
        return result;
    }

    /** The loop of KIP-49: topics with the fewest subscribers first, each partition to the least loaded member. */
    private int[] fair() {
        int[][] subscribers = subscribers();
        Integer[] order = new Integer[counts.length];
        for (int t = 0; t < order.length; t++) order[t] = t;
        Arrays.sort(order, (a, b) -> subscribers[a].length != subscribers[b].length
            ? Integer.compare(subscribers[a].length, subscribers[b].length)
            : Integer.compare(counts[b], counts[a]));
        int[] load = new int[members.length];
        for (int t : order) {
            for (int p = 0; p < counts[t]; p++) {
                int least = subscribers[t][0];
                for (int m : subscribers[t]) if (load[m] < load[least]) least = m;
                load[least]++;
            }
        }
        return load;
    }
}
