package fairlead.kafka;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * One version of a group's plan, parsed as in {@code fairlead/wire/document.py}.
 *
 * <p>Callers must not change its arrays and maps.
 *
 * @param version version of the plan, from 1
 * @param partitionCounts map from every topic that a member subscribes to, to its number of partitions
 * @param members map from member name to share, in the order of the document
 * @param weights map from topic to the weight of each partition; may lack topics
 * @param topicIds map from topic to its id, as Kafka writes ids; may lack topics
 */
record PlanDocument(
    String group, int version, Map<String, Integer> partitionCounts, Map<String, Share> members,
    Map<String, double[]> weights, Map<String, String> topicIds) {
    /** Number of the format of documents, and of the records that contain them. */
    static final Long FORMAT = 2L;
    /** Maximum number of partitions of a document, in all topics together. */
    static final long MAX_PARTITIONS = 10_000_000;

    /** Bytes of memory that an entry of a map takes with a short text. */
    private static final long ENTRY_BYTES = 160;

    /**
     * The subscription and the partitions of one member.
     *
     * @param ranges map from topic to the first and last partition of each range, ascending; topics are in the order
     *     of the document
     */
    record Share(List<String> topics, Map<String, int[]> ranges) {}

    /** Returns about how many bytes of memory this object takes: at most about twenty times the record's size. */
    long bytes() {
        long entries = partitionCounts.size() + weights.size() + 2L * topicIds.size();
        long values = 0;
        for (double[] some : weights.values()) {
            values += 2L * some.length;
        }
        for (Share share : members.values()) {
            entries += 2 + share.topics.size() + 2L * share.ranges.size();
            for (int[] some : share.ranges.values()) {
                values += some.length;
            }
        }
        return ENTRY_BYTES * entries + Integer.BYTES * values;
    }

    /**
     * Parses and checks a document.
     *
     * @throws InvalidPlanException the value is not JSON or has another format; or a partition has two owners, is out
     *     of range, or is of a topic without a partition count
     */
    static PlanDocument parse(byte[] value) throws InvalidPlanException {
        Map<String, Object> raw = object(Json.parse(value), "the plan");
        if (!FORMAT.equals(raw.get("format"))) {
            throw new InvalidPlanException("it is not of format " + FORMAT);
        }
        Map<String, Integer> counts = counts(object(raw.get("partition_counts"), "partition_counts"));
        int version = count(raw.get("version"), "version");
        if (version == 0) {
            throw new InvalidPlanException("version is 0: versions count from 1");
        }
        text(raw, "plan_id");
        text(raw, "assignor");
        checkTime(raw, "created_at");
        checkTime(raw, "snapshot_at");
        return new PlanDocument(
            text(raw, "group"),
            version,
            counts,
            members(object(raw.get("members"), "members"), counts),
            weights(object(raw.get("weights"), "weights"), counts),
            topicIds(object(raw.get("topic_ids"), "topic_ids"), counts));
    }

    private static Map<String, Integer> counts(Map<String, Object> raw) throws InvalidPlanException {
        Map<String, Integer> counts = new LinkedHashMap<>();
        long total = 0;
        for (Map.Entry<String, Object> entry : raw.entrySet()) {
            int count = count(entry.getValue(), entry.getKey());
            counts.put(entry.getKey(), count);
            total += count;
        }
        if (total > MAX_PARTITIONS) {
            throw new InvalidPlanException("more than " + MAX_PARTITIONS + " partitions are counted");
        }
        return counts;
    }

    private static Map<String, Share> members(Map<String, Object> raw, Map<String, Integer> counts)
        throws InvalidPlanException {
        Map<String, BitSet> owned = new HashMap<>();
        Map<String, Share> members = new LinkedHashMap<>();
        for (Map.Entry<String, Object> entry : raw.entrySet()) {
            Share share = share(entry.getKey(), object(entry.getValue(), "a member"), counts);
            for (String topic : share.ranges.keySet()) {
                own(topic, share.ranges.get(topic), owned.computeIfAbsent(topic, one -> new BitSet()));
            }
            members.put(entry.getKey(), share);
        }
        return members;
    }

    /** Adds ranges to the owned partitions of a topic; refuses partitions that are owned already. */
    private static void own(String topic, int[] ranges, BitSet owned) throws InvalidPlanException {
        for (int range = 0; range < ranges.length; range += 2) {
            int first = ranges[range];
            int end = ranges[range + 1] + 1;
            if (!owned.get(first, end).isEmpty()) {
                throw new InvalidPlanException(topic + "-" + first + " or a later partition has more than one owner");
            }
            owned.set(first, end);
        }
    }

    private static Share share(String name, Map<String, Object> raw, Map<String, Integer> counts)
        throws InvalidPlanException {
        Map<String, int[]> ranges = new LinkedHashMap<>();
        for (Map.Entry<String, Object> entry : object(raw.get("partitions"), "partitions").entrySet()) {
            Integer count = counts.get(entry.getKey());
            if (count == null || !(entry.getValue() instanceof String text)) {
                throw new InvalidPlanException(
                    "members." + name + ": topic '" + entry.getKey()
                        + "' has no partition count, or its partitions are not a string");
            }
            ranges.put(entry.getKey(), PartitionSets.parse(text, count));
        }
        List<String> topics = new ArrayList<>();
        for (Object topic : array(raw.get("topics"), "topics")) {
            if (!(topic instanceof String known)) {
                throw new InvalidPlanException("members." + name + ".topics is not a list of topics");
            }
            topics.add(known);
        }
        Set<String> read = new HashSet<>(topics);
        for (String topic : ranges.keySet()) {
            if (!read.contains(topic)) {
                throw new InvalidPlanException(
                    "members." + name + " owns partitions of '" + topic + "', to which it does not subscribe");
            }
        }
        return new Share(topics, ranges);
    }

    private static Map<String, double[]> weights(Map<String, Object> raw, Map<String, Integer> counts)
        throws InvalidPlanException {
        Map<String, double[]> weights = new HashMap<>();
        for (Map.Entry<String, Object> entry : raw.entrySet()) {
            List<Object> values = array(entry.getValue(), "weights." + entry.getKey());
            if (!Integer.valueOf(values.size()).equals(counts.get(entry.getKey()))) {
                throw new InvalidPlanException("weights." + entry.getKey() + ": not one value for each partition");
            }
            double[] read = new double[values.size()];
            for (int index = 0; index < read.length; index++) {
                read[index] = weight(values.get(index), entry.getKey());
            }
            weights.put(entry.getKey(), read);
        }
        return weights;
    }

    private static double weight(Object raw, String topic) throws InvalidPlanException {
        double value = raw instanceof Number number ? number.doubleValue() : Double.NaN;
        if (!(value >= 0 && value <= Double.MAX_VALUE)) {
            throw new InvalidPlanException("weights." + topic + ": a value is negative or not a number");
        }
        return value;
    }

    private static Map<String, String> topicIds(Map<String, Object> raw, Map<String, Integer> counts)
        throws InvalidPlanException {
        Map<String, String> ids = new HashMap<>();
        for (String topic : raw.keySet()) {
            if (!counts.containsKey(topic)) {
                throw new InvalidPlanException("topic_ids." + topic + ": the topic is not in partition_counts");
            }
            ids.put(topic, text(raw, topic));
        }
        return ids;
    }

    private static String text(Map<String, Object> raw, String key) throws InvalidPlanException {
        Object value = raw.get(key);
        if (!(value instanceof String text) || text.isEmpty()) {
            throw new InvalidPlanException(key + " is not a string");
        }
        return text;
    }

    private static void checkTime(Map<String, Object> raw, String key) throws InvalidPlanException {
        Object value = raw.get(key);
        if (!(value instanceof String text) || Times.parse(text) == null) {
            throw new InvalidPlanException(key + " is not an ISO 8601 time with its time zone");
        }
    }

    static int count(Object value, String what) throws InvalidPlanException {
        if (!(value instanceof Long count) || count < 0 || count > Integer.MAX_VALUE) {
            throw new InvalidPlanException(what + " is not a count");
        }
        return count.intValue();
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value, String what) throws InvalidPlanException {
        if (!(value instanceof Map)) {
            throw new InvalidPlanException(what + " is not an object");
        }
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    private static List<Object> array(Object value, String what) throws InvalidPlanException {
        if (!(value instanceof List)) {
            throw new InvalidPlanException(what + " is not a list");
        }
        return (List<Object>) value;
    }

    /** Compares names by code point, as the planner does. ({@code String.compareTo} compares UTF-16 code units.) */
    static int compareNames(String one, String other) {
        int shorter = Math.min(one.length(), other.length());
        for (int index = 0; index < shorter; index++) {
            if (one.charAt(index) != other.charAt(index)) {
                boolean within = index > 0 && Character.isHighSurrogate(one.charAt(index - 1));
                int start = within ? index - 1 : index;
                return Integer.compare(one.codePointAt(start), other.codePointAt(start));
            }
        }
        return Integer.compare(one.length(), other.length());
    }

    /** Returns a group's key in the plan topic. */
    static byte[] key(String group) {
        return group.getBytes(StandardCharsets.UTF_8);
    }
}
