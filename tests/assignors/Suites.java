import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignorTest;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RangeAssignorTest;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignorTest;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignorTest;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor.MemberData;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformHeterogeneousAssignmentBuilderTest;
import org.apache.kafka.coordinator.group.assignor.UniformHomogeneousAssignmentBuilderTest;
import org.apache.kafka.coordinator.group.modern.MemberAssignmentImpl;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Kafka's own suites of its assignors, run on ours: each test asks `fairlead assign`.
 *
 * Arguments: the command, then methods of the suites that are left out. One JSON line a test: suite,
 * method, name, and what was wrong, if anything, with what was asked last.
 */
public final class Suites {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static ObjectNode lastQuestion;
    private static Writer questions;
    private static BufferedReader answers;

    public static void main(String[] arguments) throws Exception {
        Process fairlead = new ProcessBuilder(arguments[0], "assign")
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        questions = new OutputStreamWriter(fairlead.getOutputStream(), StandardCharsets.UTF_8);
        answers = new BufferedReader(
            new InputStreamReader(fairlead.getInputStream(), StandardCharsets.UTF_8));
        Set<String> leftOut = new HashSet<>(List.of(arguments).subList(1, arguments.length));
        PostDiscoveryFilter filter = descriptor -> FilterResult.includedIf(
            descriptor.getSource()
                .filter(MethodSource.class::isInstance)
                .map(source -> !leftOut.contains(((MethodSource) source).getMethodName()))
                .orElse(true));
        for (Class<?> suite : List.of(Range.class, RoundRobin.class, Sticky.class, Cooperative.class,
                UniformHomogeneous.class, UniformHeterogeneous.class)) {
            LauncherFactory.create().execute(
                LauncherDiscoveryRequestBuilder.request()
                    .selectors(DiscoverySelectors.selectClass(suite)).filters(filter).build(),
                new Reporter(suite.getSuperclass().getSimpleName()));
        }
        questions.close();
        fairlead.waitFor();
    }

