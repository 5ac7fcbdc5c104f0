package fairlead.kafka;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Answers questions about the jar, one JSON object per line, in order. */
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

    private static Object answer(Map<String, Object> asked) throws Exception {
        try {
            switch ((String) asked.get("ask")) {
                case "fit":
                    return fit(asked);
                case "beans":
                    return Beans.read((String) asked.get("process"));
                case "act":
                    return Metered.act(asked);
                case "cache":
                    return cache(asked);
                case "committed":
                    return Metered.committed(asked);
                case "consumer":
                    return consumer(PlanDocument.object(asked.get("configs"), "configs"));
                case "decide":
                    return decide(asked);
                case "document":
                    return document(bytes(asked.get("value")));
                case "groups":
                    return Groups.check((Long) asked.get("count"));
                case "hostile":
                    return Hostile.check((Long) asked.get("count"));
                case "meter":
                    return Metered.meter(asked);
                case "note":
                    return note(asked);
                case "schedule":
                    return schedule(asked);
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

    /** Returns the cache's state after each record; a null record stands for a new connection. */
    private static Object cache(Map<String, Object> asked) {
        VerifiedRecord.Origin origin = new VerifiedRecord.Origin("fairlead.plans", "cluster", "log");
        Signatures signatures = Signatures.of((String) asked.get("public_keys"));
        PlanCache cache = new PlanCache("group", origin, signatures, null);
        List<Object> states = new ArrayList<>();
        for (Object one : (List<?>) asked.get("records")) {
            if (one == null) {
                cache = new PlanCache("group", origin, signatures, cache.state());
            } else {
                List<?> record = (List<?>) one;
                byte[] value = record.get(0) == null ? null : bytes(record.get(0));
                cache.apply(states.size(), value, headers(record.get(1)));
            }
            PlanState state = cache.state();
            List<Object> said = new ArrayList<>();
            said.add(state.plan() == null ? null : state.plan().version());
            said.add(state.seen.toJson());
            said.add(state.leaseUntil == null ? null : state.leaseUntil.toEpochMilli());
            said.add(state.problem() != null);
            said.add(state.skipped());
            states.add(said);
        }
        return states;
    }

    /** Returns whether a request for a rebalance is due at each "due" step; the random delay is 0. */
    private static Object schedule(Map<String, Object> asked) {
        RejoinSchedule schedule = new RejoinSchedule(0, new Random(1));
        List<Object> due = new ArrayList<>();
        for (Object one : (List<?>) asked.get("steps")) {
            List<?> step = (List<?>) one;
            if (step.isEmpty()) {
                schedule.unsettle();
                continue;
            }
            Identity seen = Identity.fromJson(step.get(1));
            boolean lapsed = (Boolean) step.get(2);
            long number = (Long) step.get(3);
            if (step.get(0).equals("settle")) {
                schedule.settle(seen, lapsed, number);
            } else {
                due.add(schedule.due(seen, lapsed, Instant.ofEpochSecond(number), (Long) step.get(4)));
            }
        }
        return due;
    }

    /** Makes a consumer without a cluster; returns its configuration's error, or null for no error. */
    private static Object consumer(Map<String, Object> configs) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try {
            new KafkaConsumer<>(configs, bytes, bytes).close();
            return null;
        } catch (KafkaException error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            return cause.getMessage();
        }
    }

    private static Object fit(Map<String, Object> asked) throws InvalidPlanException {
        PlanDocument plan = PlanDocument.parse(((String) asked.get("plan")).getBytes(StandardCharsets.UTF_8));
        Map<String, List<String>> subscriptions = new LinkedHashMap<>();
        for (Map.Entry<String, Object> member
            : PlanDocument.object(asked.get("subscriptions"), "subscriptions").entrySet()) {
            subscriptions.put(member.getKey(), strings(member.getValue()));
        }
        Map<String, Object> shares = new LinkedHashMap<>();
        Fit.fit(plan, subscriptions, counts(asked.get("counts")))
            .forEach((member, share) -> shares.put(member, lists(share)));
        return shares;
    }

    /** Returns a leader's first round of shares, whether a second one follows, and the members' notes. */
    private static Object decide(Map<String, Object> asked) throws InvalidPlanException {
        List<Group.Member> members = new ArrayList<>();
        Map<String, Notes.Subscribed> notes = new LinkedHashMap<>();
        for (Object one : (List<?>) asked.get("members")) {
            Map<String, Object> member = PlanDocument.object(one, "a member");
            List<TopicPartition> owned = new ArrayList<>();
            for (Object pair : (List<?>) member.get("owned")) {
                List<?> partition = (List<?>) pair;
                owned.add(new TopicPartition((String) partition.get(0), ((Long) partition.get(1)).intValue()));
            }
            String memberId = (String) member.get("member_id");
            notes.put(memberId, Notes.Subscribed.decode(ByteBuffer.wrap(bytes(member.get("user_data")))));
            members.add(new Group.Member(
                memberId, strings(member.get("topics")), (String) member.get("instance_id"),
                notes.get(memberId), owned));
        }
        Group group = new Group(members, counts(asked.get("counts")));
        byte[] plan = asked.get("plan") == null ? null : bytes(asked.get("plan"));
        Map<String, Map<String, int[]>> shares =
            plan == null ? group.range() : Follower.fit(PlanDocument.parse(plan), group);
        Map<String, Map<String, int[]>> first = group.firstRound(shares);
        Map<String, Object> said = new LinkedHashMap<>();
        first.forEach((member, share) -> said.put(member, lists(share)));
        List<Object> answer = new ArrayList<>();
        answer.add(said);
        answer.add(Group.size(first) < Group.size(shares));
        notes.forEach((member, note) -> answer.add(text(note.encode())));
        return answer;
    }

    private static Object note(Map<String, Object> asked) {
        Notes.Assigned note = Notes.Assigned.decode(ByteBuffer.wrap(bytes(asked.get("user_data"))));
        return List.of(text(note.encode()), note.followed());
    }

    private static String text(ByteBuffer buffer) {
        return StandardCharsets.UTF_8.decode(buffer.duplicate()).toString();
    }

    private static List<String> strings(Object list) {
        return ((List<?>) list).stream().map(String.class::cast).collect(Collectors.toList());
    }

    private static Map<String, Integer> counts(Object raw) throws InvalidPlanException {
        Map<String, Integer> counts = new LinkedHashMap<>();
        for (Map.Entry<String, Object> count : PlanDocument.object(raw, "counts").entrySet()) {
            counts.put(count.getKey(), ((Long) count.getValue()).intValue());
        }
        return counts;
    }

    private static Map<String, Object> lists(Map<String, int[]> share) {
        Map<String, Object> lists = new LinkedHashMap<>();
        share.forEach((topic, partitions) -> lists.put(
            topic, IntStream.of(partitions).boxed().collect(Collectors.toList())));
        return lists;
    }

    private static int[] expanded(int[] ranges) {
        return IntStream.range(0, ranges.length / 2)
            .flatMap(range -> IntStream.rangeClosed(ranges[2 * range], ranges[2 * range + 1])).toArray();
    }

    /** Returns all fields that Python's reader takes from a document, in the same order. */
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
            Map<String, int[]> partitions = new LinkedHashMap<>();
            share.ranges.forEach((topic, ranges) -> partitions.put(topic, expanded(ranges)));
            pair.add(lists(partitions));
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
        return said;
    }

    private static Object record(Map<String, Object> asked) throws InvalidPlanException {
        VerifiedRecord told = VerifiedRecord.read(
            bytes(asked.get("value")), headers(asked.get("headers")), (String) asked.get("group"),
            new VerifiedRecord.Origin(
                (String) asked.get("topic"), (String) asked.get("cluster"), (String) asked.get("log")),
            Signatures.of((String) asked.get("public_keys")));
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("identity", told.identity.toJson());
        said.put("plan", told.plan != null);
        said.put("lease_ms", told.leaseUntil == null ? null : told.leaseUntil.toEpochMilli());
        return said;
    }

    private static List<Header> headers(Object raw) {
        List<Header> headers = new ArrayList<>();
        for (Object pair : (List<?>) raw) {
            List<?> one = (List<?>) pair;
            byte[] value = one.get(1) == null ? null : bytes(one.get(1));
            headers.add(new RecordHeader((String) one.get(0), value));
        }
        return headers;
    }

    private static byte[] bytes(Object base64) {
        return Base64.getDecoder().decode((String) base64);
    }
}
