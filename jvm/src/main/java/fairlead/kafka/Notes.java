package fairlead.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Notes that followers of a group exchange: members send them to the leader as user data of subscriptions, the leader
 * to members as user data of assignments. The format is that of {@code fairlead/wire/members.py}, so that one group
 * may have followers in several languages.
 */
final class Notes {
    private static final Long FORMAT = 1L;

    private Notes() {
    }

    /**
     * The note of a follower to its leader.
     *
     * @param seen the newest record of the plan topic that the member has read
     * @param lapsed whether that record is a plan whose lease has expired, as far as the member knows
     * @param again number of rebalances that the member requested for another reason than a plan
     */
    record Subscribed(String clientId, String instanceId, Identity seen, boolean lapsed, int again) {
        ByteBuffer encode() {
            return Notes.encode(
                "client_id", clientId, "instance_id", instanceId, "seen", seen.toJson(), "lapsed", lapsed,
                "again", again);
        }

        /** Parses a subscription's user data; returns an empty note for a member that is not a follower. */
        static Subscribed decode(ByteBuffer userData) {
            Map<String, Object> values = Notes.decode(userData);
            return new Subscribed(
                text(values.get("client_id")),
                text(values.get("instance_id")),
                Identity.fromJson(values.get("seen")),
                Boolean.TRUE.equals(values.get("lapsed")),
                0);
        }
    }

    /**
     * The note of the leader to every member.
     *
     * @param planVersion the version of the plan that the assignment follows; null if it is the fallback's
     * @param seen the newest record that any member had read when the leader decided
     * @param fallbackReason why the fallback was used; null if the assignment follows a plan
     * @param lapsed whether {@code seen} is a plan whose lease had expired
     * @param decided the newest record that the leader itself had read; null if unknown
     * @param incomplete whether some partitions are in no share yet, because their owners must give them up first
     */
    record Assigned(
        Long planVersion, Identity seen, String fallbackReason, boolean lapsed, Identity decided, boolean incomplete) {
        ByteBuffer encode() {
            return Notes.encode(
                "plan_version", planVersion, "seen", seen.toJson(), "fallback_reason", fallbackReason,
                "lapsed", lapsed, "decided", decided == null ? null : decided.toJson(), "incomplete", incomplete);
        }

        /** Parses an assignment's user data; returns an empty note for data of another format. */
        static Assigned decode(ByteBuffer userData) {
            Map<String, Object> values = Notes.decode(userData);
            Object version = values.get("plan_version");
            Object decided = values.get("decided");
            return new Assigned(
                version instanceof Long number ? number : null,
                Identity.fromJson(values.get("seen")),
                text(values.get("fallback_reason")),
                Boolean.TRUE.equals(values.get("lapsed")),
                decided == null ? null : Identity.fromJson(decided),
                Boolean.TRUE.equals(values.get("incomplete")));
        }

        /** Returns for logs whether the assignment follows a plan, and which. */
        String followed() {
            if (planVersion != null) {
                return "plan version " + planVersion;
            }
            return "the fallback: " + (fallbackReason == null ? "its leader gave no reason" : fallbackReason);
        }
    }

    /** Encodes a note. The arguments are names and values in turns. */
    private static ByteBuffer encode(Object... fields) {
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("fairlead", FORMAT);
        for (int name = 0; name < fields.length; name += 2) {
            values.put((String) fields[name], fields[name + 1]);
        }
        return ByteBuffer.wrap(Json.write(values).getBytes(StandardCharsets.UTF_8));
    }

    private static Map<String, Object> decode(ByteBuffer userData) {
        if (userData == null) {
            return Map.of();
        }
        byte[] bytes = new byte[userData.remaining()];
        userData.duplicate().get(bytes); // a duplicate, since other code reads the buffer, too
        try {
            Map<String, Object> values = PlanDocument.object(Json.parse(bytes), "a note");
            return FORMAT.equals(values.get("fairlead")) ? values : Map.of();
        } catch (InvalidPlanException error) {
            return Map.of();
        }
    }

    private static String text(Object value) {
        return value instanceof String text ? text : null;
    }
}
