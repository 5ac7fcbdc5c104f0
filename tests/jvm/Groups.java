package fairlead.kafka;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Draws random groups, as a coordinator describes them, and checks the invariants of every decision.
 * The error of a failed check names the seed and the broken invariant.
 */
final class Groups {
    private static final Uuid PLAN_TOPIC = new Uuid(9, 9);

    /** One member of a random group. */
    private static final class Member {
        String id;
        String instance;
        String rack;
        Set<Uuid> reads = new HashSet<>();
        final Map<Uuid, Set<Integer>> targets = new HashMap<>();
    }

    private final Random random;
    private final Map<Uuid, Integer> topics = new LinkedHashMap<>();
    private final Map<Uuid, String> names = new HashMap<>();
    private final List<Member> members = new ArrayList<>();
    private final PlanBook book = new PlanBook();
    private PlanDocument plan;
    private Map<String, String> roster = new HashMap<>();
    private Instant now = Instant.ofEpochSecond(1_000_000);

    private Groups(long seed) {
        random = new Random(seed);
    }

    /** Checks a number of groups, the first with seed 1; returns the number of each outcome. */
    static Map<String, Integer> check(long count) {
        Map<String, Integer> outcomes = new TreeMap<>();
        for (long seed = 1; seed <= count; seed++) {
            try {
                outcomes.merge(new Groups(seed).check(), 1, Integer::sum);
            } catch (Throwable error) {
                throw new IllegalStateException("seed " + seed, error);
            }
        }
        return outcomes;
    }

    private boolean chance(double likely) {
        return random.nextDouble() < likely;
    }

    private void draw() throws InvalidPlanException {
        for (int t = random.nextInt(5); t >= 0; t--) {
            Uuid id = new Uuid(random.nextLong(), t + 1);
            topics.put(id, 1 + random.nextInt(12));
            names.put(id, "t" + t);
        }
        boolean alike = chance(0.5);
        int count = chance(0.05) ? 0 : 1 + random.nextInt(8);
        for (int m = 0; m < count; m++) {
            var member = new Member();
            member.id = "id-" + random.nextInt(1_000_000) + "-" + m;
            member.instance = chance(0.3) ? "n" + m : null;
            member.rack = chance(0.2) ? "rack" : null;
            for (Uuid topic : topics.keySet()) {
                if (alike || chance(0.6)) {
                    member.reads.add(topic);
                }
            }
            if (chance(0.05)) {
                member.reads.add(new Uuid(7, m)); // a topic that no longer exists
            }
            members.add(member);
        }
        drawTargets();
        drawPlan();
        if (chance(0.3)) {
            var trigger = new Member();
            trigger.id = "trigger";
            trigger.rack = "fairlead:g:" + (chance(0.8) ? 3 : 4);
            trigger.reads = new HashSet<>(Set.of(PLAN_TOPIC));
            members.add(trigger);
        }
    }

    private void drawTargets() {
        if (chance(0.2) || members.isEmpty()) {
            return;
        }
        for (var topic : topics.entrySet()) {
            for (int p = 0; p < topic.getValue() + (chance(0.1) ? 2 : 0); p++) {
                Member owner = members.get(random.nextInt(members.size()));
                // Some partitions have no owner, and some an owner that no longer reads the topic.
                if (chance(0.8) && (owner.reads.contains(topic.getKey()) || chance(0.1))) {
                    owner.targets.computeIfAbsent(topic.getKey(), id -> new HashSet<>()).add(p);
                }
            }
        }
    }

