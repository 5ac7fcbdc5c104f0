import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
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
import org.apache.kafka.common.utils.Utils;

/**
 * Calls Kafka's own classes. Reads one JSON request per line, and writes one JSON answer per line.
 * The field `ask` of a request is the name of an assignor, murmur2, encode or decode.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Object answer;
            try {
                answer = answer(JSON.readTree(line));
            } catch (RuntimeException error) {
                answer = Map.of("error", error.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static Object answer(JsonNode request) {
        return switch (request.get("ask").asText()) {
            case "murmur2" -> murmur2(request);
            case "encode" -> encode(request);
            case "decode" -> decode(request);
            default -> assign(request);
        };
    }

    private static Map<String, Map<String, Set<Integer>>> assign(JsonNode request) {
        String name = request.get("ask").asText();
        AbstractPartitionAssignor assignor = switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            default -> throw new IllegalArgumentException(name);
        };
        Map<String, Integer> counts = counts(request);
        Map<String, Subscription> subscriptions = new HashMap<>();
        request.get("members").properties().forEach(member ->
            subscriptions.put(member.getKey(), subscription(member.getValue())));
        Map<String, Map<String, Set<Integer>>> answer = new TreeMap<>();
        assignor.assignPartitions(partitions(request, counts), subscriptions)
            .forEach((member, partitions) -> answer.put(member, byTopic(partitions)));
        return answer;
    }

    /** Returns the partitions of each topic, each with a replica in the racks of the request. */
    private static Map<String, List<PartitionInfo>> partitions(
            JsonNode request, Map<String, Integer> counts) {
        Map<String, List<PartitionInfo>> partitions = new HashMap<>();
        counts.forEach((topic, count) -> {
            List<PartitionInfo> rows = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                List<Node> replicas = new ArrayList<>();
                request.path("replica_racks").path(topic).path(number).forEach(rack ->
                    replicas.add(new Node(replicas.size(), "", 0, rack.asText())));
                Node[] nodes = replicas.toArray(new Node[0]);
                rows.add(new PartitionInfo(topic, number, null, nodes, nodes));
            }
            partitions.put(topic, rows);
        });
        return partitions;
    }

    private static Subscription subscription(JsonNode member) {
        Optional<String> rack = Optional.ofNullable(member.path("rack").textValue());
        var subscription = new Subscription(topics(member), null, List.of(), -1, rack);
        if (member.hasNonNull("instance_id")) {
            subscription.setGroupInstanceId(Optional.of(member.get("instance_id").asText()));
        }
        return subscription;
    }

    private static List<Integer> murmur2(JsonNode request) {
        List<Integer> hashes = new ArrayList<>();
        request.get("keys").forEach(key -> hashes.add(Utils.murmur2(Base64.getDecoder().decode(key.asText()))));
        return hashes;
    }

    private static String encode(JsonNode request) {
        byte[] bytes = Utils.toArray(userData(owned(request), generation(request)));
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static ObjectNode decode(JsonNode request) {
        byte[] bytes = Base64.getDecoder().decode(request.get("data").asText());
        ObjectNode answer = JSON.createObjectNode();
        new Reader().read(new Subscription(List.of(), ByteBuffer.wrap(bytes)), answer);
        return answer;
    }

    /** Decodes user data with a protected method of StickyAssignor. */
    private static final class Reader extends StickyAssignor {
        void read(Subscription subscription, ObjectNode answer) {
            MemberData data = memberData(subscription);
            answer.set("owned", JSON.valueToTree(byTopic(data.partitions)));
            answer.set("generation", JSON.valueToTree(data.generation.orElse(null)));
        }
    }

    private static ByteBuffer userData(List<TopicPartition> owned, int generation) {
        var assignor = new StickyAssignor();
        assignor.onAssignment(
            new Assignment(owned), new ConsumerGroupMetadata("g", generation, "m", Optional.empty()));
        return assignor.subscriptionUserData(Set.of());
    }

    /** Returns partition counts of subscribed topics, as a group leader gives them to assignors. */
    private static Map<String, Integer> counts(JsonNode request) {
        Set<String> subscribed = new HashSet<>();
        request.get("members").forEach(member -> subscribed.addAll(topics(member)));
        Map<String, Integer> counts = new HashMap<>();
        request.get("topics").properties().forEach(topic -> {
            if (subscribed.contains(topic.getKey())) {
                counts.put(topic.getKey(), topic.getValue().asInt());
            }
        });
        return counts;
    }

    private static List<String> topics(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        return topics;
    }

    private static List<TopicPartition> owned(JsonNode member) {
        List<TopicPartition> owned = new ArrayList<>();
        if (member.hasNonNull("owned")) {
            member.get("owned").properties().forEach(topic -> topic.getValue().forEach(partition ->
                owned.add(new TopicPartition(topic.getKey(), partition.asInt()))));
        }
        return owned;
    }

    private static int generation(JsonNode member) {
        return member.hasNonNull("generation") ? member.get("generation").asInt() : -1;
    }

    private static Map<String, Set<Integer>> byTopic(List<TopicPartition> partitions) {
        Map<String, Set<Integer>> share = new TreeMap<>();
        partitions.forEach(p -> share.computeIfAbsent(p.topic(), t -> new TreeSet<>()).add(p.partition()));
        return share;
    }
}
