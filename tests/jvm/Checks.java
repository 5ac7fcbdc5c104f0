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

/** Answers questions about the jar's classes. Each question and each answer is a line of JSON. */
final class Checks {
    private Checks() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> request = PlanDocument.object(Json.parse(line.getBytes(StandardCharsets.UTF_8)), line);
            out.println(Json.write(answer(request)));
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    private static Object answer(Map<String, Object> request) throws Exception {
        try {
            switch ((String) request.get("ask")) {
                case "fit":
                    return fit(request);
                case "beans":
                    return Beans.read((String) request.get("process"));
                case "act":
                    return Metered.act(request);
                case "cache":
                    return cache(request);
                case "committed":
                    return Metered.committed(request);
                case "consumer":
                    return consumer(PlanDocument.object(request.get("configs"), "configs"));
                case "decide":
                    return decide(request);
                case "document":
                    return document(bytes(request.get("value")));
                case "groups":
                    return Groups.check((Long) request.get("count"));
                case "hostile":
                    return Hostile.check((Long) request.get("count"));
                case "meter":
                    return Metered.meter(request);
                case "note":
                    return note(request);
                case "schedule":
                    return schedule(request);
                case "record":
                    return record(request);
                default:
                    throw new IllegalArgumentException("unknown: " + request.get("ask"));
            }
        } catch (InvalidPlanException refused) {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("refused", refused.getMessage());
            return fields;
        }
    }

    /** Returns the cache's state after each record; a null record stands for a new connection. */
    private static Object cache(Map<String, Object> request) {
        VerifiedRecord.Origin origin = new VerifiedRecord.Origin("fairlead.plans", "cluster", "log");
        Signatures signatures = Signatures.of((String) request.get("public_keys"));
        PlanCache cache = new PlanCache("group", origin, signatures, null);
        List<Object> states = new ArrayList<>();
        for (Object one : (List<?>) request.get("records")) {
            if (one == null) {
                cache = new PlanCache("group", origin, signatures, cache.state());
            } else {
                List<?> record = (List<?>) one;
                byte[] value = record.get(0) == null ? null : bytes(record.get(0));
                cache.apply(states.size(), value, headers(record.get(1)));
            }
            PlanState state = cache.state();
            List<Object> fields = new ArrayList<>();
            fields.add(state.plan() == null ? null : state.plan().version());
            fields.add(state.seen().toJson());
            fields.add(state.leaseUntil() == null ? null : state.leaseUntil().toEpochMilli());
            fields.add(state.problem() != null);
            fields.add(state.skipped());
            states.add(fields);
        }
        return states;
    }

    /** Returns whether a request for a rebalance is due at each "due" step; the random delay is 0. */
    private static Object schedule(Map<String, Object> request) {
        RejoinSchedule schedule = new RejoinSchedule(0, new Random(1));
        List<Object> due = new ArrayList<>();
        for (Object one : (List<?>) request.get("steps")) {
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

    /** Makes a consumer without a cluster; returns the error of its configuration, or null. */
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

    private static Object fit(Map<String, Object> request) throws InvalidPlanException {
        PlanDocument plan = PlanDocument.parse(((String) request.get("plan")).getBytes(StandardCharsets.UTF_8));
        Map<String, List<String>> subscriptions = new LinkedHashMap<>();
        for (Map.Entry<String, Object> member
            : PlanDocument.object(request.get("subscriptions"), "subscriptions").entrySet()) {
            subscriptions.put(member.getKey(), strings(member.getValue()));
        }
        return lists(Fit.fit(plan, subscriptions, counts(request.get("counts"))));
    }

    /** Returns a leader's first round of shares, whether a second round follows, and the members' notes. */
    private static Object decide(Map<String, Object> request) throws InvalidPlanException {
        List<Group.Member> members = new ArrayList<>();
        Map<String, Notes.Subscribed> notes = new LinkedHashMap<>();
        for (Object one : (List<?>) request.get("members")) {
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
        Group group = new Group(members, counts(request.get("counts")));
        byte[] plan = request.get("plan") == null ? null : bytes(request.get("plan"));
        Map<String, List<TopicPartition>> shares =
            plan == null ? group.range() : Follower.fit(PlanDocument.parse(plan), group);
        Map<String, List<TopicPartition>> first = group.firstRound(shares);
        List<Object> answer = new ArrayList<>();
        answer.add(lists(first));
        answer.add(Group.size(first) < Group.size(shares));
        notes.forEach((member, note) -> answer.add(text(note.encode())));
        return answer;
    }

    private static Object note(Map<String, Object> request) {
        Notes.Assigned note = Notes.Assigned.decode(ByteBuffer.wrap(bytes(request.get("user_data"))));
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

    /** Returns partition numbers by member and topic. */
    private static Object lists(Map<String, List<TopicPartition>> shares) {
        Map<String, Map<String, List<Integer>>> lists = new LinkedHashMap<>();
        shares.forEach((member, share) -> {
            lists.put(member, new LinkedHashMap<>());
            share.forEach(one -> lists.get(member)
                .computeIfAbsent(one.topic(), topic -> new ArrayList<>()).add(one.partition()));
        });
        return lists;
    }

    private static List<Integer> expanded(int[] ranges) {
        return IntStream.range(0, ranges.length / 2)
            .flatMap(range -> IntStream.rangeClosed(ranges[2 * range], ranges[2 * range + 1]))
            .boxed().collect(Collectors.toList());
    }

    /** Returns all fields that Python's reader takes from a document, in the same order. */
    private static Object document(byte[] value) throws InvalidPlanException {
        PlanDocument plan = PlanDocument.parse(value);
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("group", plan.group());
        fields.put("version", plan.version());
        fields.put("partition_counts", plan.partitionCounts());
        Map<String, Object> members = new LinkedHashMap<>();
        plan.members().forEach((name, share) -> {
            List<Object> pair = new ArrayList<>();
            pair.add(share.topics());
            Map<String, List<Integer>> partitions = new LinkedHashMap<>();
            share.ranges().forEach((topic, ranges) -> partitions.put(topic, expanded(ranges)));
            pair.add(partitions);
            members.put(name, pair);
        });
        fields.put("members", members);
        Map<String, Object> weights = new LinkedHashMap<>();
        plan.weights().forEach((topic, values) -> {
            List<Object> bits = new ArrayList<>();
            for (double weight : values) {
                bits.add(Double.doubleToLongBits(weight));
            }
            weights.put(topic, bits);
        });
        fields.put("weights", weights);
        fields.put("topic_ids", plan.topicIds());
        return fields;
    }

    private static Object record(Map<String, Object> request) throws InvalidPlanException {
        VerifiedRecord verified = VerifiedRecord.read(
            bytes(request.get("value")), headers(request.get("headers")), (String) request.get("group"),
            new VerifiedRecord.Origin(
                (String) request.get("topic"), (String) request.get("cluster"), (String) request.get("log")),
            Signatures.of((String) request.get("public_keys")));
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("identity", verified.identity().toJson());
        fields.put("plan", verified.plan() != null);
        fields.put("lease_ms", verified.leaseUntil() == null ? null : verified.leaseUntil().toEpochMilli());
        return fields;
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
