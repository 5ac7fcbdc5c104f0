package fairlead.kafka;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Times a call of the brokers' assignor, and of Kafka's uniform one in turn with it, on the same group:
 * GroupCalls TOPICS PARTITIONS MEMBERS alike|half ROUNDS. Prints JSON, seconds of the
 * calling thread's CPU for each call, the first cold.
 */
final class GroupCalls {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final Random random = new Random(1);
    private final int perTopic;
    private final Uuid[] topics;
    private final String[] members;
    private final Map<Uuid, String> names = new HashMap<>();
    private final List<Set<Uuid>> reads = new ArrayList<>();
    private final boolean alike;

    private GroupCalls(int topicCount, int partitions, int memberCount, boolean alike) {
        this.alike = alike;
        perTopic = partitions / topicCount;
        topics = new Uuid[topicCount];
        for (int t = 0; t < topicCount; t++) {
            topics[t] = new Uuid(random.nextLong(), t + 1);
            names.put(topics[t], "t" + t);
        }
        members = new String[memberCount];
        Set<Uuid> all = Set.of(topics);
        for (int m = 0; m < memberCount; m++) {
            members[m] = "member-" + m;
            var half = new ArrayList<>(Arrays.asList(topics));
            Collections.shuffle(half, random);
            reads.add(alike ? all : new HashSet<>(half.subList(0, topicCount / 2)));
        }
    }

