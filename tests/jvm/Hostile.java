package fairlead.kafka;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;

/** Feeds a broker's reader with valid but large plans and lists of members, for absent groups. */
final class Hostile {
    private final BrokerReader reader = new BrokerReader(new BrokerSettings(Map.of()));
    private final BrokerReader.Pass pass = reader.new Pass(
        new VerifiedRecord.Origin("fairlead.plans", "cluster", "log"), new VerifiedRecord.Origin("fairlead.members", "cluster", "log"));
    private final Random random = new Random(5);
    private long offset;

    private Hostile() {
    }

    /** Reads `count` records; returns the numbers of stored plans and dropped groups. A real group's plan must stay. */
    static Object check(long count) {
        return new Hostile().feed(count);
    }

    private Object feed(long count) {
        pass.publish();
        reader.book.remember("healthy", new String[] {"m"});
        while (offset < count) {
            for (int some = 0; some < 500; some++) {
                int version = (int) offset + 1;
                String group = "g" + random.nextInt(100_000);
                if (random.nextInt(4) == 0) {
                    tell(group, "fairlead.members", "members", version, roster(group));
                } else {
                    tell(group, "fairlead.plans", "plan", version, plan(group, version, share()));
                }
            }
            int version = (int) offset + 1;
            tell("healthy", "fairlead.plans", "plan", version, plan("healthy", version, "\"0-3,7\""));
            PlanBook.Plan plan = reader.book.plans.get("healthy");
            if (plan == null || plan.document().version() != version) {
                throw new AssertionError("the plan of a group that exists is not held");
            }
        }
        return Map.of("held", (long) reader.book.plans.size(), "rosters", (long) reader.book.rosters.size(),
            "dropped", (long) reader.dropped.size(), "skipped", reader.skipped, "problem", String.valueOf(reader.problem()));
    }

    private void tell(String group, String topic, String kind, int version, String value) {
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        var headers = new RecordHeaders();
        Map.of("format", "2", "kind", kind, "version", kind.equals("plan") ? version + "" : "0", "sha256",
                VerifiedRecord.sha256(bytes), "epoch", version + "")
            .forEach((name, text) -> headers.add(name, text.getBytes(StandardCharsets.UTF_8)));
        pass.apply(new ConsumerRecord<>(topic, 0, offset++, 0L, TimestampType.CREATE_TIME, group.length(), bytes.length,
            group.getBytes(StandardCharsets.UTF_8), bytes, headers, Optional.empty()), true);
    }

    private String roster(String group) {
        String members = many(random.nextInt(2_000), number -> "\"m" + number + "\":\"n\"");
        return "{\"format\":2,\"kind\":\"members\",\"group\":\"" + group + "\",\"at\":\"2026-03-01T12:00:00Z\",\"members\":{" + members
            + "},\"topics\":{}}";
    }

    private String plan(String group, int version, String share) {
        String weights = group.equals("healthy") || random.nextInt(3) > 0 ? ""
            : ",\"w\":[" + many(20_000, number -> "0") + "]";
        return "{\"format\":2,\"group\":\"" + group + "\",\"version\":" + version + ",\"plan_id\":\"p\",\"assignor\":\"a\","
            + "\"created_at\":\"2026-03-01T12:00:00Z\",\"snapshot_at\":\"2026-03-01T12:00:00Z\","
            + "\"partition_counts\":{\"t\":9900000,\"w\":20000},\"topic_ids\":{\"t\":\"x\"},"
            + "\"members\":{\"m\":{\"topics\":[\"t\"],\"partitions\":{\"t\":" + share + "}}},"
            + "\"weights\":{" + weights.replaceFirst("^,", "") + "}}";
    }

    /** Returns one range of millions of partitions, or thousands of ranges. */
    private String share() {
        return random.nextInt(4) > 0 ? "\"0-9899999\""
            : "\"" + many(random.nextInt(20_000), number -> String.valueOf(2 * number)) + "\"";
    }

    private static String many(int count, IntFunction<String> one) {
        return IntStream.range(0, count).mapToObj(one).collect(Collectors.joining(","));
    }
}
