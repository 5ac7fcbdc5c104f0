package fairlead.kafka;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.header.Header;

/**
 * A record of the plan topic that has passed all checks that need no other record. The checks are the same as in
 * {@code fairlead/wire/record_reading.py}.
 *
 * @param plan the plan to follow; null if the record withdraws the previous plan
 * @param leaseUntil when the lease expires unless it is renewed; null for never
 */
record VerifiedRecord(Identity identity, PlanDocument plan, Instant leaseUntil) {
    /** By how much an epoch, a time of the planner's clock in milliseconds, may be ahead of the present time. */
    private static final long AHEAD_MS = 24 * 3_600_000L;

    /** Where a record comes from: topic name, cluster id and topic id. Unknown values are "". */
    record Origin(String topic, String cluster, String log) {}

    /**
     * Parses and checks a record that is not a tombstone. The signature is checked before the value is parsed.
     *
     * @param group the group in the record's key
     * @param signatures the public keys, one of which must verify the signature; null if no signature is required
     */
    static VerifiedRecord read(
        byte[] value, Iterable<Header> headers, String group, Origin origin, Signatures signatures)
        throws InvalidPlanException {
        Map<String, byte[]> found = headers(value, headers);
        String kind = text(found, "kind");
        if (!kind.equals("plan") && !kind.equals("withdrawn")) {
            throw new InvalidPlanException(
                "The record is of kind '" + kind + "', which this version does not support");
        }
        int version = (int) positive(found, "version", Integer.MAX_VALUE);
        long epoch = checkHeaders(found, value, group, version, origin, signatures);
        PlanDocument plan = kind.equals("plan") ? document(value, group) : null;
        int says = plan != null ? plan.version() : withdrawnVersion(value, group);
        if (says != version) {
            throw new InvalidPlanException(
                "The record's version header is " + version + ", but its value has version " + says);
        }
        Identity identity = new Identity(epoch, version, plan == null, text(found, "sha256"));
        return new VerifiedRecord(identity, plan, lease(text(found, "lease_until")));
    }

    /** Returns a record's headers by name. The headers must state this format, and the hash of the record's value. */
    static Map<String, byte[]> headers(byte[] value, Iterable<Header> headers) throws InvalidPlanException {
        Map<String, byte[]> found = new HashMap<>();
        for (Header header : headers) {
            found.put(header.key(), header.value() == null ? new byte[0] : header.value());
        }
        String format = text(found, "format");
        if (!format.equals(PlanDocument.FORMAT.toString())) {
            throw new InvalidPlanException(
                "The record's format header is '" + format.substring(0, Math.min(40, format.length()))
                    + "'; this version reads format " + PlanDocument.FORMAT);
        }
        if (!text(found, "sha256").equals(sha256(value))) {
            throw new InvalidPlanException("The record's sha256 header is not the hash of its value");
        }
        return found;
    }

    private static PlanDocument document(byte[] value, String group) throws InvalidPlanException {
        PlanDocument plan;
        try {
            plan = PlanDocument.parse(value);
        } catch (InvalidPlanException error) {
            throw new InvalidPlanException("The plan cannot be read: " + error.getMessage());
        }
        if (!plan.group().equals(group)) {
            throw new InvalidPlanException(
                "The plan is for group '" + plan.group() + "', but the record's key is '" + group + "'");
        }
        return plan;
    }

    private static int withdrawnVersion(byte[] value, String group) throws InvalidPlanException {
        Map<String, Object> raw = PlanDocument.object(Json.parse(value), "the record of a withdrawal");
        int version = PlanDocument.count(raw.get("version"), "the withdrawn version");
        if (!group.equals(raw.get("group")) || !"withdrawn".equals(raw.get("kind")) || version == 0) {
            throw new InvalidPlanException(
                "The withdrawal record does not name a version of '" + group + "'");
        }
        return version;
    }

    /** Checks a record's signature, cluster and log; returns its epoch. */
    static long checkHeaders(
        Map<String, byte[]> found, byte[] value, String group, int version, Origin origin,
        Signatures signatures) throws InvalidPlanException {
        if (signatures != null) {
            checkSignature(found, value, group, version, origin, signatures);
        }
        check("cluster", text(found, "cluster"), origin.cluster);
        check("log", text(found, "log"), origin.log);
        return epoch(found);
    }

    private static void checkSignature(
        Map<String, byte[]> found, byte[] value, String group, int version, Origin origin,
        Signatures signatures) throws InvalidPlanException {
        byte[] none = new byte[0];
        if (!found.containsKey("signature") || !found.containsKey("key_id")) {
            throw new InvalidPlanException("The record is not signed");
        }
        if (found.getOrDefault("cluster", none).length == 0 || found.getOrDefault("log", none).length == 0) {
            throw new InvalidPlanException("The record is signed, but lacks the header `cluster` or `log`");
        }
        byte[] signature = Signatures.decode(
            new String(found.get("signature"), StandardCharsets.ISO_8859_1));
        if (signature == null) {
            throw new InvalidPlanException("The record's signature is not base64");
        }
        byte[] message = Signatures.signedBytes(
            found.get("cluster"),
            PlanDocument.key(origin.topic),
            found.get("log"),
            PlanDocument.key(group),
            found.get("kind"),
            PlanDocument.key(Integer.toString(version)),
            found.getOrDefault("epoch", none),
            digest(value),
            found.getOrDefault("lease_until", none));
        try {
            signatures.verify(text(found, "key_id"), signature, message);
        } catch (InvalidPlanException error) {
            throw new InvalidPlanException("The record is rejected: " + error.getMessage());
        }
    }

    private static void check(String name, String said, String known) throws InvalidPlanException {
        if (!known.isEmpty() && !said.isEmpty() && !said.equals(known)) {
            throw new InvalidPlanException("The record is for " + name + " '" + said + "', not for '" + known + "'");
        }
    }

    private static long epoch(Map<String, byte[]> found) throws InvalidPlanException {
        long epoch = positive(found, "epoch", Long.MAX_VALUE);
        if (epoch > System.currentTimeMillis() + AHEAD_MS) {
            throw new InvalidPlanException("The record's epoch, " + epoch + ", is over a day in the future");
        }
        return epoch;
    }

    /** Parses a header as a positive number. It may have 18 digits, which fit the numbers of every language. */
    private static long positive(Map<String, byte[]> found, String name, long most) throws InvalidPlanException {
        String text = text(found, name);
        if (!text.matches("[0-9]{1,18}") || Long.parseLong(text) == 0 || Long.parseLong(text) > most) {
            throw new InvalidPlanException("The record's " + name + " is not a positive number");
        }
        return Long.parseLong(text);
    }

    private static Instant lease(String text) throws InvalidPlanException {
        if (text.isEmpty()) {
            return null;
        }
        Instant until = Times.parse(text);
        if (until == null) {
            throw new InvalidPlanException("The record's lease_until is not a time with its time zone");
        }
        return until;
    }

    static String text(Map<String, byte[]> found, String name) throws InvalidPlanException {
        byte[] value = found.getOrDefault(name, new byte[0]);
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(value)).toString();
        } catch (CharacterCodingException error) {
            throw new InvalidPlanException("The record's " + name + " header is not UTF-8");
        }
    }

    private static byte[] digest(byte[] value) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(value);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error); // every Java has SHA-256
        }
    }

    static String sha256(byte[] value) {
        return String.format("%064x", new BigInteger(1, digest(value)));
    }
}
