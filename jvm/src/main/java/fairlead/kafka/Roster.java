package fairlead.kafka;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.header.Header;

/**
 * The names of a group's members, for a group of the consumer protocol. Read from a record of the members topic, which
 * {@code fairlead/wire/members_record.py} writes.
 *
 * @param epoch a number that is greater in later records
 * @param names the members' names in plans, by member id
 * @param topics map from topic id to topic name, for the topics that members read
 */
record Roster(String group, long epoch, Map<String, String> names, Map<Uuid, String> topics) {
    /** Returns about how many bytes of memory this object takes. */
    long bytes() {
        return 300L * (names.size() + topics.size());
    }

    /**
     * Parses and checks a record that is not a tombstone.
     *
     * @param group the group in the record's key
     * @param signatures checks signatures; null if no signature is required
     */
    static Roster read(byte[] value, Iterable<Header> headers, String group, VerifiedRecord.Origin origin, Signatures signatures)
        throws InvalidPlanException {
        Map<String, byte[]> found = VerifiedRecord.headers(value, headers);
        if (!VerifiedRecord.text(found, "kind").equals("members")) {
            throw new InvalidPlanException("The record is not of kind 'members'");
        }
        long epoch = VerifiedRecord.checkHeaders(found, value, group, 0, origin, signatures);
        Map<String, Object> raw = PlanDocument.object(Json.parse(value), "the record of a group's members");
        if (!group.equals(raw.get("group")) || !"members".equals(raw.get("kind"))) {
            throw new InvalidPlanException("The record has no members of group '" + group + "'");
        }
        Map<Uuid, String> topics = new HashMap<>();
        for (Map.Entry<String, String> topic : texts(raw.get("topics"), "topics").entrySet()) {
            Uuid id = uuid(topic.getValue());
            if (id != null) {
                topics.put(id, topic.getKey());
            }
        }
        return new Roster(group, epoch, Map.copyOf(texts(raw.get("members"), "members")), Map.copyOf(topics));
    }

    private static Map<String, String> texts(Object value, String what) throws InvalidPlanException {
        Map<String, String> found = new HashMap<>();
        for (Map.Entry<String, Object> entry : PlanDocument.object(value, what).entrySet()) {
            if (!(entry.getValue() instanceof String text) || text.isEmpty()) {
                throw new InvalidPlanException(what + ": a value is not a string");
            }
            found.put(entry.getKey(), text);
        }
        return found;
    }

    /** Parses a topic id as Kafka writes it; returns null if the text is not an id. */
    static Uuid uuid(String text) {
        try {
            return Uuid.fromString(text);
        } catch (IllegalArgumentException error) {
            return null;
        }
    }
}