    private void drawPlan() throws InvalidPlanException {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("format", 2L);
        document.put("group", "g");
        document.put("version", 3L);
        for (String text : List.of("plan_id", "assignor")) {
            document.put(text, "x");
        }
        for (String time : List.of("created_at", "snapshot_at")) {
            document.put(time, "2026-01-01T00:00:00+00:00");
        }
        Map<String, Object> counts = new LinkedHashMap<>();
        Map<String, Object> ids = new LinkedHashMap<>();
        Map<String, Map<String, List<Integer>>> shares = new LinkedHashMap<>();
        for (int m = 0; m < members.size() + 2; m++) {
            if (chance(0.8)) {
                shares.put("n" + m, new LinkedHashMap<>());
            }
        }
        var owners = new ArrayList<>(shares.keySet());
        for (var topic : topics.entrySet()) {
            if (chance(0.1)) {
                continue; // the topic is newer than the plan
            }
            String name = names.get(topic.getKey());
            int count = Math.max(1, topic.getValue() + random.nextInt(3) - 1);
            counts.put(name, (long) count);
            ids.put(name, (chance(0.9) ? topic.getKey() : new Uuid(3, 3)).toString());
            for (int p = 0; p < count && !owners.isEmpty(); p++) {
                shares.get(owners.get(random.nextInt(owners.size())))
                    .computeIfAbsent(name, key -> new ArrayList<>()).add(p);
            }
        }
        document.put("partition_counts", counts);
        document.put("topic_ids", ids);
        document.put("weights", Map.of());
        Map<String, Object> written = new LinkedHashMap<>();
        shares.forEach((name, share) -> {
            Map<String, Object> sets = new LinkedHashMap<>();
            share.forEach((topic, numbers) -> sets.put(topic,
                numbers.stream().map(String::valueOf).collect(Collectors.joining(","))));
            written.put(name, Map.of("topics", new ArrayList<>(share.keySet()), "partitions", sets));
        });
        document.put("members", written);
        plan = PlanDocument.parse(Json.write(document).getBytes(StandardCharsets.UTF_8));
        for (int m = 0; m < members.size(); m++) {
            if (chance(0.7)) {
                roster.put(members.get(m).id, "n" + m);
            }
        }
    }

    private GroupSpec spec() {
        Map<String, MemberSubscriptionAndAssignmentImpl> found = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        boolean alike = true;
        for (Member member : members) {
            alike &= member.reads.equals(members.get(0).reads);
            member.targets.forEach((topic, partitions) -> partitions.forEach(partition ->
                owners.computeIfAbsent(topic, id -> new HashMap<>()).put(partition, member.id)));
            found.put(member.id, new MemberSubscriptionAndAssignmentImpl(
                Optional.ofNullable(member.rack), Optional.ofNullable(member.instance), member.reads,
                new Assignment(new HashMap<>(member.targets)))); // a copy, because targets change later
        }
        return new GroupSpecImpl(
            found, alike ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, owners);
    }

