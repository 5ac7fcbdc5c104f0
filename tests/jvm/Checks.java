package fairlead.kafka;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** What the jar makes of questions, one JSON object a line; answers likewise, in order. */
final class Checks {
    private Checks() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> asked = PlanDocument.object(Json.parse(line.getBytes(StandardCharsets.UTF_8)), line);
            out.println(Json.write(answer(asked)));
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    private static Object answer(Map<String, Object> asked) {
        try {
            switch ((String) asked.get("ask")) {
                case "fit":
                    return fit(asked);
                case "document":
                    return document(bytes(asked.get("value")));
                case "record":
                    return record(asked);
                default:
                    throw new IllegalArgumentException("unknown: " + asked.get("ask"));
            }
        } catch (InvalidPlanException refused) {
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("refused", refused.getMessage());
            return said;
        }
    }

    private static Object fit(Map<String, Object> asked) throws InvalidPlanException {
        PlanDocument plan = PlanDocument.parse(((String) asked.get("plan")).getBytes(StandardCharsets.UTF_8));
        Map<String, Integer> counts = new LinkedHashMap<>();
        for (Map.Entry<String, Object> count : PlanDocument.object(asked.get("counts"), "counts").entrySet()) {
            counts.put(count.getKey(), ((Long) count.getValue()).intValue());
        }
        Map<String, List<String>> subscriptions = new LinkedHashMap<>();
        for (Map.Entry<String, Object> member
            : PlanDocument.object(asked.get("subscriptions"), "subscriptions").entrySet()) {
            subscriptions.put(member.getKey(), ((List<?>) member.getValue()).stream()
                .map(String.class::cast).collect(Collectors.toList()));
        }
        Map<String, Object> shares = new LinkedHashMap<>();
        Fit.fit(plan, subscriptions, counts).forEach((member, share) -> shares.put(member, lists(share)));
        return shares;
    }

    private static Map<String, Object> lists(Map<String, int[]> share) {
        Map<String, Object> lists = new LinkedHashMap<>();
        share.forEach((topic, partitions) -> lists.put(
            topic, IntStream.of(partitions).boxed().collect(Collectors.toList())));
        return lists;
    }

    /** Everything that the planner's reader takes out of a document, in its order. */
    private static Object document(byte[] value) throws InvalidPlanException {
        PlanDocument plan = PlanDocument.parse(value);
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("group", plan.group());
        said.put("version", plan.version());
        said.put("partition_counts", plan.partitionCounts());
        Map<String, Object> members = new LinkedHashMap<>();
        plan.members().forEach((name, share) -> {
            List<Object> pair = new ArrayList<>();
            pair.add(share.topics);
            pair.add(lists(share.partitions));
            members.put(name, pair);
        });
        said.put("members", members);
        Map<String, Object> weights = new LinkedHashMap<>();
        plan.weights().forEach((topic, values) -> {
            List<Object> bits = new ArrayList<>();
            for (double weight : values) {
                bits.add(Double.doubleToLongBits(weight));
            }
            weights.put(topic, bits);
        });
        said.put("weights", weights);
        said.put("topic_ids", plan.topicIds());
        said.put("expires_ms", plan.expiresAt() == null ? null : plan.expiresAt().toEpochMilli());
        return said;
    }

    private static Object record(Map<String, Object> asked) throws InvalidPlanException {
        List<Header> headers = new ArrayList<>();
        for (Object pair : (List<?>) asked.get("headers")) {
            List<?> one = (List<?>) pair;
            byte[] value = one.get(1) == null ? null : bytes(one.get(1));
            headers.add(new RecordHeader((String) one.get(0), value));
        }
        Told told = Told.read(
            bytes(asked.get("value")), headers, (String) asked.get("group"),
            new Told.Origin(
                (String) asked.get("topic"), (String) asked.get("cluster"), (String) asked.get("log")),
            Signatures.of((String) asked.get("public_keys")));
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("identity", told.identity.toJson());
        said.put("plan", told.plan != null);
        said.put("lease_ms", told.leaseUntil == null ? null : told.leaseUntil.toEpochMilli());
        return said;
    }

    private static byte[] bytes(Object base64) {
        return Base64.getDecoder().decode((String) base64);
    }
}