    private record Reporter(String suite) implements TestExecutionListener {
        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            Optional<MethodSource> method = test.getSource()
                .filter(MethodSource.class::isInstance).map(MethodSource.class::cast);
            Throwable wrong = result.getThrowable().orElse(null);
            if (!test.isTest() && wrong == null) {
                return;
            }
            ObjectNode line = JSON.createObjectNode().put("suite", suite)
                .put("method", method.map(MethodSource::getMethodName).orElse(""))
                .put("name", test.getDisplayName())
                .put("wrong", wrong == null ? null : String.valueOf(wrong));
            if (wrong != null) line.set("question", lastQuestion);
            System.out.println(line);
        }
    }

    /** Sends the question of an assignor to `fairlead assign`, and returns its answer. */
    private static Map<String, List<TopicPartition>> ask(
            String assignor, Map<String, List<PartitionInfo>> topics,
            Map<String, Subscription> members, Map<String, MemberData> claims) {
        ObjectNode question = JSON.createObjectNode().put("assignor", assignor);
        ObjectNode counts = question.putObject("topics");
        ObjectNode racks = JSON.createObjectNode();
        topics.forEach((topic, partitions) -> {
            counts.put(topic, partitions.size());
            ArrayNode replicas = racks.putArray(topic);
            partitions.forEach(partition -> {
                ArrayNode row = replicas.addArray();
                for (Node node : partition.replicas() == null ? new Node[0] : partition.replicas()) {
                    if (node.hasRack()) row.add(node.rack());
                }
            });
        });
        question.set("replica_racks", racks);
        ObjectNode everybody = question.putObject("members");
        members.forEach((name, subscription) -> {
            ObjectNode member = everybody.putObject(name);
            ArrayNode read = member.putArray("topics");
            new TreeSet<>(subscription.topics()).forEach(read::add);
            subscription.groupInstanceId().ifPresent(id -> member.put("instance_id", id));
            subscription.rackId().ifPresent(rack -> member.put("rack", rack));
            MemberData claim = claims.get(name);
            if (claim != null) {
                ObjectNode owned = member.putObject("owned");
                claim.partitions.forEach(p -> owned.withArray(p.topic()).add(p.partition()));
                claim.generation.filter(g -> g >= 0).ifPresent(g -> member.put("generation", g));
            }
        });
        Map<String, List<TopicPartition>> shares = new HashMap<>();
        ask(question).properties().forEach(member -> {
            List<TopicPartition> share = new ArrayList<>();
            member.getValue().properties().forEach(topic -> topic.getValue().forEach(partition ->
                share.add(new TopicPartition(topic.getKey(), partition.asInt()))));
            MemberData claim = claims.get(member.getKey());
            if (claim != null) {
                // Lists have no meaningful order, but Kafka's have earlier partitions first.
                Map<TopicPartition, Integer> place = new HashMap<>();
                claim.partitions.forEach(partition -> place.put(partition, place.size()));
                share.sort(Comparator.comparingInt(p -> place.getOrDefault(p, Integer.MAX_VALUE)));
            }
            shares.put(member.getKey(), share);
        });
        return shares;
    }

    /** The assignment that `fairlead assign` answers with. */
    private static JsonNode ask(ObjectNode question) {
        JsonNode answer = exchange(question);
        if (answer.has("error")) {
            throw new IllegalStateException(answer.get("error").asText());
        }
        return answer.get("assignment");
    }

    private static synchronized JsonNode exchange(ObjectNode question) {
        lastQuestion = question;
        try {
            questions.write(question + "\n");
            questions.flush();
            return JSON.readTree(answers.readLine());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Partitions claimed by another member, with their owner: Kafka calls them transferring. */
    private static Map<TopicPartition, String> transferring(
            Map<String, List<TopicPartition>> shares, Map<String, MemberData> claims) {
        Map<TopicPartition, Integer> newest = new HashMap<>();
        Map<TopicPartition, Set<String>> owners = new HashMap<>();
        claims.forEach((member, claim) -> claim.partitions.forEach(partition -> {
            int generation = claim.generation.orElse(-1);
            int before = newest.getOrDefault(partition, Integer.MIN_VALUE);
            if (generation > before) owners.put(partition, new HashSet<>());
            if (generation >= before) {
                owners.get(partition).add(member);
                newest.put(partition, generation);
            }
        }));
        Map<TopicPartition, String> moved = new HashMap<>();
        shares.forEach((member, share) -> share.forEach(partition -> {
            if (!Set.of(member).containsAll(owners.getOrDefault(partition, Set.of()))) {
                moved.put(partition, member);
            }
        }));
        return moved;
    }

    private static boolean allReadTheSame(Map<String, Subscription> members) {
        return members.values().stream().map(s -> new HashSet<>(s.topics())).distinct().count() <= 1;
    }

    private static final class OurRange extends RangeAssignor {
        @Override
        public Map<String, List<TopicPartition>> assignPartitions(
                Map<String, List<PartitionInfo>> topics, Map<String, Subscription> members) {
            return ask("range", topics, members, Map.of());
        }
    }

    private static final class OurRoundRobin extends RoundRobinAssignor {
        @Override
        public Map<String, List<TopicPartition>> assign(
                Map<String, Integer> counts, Map<String, Subscription> members) {
            return ask("roundrobin", partitionInfosWithoutRacks(counts), members, Map.of());
        }
    }

    private static final class OurSticky extends StickyAssignor {
        private boolean sticky = true;

        @Override
        public Map<String, List<TopicPartition>> assignPartitions(
                Map<String, List<PartitionInfo>> topics, Map<String, Subscription> members) {
            Map<String, MemberData> claims = new HashMap<>();
            members.forEach((name, subscription) -> claims.put(name, memberData(subscription)));
            var shares = ask("sticky", topics, members, claims);
            var moved = transferring(shares, claims);
            sticky = !swapsWithinATopic(moved, claims);
            partitionsTransferringOwnership = allReadTheSame(members) ? moved : null;
            return shares;
        }

        @Override
        public boolean isSticky() {
            return sticky;
        }
    }

    /** Whether two members gave each other partitions of one topic, for nothing. */
    private static boolean swapsWithinATopic(
            Map<TopicPartition, String> moved, Map<String, MemberData> claims) {
        Set<List<String>> moves = new HashSet<>();
        claims.forEach((member, claim) -> claim.partitions.forEach(partition -> {
            String taker = moved.get(partition);
            if (taker != null && !taker.equals(member)) {
                moves.add(List.of(partition.topic(), member, taker));
            }
        }));
        return moves.stream().anyMatch(m -> moves.contains(List.of(m.get(0), m.get(2), m.get(1))));
    }

    private static final class OurCooperative extends CooperativeStickyAssignor {
        private boolean sticky = true;

        @Override
        public boolean isSticky() {
            return sticky;
        }

        @Override
        public Map<String, List<TopicPartition>> assignPartitions(
                Map<String, List<PartitionInfo>> topics, Map<String, Subscription> members) {
            Map<String, MemberData> claims = new HashMap<>();
            members.forEach((name, subscription) -> claims.put(name, memberData(subscription)));
            var shares = ask("sticky", topics, members, claims);
            var moved = transferring(shares, claims);
            sticky = !swapsWithinATopic(moved, claims);
            partitionsTransferringOwnership = allReadTheSame(members) ? moved : null;
            // The cooperative protocol: the next rebalance assigns what is still owned.
            moved.forEach((partition, member) -> shares.get(member).remove(partition));
            return shares;
        }
    }

    /** The server's assignor of the new protocol: topics by id, no conflicting claims. */
    private static final class OurUniform extends UniformAssignor {
        @Override
        public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber describer) {
            ObjectNode question = JSON.createObjectNode().put("assignor", "sticky");
            ObjectNode counts = question.putObject("topics");
            ObjectNode everybody = question.putObject("members");
            group.memberIds().forEach(name -> {
                ObjectNode member = everybody.putObject(name);
                ArrayNode read = member.putArray("topics");
                group.memberSubscription(name).subscribedTopicIds().forEach(id -> {
                    read.add(id.toString());
                    if (describer.numPartitions(id) >= 0) {
                        counts.put(id.toString(), describer.numPartitions(id));
                    }
                });
                ObjectNode owned = member.putObject("owned");
                group.memberAssignment(name).partitions().forEach((id, partitions) ->
                    partitions.forEach(owned.withArray(id.toString())::add));
            });
            Map<String, MemberAssignment> shares = new HashMap<>();
            ask(question).properties().forEach(member -> {
                Map<Uuid, Set<Integer>> share = new HashMap<>();
                member.getValue().properties().forEach(topic -> topic.getValue().forEach(partition ->
                    share.computeIfAbsent(Uuid.fromString(topic.getKey()), id -> new HashSet<>())
                        .add(partition.asInt())));
                // An unchanged share must be the same object, which an answer in JSON cannot be.
                MemberAssignment before = group.memberAssignment(member.getKey());
                shares.put(member.getKey(), share.equals(before.partitions())
                    ? before : new MemberAssignmentImpl(share));
            });
            return new GroupAssignment(shares);
        }
    }

    public static class UniformHomogeneous extends UniformHomogeneousAssignmentBuilderTest {
        public UniformHomogeneous() throws ReflectiveOperationException {
            replace(UniformHomogeneousAssignmentBuilderTest.class, this, new OurUniform());
        }
    }

    public static class UniformHeterogeneous extends UniformHeterogeneousAssignmentBuilderTest {
        public UniformHeterogeneous() throws ReflectiveOperationException {
            replace(UniformHeterogeneousAssignmentBuilderTest.class, this, new OurUniform());
        }
    }

    public static class Range extends RangeAssignorTest {
        public Range() throws ReflectiveOperationException {
            replace(RangeAssignorTest.class, this, new OurRange());
        }
    }

    public static class RoundRobin extends RoundRobinAssignorTest {
        public RoundRobin() throws ReflectiveOperationException {
            replace(RoundRobinAssignorTest.class, this, new OurRoundRobin());
        }
    }

    public static class Sticky extends StickyAssignorTest {
        @Override
        public AbstractStickyAssignor createAssignor() {
            return new OurSticky();
        }
    }

    public static class Cooperative extends CooperativeStickyAssignorTest {
        @Override
        public AbstractStickyAssignor createAssignor() {
            return new OurCooperative();
        }
    }

    private static void replace(Class<?> suite, Object test, Object assignor)
            throws ReflectiveOperationException {
        var field = suite.getDeclaredField("assignor");
        field.setAccessible(true);
        field.set(test, assignor);
    }
}
