package fairlead.kafka;

import java.util.Comparator;
import java.util.List;

/**
 * Identifies a record of a group in the plan topic. A later record compares as greater.
 *
 * <p>The planner starts a new epoch for the group's first plan, after a withdrawal, and if its database was replaced.
 * {@code sha256} is the hash of the record's value, in hexadecimal.
 */
record Identity(long epoch, long version, boolean withdrawn, String sha256) implements Comparable<Identity> {
    /** The identity of no record; every record is later. */
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

    /** Returns the JSON value that members exchange. */
    List<Object> toJson() {
        return List.of(epoch, version, withdrawn, sha256);
    }

    /** Parses the JSON value of another member; returns {@link #NOTHING} if it is invalid. */
    static Identity fromJson(Object raw) {
        return raw instanceof List<?> values && values.size() == 4
            && values.get(0) instanceof Long epoch && values.get(1) instanceof Long version
            && values.get(2) instanceof Boolean withdrawn && values.get(3) instanceof String sha256
            ? new Identity(epoch, version, withdrawn, sha256) : NOTHING;
    }
}