    private final SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
        @Override
        public int numPartitions(Uuid topic) {
            return topic.equals(PLAN_TOPIC) ? 4 : topics.getOrDefault(topic, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    };

    private String check() throws InvalidPlanException {
        draw();
        String kind = tell();
        var decider = new Decider(book, chance(0.2), chance(0.2));
        Decider.Decision decision = decider.decide(spec(), describer, chance(0.8) ? PLAN_TOPIC : null, now);
        complete(decision.assignment());
        boolean untouched = members.stream().allMatch(member -> member.targets.isEmpty());
        switch (decision.outcome()) {
            case PLAN:
                require(kind.equals("plan"), "followed, but " + kind);
                fitted(decision.assignment());
                break;
            case UNIFORM_NEW:
                require(untouched, "uniform, with targets");
                break;
            case UNIFORM:
            case EMPTY:
                break;
            default:
                require(!untouched, "kept nothing");
                kept(decision.assignment());
        }
        again(decider, decision);
        if (decision.outcome() == Decider.Outcome.UNIFORM_NEW) {
            joined(decider);
        }
        return decision.outcome().name();
    }

    /** Gives the assignor a random plan (or none) and perhaps members' names; returns the kind of plan. */
    private String tell() {
        if (chance(0.15)) {
            return "unread";
        }
        book.complete = true;
        if (chance(0.8)) {
            book.put(new Roster("g", 1, roster, Map.of()));
        }
        int what = random.nextInt(10);
        if (what == 0) {
            return "nothing";
        }
        if (what == 1) {
            book.put(PlanBook.Plan.of("g", new PlanState(null, new Identity(1, 3, true, ""), null, null, 0)));
            return "withdrawn";
        }
        if (what == 2) {
            book.put(PlanBook.Plan.of("g", new PlanState(null, Identity.NOTHING, null, "garbage", 1)));
            return "garbage";
        }
        Instant until = what == 3 ? now.minusSeconds(61) : what == 4 ? now : null;
        book.put(PlanBook.Plan.of("g", new PlanState(plan, new Identity(1, 3, false, "x"), until, null, 0)));
        return what == 3 ? "lapsed" : "plan";
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private boolean isTrigger(Member member) {
        return member.id.equals("trigger");
    }

    /** Requires an entry for each member. Each partition of a subscribed topic must have one subscriber as owner. */
    private void complete(GroupAssignment assignment) {
        require(assignment.members().keySet().equals(
            members.stream().map(member -> member.id).collect(Collectors.toSet())), "other members");
        Map<Uuid, Set<Integer>> owned = new HashMap<>();
        for (Member member : members) {
            assignment.members().get(member.id).partitions().forEach((topic, partitions) -> {
                require(!isTrigger(member), "a trigger got " + partitions);
                require(member.reads.contains(topic) && topics.containsKey(topic), "not read: " + topic);
                for (int partition : partitions) {
                    require(partition >= 0 && partition < topics.get(topic), "no such partition");
                    require(owned.computeIfAbsent(topic, id -> new HashSet<>()).add(partition), "owned twice");
                }
            });
        }
        for (var topic : topics.entrySet()) {
            boolean read = members.stream().anyMatch(member -> member.reads.contains(topic.getKey()));
            int count = owned.getOrDefault(topic.getKey(), Set.of()).size();
            require(count == (read ? topic.getValue() : 0), "without owner");
        }
    }

    /** Requires that members keep their partitions of topics that they still read. */
    private void kept(GroupAssignment assignment) {
        for (Member member : members) {
            member.targets.forEach((topic, partitions) -> {
                if (isTrigger(member) || !member.reads.contains(topic)) {
                    return;
                }
                for (int partition : partitions) {
                    if (partition < topics.get(topic)) {
                        require(assignment.members().get(member.id).partitions()
                            .getOrDefault(topic, Set.of()).contains(partition), "moved without a plan");
                    }
                }
            });
        }
    }

    /** Requires that members with a name in the plan own their shares of its topics. */
    private void fitted(GroupAssignment assignment) {
        var used = new HashSet<String>();
        for (Member member : members.stream().sorted((a, b) -> a.id.compareTo(b.id)).collect(Collectors.toList())) {
            Roster known = book.rosters.get("g");
            String name = known == null ? null : known.names().get(member.id);
            name = name == null ? member.instance : name;
            if (name == null || !used.add(name) || !plan.members().containsKey(name)) {
                continue;
            }
            Map<Uuid, Set<Integer>> share = assignment.members().get(member.id).partitions();
            plan.members().get(name).ranges().forEach((topic, ranges) -> {
                Uuid id = Uuid.fromString(plan.topicIds().get(topic));
                if (member.reads.contains(id)) {
                    var numbers = IntStream.range(0, ranges.length / 2)
                        .flatMap(range -> IntStream.rangeClosed(ranges[2 * range], ranges[2 * range + 1]));
                    require(numbers.filter(number -> number < topics.get(id))
                        .allMatch(share.getOrDefault(id, Set.of())::contains), "the plan is not followed");
                }
            });
        }
    }

    /** Requires that a member that joins a new group gets a share instead of waiting for a plan. */
    private void joined(Decider decider) {
        var newMember = new Member();
        newMember.id = "newMember";
        newMember.reads = new HashSet<>(topics.keySet());
        boolean alike = members.stream().filter(member -> !isTrigger(member))
            .allMatch(member -> member.reads.equals(newMember.reads));
        members.add(newMember);
        var decision = decider.decide(spec(), describer, PLAN_TOPIC, now);
        complete(decision.assignment());
        int partitions = topics.values().stream().mapToInt(Integer::intValue).sum();
        if (alike && decision.outcome() != Decider.Outcome.PLAN && partitions >= members.size()) {
            require(!decision.assignment().members().get(newMember.id).partitions().isEmpty(), "a newMember waits");
        }
    }

    /** Requires the same decision if repeated, even in parallel, and no moves once members own their targets. */
    private void again(Decider decider, Decider.Decision first) {
        IntStream.range(0, 4).parallel().forEach(thread -> {
            var same = decider.decide(spec(), describer, PLAN_TOPIC, now);
            require(same.assignment().equals(first.assignment()) || same.outcome() != first.outcome(), "not the same");
        });
        for (Member member : members) {
            member.targets.clear();
            first.assignment().members().get(member.id).partitions().forEach((topic, partitions) ->
                member.targets.put(topic, new HashSet<>(partitions)));
        }
        var then = decider.decide(spec(), describer, PLAN_TOPIC, now);
        if (first.outcome() == Decider.Outcome.PLAN || !first.outcome().name().startsWith("UNIFORM")) {
            for (Member member : members) {
                require(then.assignment().members().get(member.id).partitions().equals(member.targets),
                    "moves though it is the target: " + first.outcome() + ", " + then.outcome());
            }
        }
    }
}
