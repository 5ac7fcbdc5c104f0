package fairlead.kafka;

import java.util.Comparator;
import java.util.List;

/**
 * Identifies a record of the plan topic; a later record compares as greater.
 *
 * <p>The epoch belongs to the group's versions, from 1; {@code sha256} is the value's hash, in hexadecimal.
 */
record Identity(long epoch, long version, boolean withdrawn, String sha256) implements Comparable<Identity> {
    /** Before any record. */
    static final Identity NOTHING = new Identity(0, 0, false, "");

    private static final Comparator<Identity> RANK = Comparator.comparingLong(Identity::epoch)
        .thenComparingLong(Identity::version).thenComparing(Identity::withdrawn);

    /** Compares by epoch, version and withdrawal, without the hash. */
    int compareRank(Identity other) {
        return RANK.compare(this, other);
    }

    boolean isNewerThan(Identity other) {
        return compareRank(other) > 0;
    }

    @Override
    public int compareTo(Identity other) {
        int by = compareRank(other);
        return by != 0 ? by : PlanDocument.compareNames(sha256, other.sha256);
    }

    /** Returns the form that members exchange. */
    List<Object> toJson() {
        return List.of(epoch, version, withdrawn, sha256);
    }

    /** Parses the newest record of another member; returns NOTHING if the value is invalid. */
    static Identity fromJson(Object raw) {
        return raw instanceof List<?> values && values.size() == 4
            && values.get(0) instanceof Long epoch && values.get(1) instanceof Long version
            && values.get(2) instanceof Boolean withdrawn && values.get(3) instanceof String sha256
            ? new Identity(epoch, version, withdrawn, sha256) : NOTHING;
    }
}