    public static void main(String[] arguments) throws Exception {
        var calls = new GroupCalls(
            Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]),
            arguments[3].equals("alike"));
        int rounds = Integer.parseInt(arguments[4]);
        // What is planned, and the targets before it: every tenth partition elsewhere.
        int[] planned = calls.spread();
        int[] before = calls.moved(planned);
        GroupSpec spec = calls.spec(before, -1);
        GroupSpec left = calls.spec(before, 0);
        var book = new PlanBook();
        var unread = new Decider(new PlanBook(), false, false);
        PlanDocument plan = calls.plan(planned);
        book.put(PlanBook.Plan.of("g", new PlanState(plan, new Identity(1, 1, false, "x"), null, null, 0)));
        book.put(new Roster("g", 1, calls.roster(), Map.of()));
        book.setComplete();
        var decider = new Decider(book, false, false);
        List<Double> followed = new ArrayList<>();
        List<Double> kept = new ArrayList<>();
        List<Double> keptWithout = new ArrayList<>();
        List<Double> uniform = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            followed.add(time(() -> decider.decide(spec, calls.describer, null, Instant.now()), "PLAN"));
            kept.add(time(() -> unread.decide(spec, calls.describer, null, Instant.now()), "KEPT_UNREAD"));
            keptWithout.add(time(() -> unread.decide(left, calls.describer, null, Instant.now()), "KEPT_UNREAD"));
            uniform.add(time(() -> new UniformAssignor().assign(spec, calls.describer), null));
        }
        System.out.printf(
            Locale.ROOT, "{\"plan\":%s,\"kept\":%s,\"kept_after_a_leave\":%s,\"uniform\":%s}%n",
            followed, kept, keptWithout, uniform);
    }

    private interface Call {
        Object run();
    }

    private static double time(Call call, String outcome) {
        long start = THREADS.getCurrentThreadCpuTime();
        Object result = call.run();
        double seconds = (THREADS.getCurrentThreadCpuTime() - start) / 1e9;
        if (outcome != null && !((Decider.Decision) result).outcome().name().equals(outcome)) {
            throw new IllegalStateException(((Decider.Decision) result).outcome().name());
        }
        return seconds;
    }

    /** Each partition to some reader of its topic, in turn. */
    private int[] spread() {
        int[] owner = new int[topics.length * perTopic];
        int next = 0;
        for (int t = 0; t < topics.length; t++) {
            for (int p = 0; p < perTopic; p++) {
                do {
                    next = (next + 1) % members.length;
                } while (!reads.get(next).contains(topics[t]));
                owner[t * perTopic + p] = next;
            }
        }
        return owner;
    }

    private int[] moved(int[] planned) {
        int[] owner = planned.clone();
        for (int index = 0; index < owner.length; index += 10) {
            do {
                owner[index] = random.nextInt(members.length);
            } while (!reads.get(owner[index]).contains(topics[index / perTopic]));
        }
        return owner;
    }

    private Map<String, String> roster() {
        Map<String, String> found = new HashMap<>();
        for (String member : members) {
            found.put(member, "name-" + member);
        }
        return found;
    }

    private PlanDocument plan(int[] owner) throws InvalidPlanException {
        List<Map<String, List<Integer>>> shares = new ArrayList<>();
        for (int m = 0; m < members.length; m++) {
            shares.add(new HashMap<>());
        }
        Map<String, Object> counts = new HashMap<>();
        Map<String, Object> ids = new HashMap<>();
        Map<String, Object> weights = new HashMap<>();
        for (int t = 0; t < topics.length; t++) {
            String name = names.get(topics[t]);
            List<Double> heavy = new ArrayList<>();
            for (int p = 0; p < perTopic; p++) {
                shares.get(owner[t * perTopic + p]).computeIfAbsent(name, key -> new ArrayList<>()).add(p);
                heavy.add(1000 * random.nextDouble());
            }
            counts.put(name, (long) perTopic);
            ids.put(name, topics[t].toString());
            weights.put(name, heavy);
        }
        Map<String, Object> written = new HashMap<>();
        for (int m = 0; m < members.length; m++) {
            Map<String, Object> sets = new HashMap<>();
            shares.get(m).forEach((topic, numbers) ->
                sets.put(topic, numbers.toString().replaceAll("[\\[\\] ]", "")));
            Set<String> read = new TreeSet<>();
            reads.get(m).forEach(topic -> read.add(names.get(topic)));
            written.put("name-" + members[m], Map.of("topics", read, "partitions", sets));
        }
        String time = "2026-01-01T00:00:00+00:00";
        Map<String, Object> document = new HashMap<>(Map.of(
            "format", 2L, "group", "g", "version", 1L, "plan_id", "x", "assignor", "x", "created_at", time,
            "snapshot_at", time, "partition_counts", counts, "topic_ids", ids, "members", written));
        document.put("weights", weights);
        return PlanDocument.parse(Json.write(document).getBytes(StandardCharsets.UTF_8));
    }

    /**
     * The group as its coordinator shows it, as it read each member's targets from a record of its own.
     *
     * @param gone whose id is not there, with its targets; -1: everybody is
     */
    private GroupSpec spec(int[] owner, int gone) {
        List<Map<Uuid, List<Integer>>> records = new ArrayList<>();
        for (int m = 0; m < members.length; m++) {
            records.add(new LinkedHashMap<>());
        }
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int index = 0; index < owner.length; index++) {
            Uuid topic = topics[index / perTopic];
            int partition = index % perTopic;
            if (owner[index] != gone) {
                records.get(owner[index]).computeIfAbsent(topic, id -> new ArrayList<>()).add(partition);
                owners.computeIfAbsent(topic, id -> new HashMap<>()).put(partition, members[owner[index]]);
            }
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> found = new HashMap<>();
        for (int m = 0; m < members.length; m++) {
            if (m == gone) {
                continue;
            }
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            records.get(m).forEach((topic, partitions) -> {
                var id = new Uuid(topic.getMostSignificantBits(), topic.getLeastSignificantBits());
                owned.put(id, new HashSet<>(partitions.stream().mapToInt(Integer::intValue).boxed().toList()));
            });
            found.put(members[m], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), reads.get(m), new Assignment(owned)));
        }
        return new GroupSpecImpl(
            found, alike ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, owners);
    }

    private final SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
        @Override
        public int numPartitions(Uuid topic) {
            return names.containsKey(topic) ? perTopic : -1;
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    };
}
