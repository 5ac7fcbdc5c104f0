package fairlead.kafka;

import java.util.List;

/**
 * Identifies a record of the plan topic; a later record compares as greater.
 *
 * <p>The epoch belongs to the group's versions, from 1; {@code sha256} is the value's hash, in hexadecimal.
 */
final class Identity implements Comparable<Identity> {
    /** Before any record. */
    static final Identity NOTHING = new Identity(0, 0, false, "");

    final long epoch;
    final long version;
    final boolean withdrawn;
    final String sha256;

    Identity(long epoch, long version, boolean withdrawn, String sha256) {
        this.epoch = epoch;
        this.version = version;
        this.withdrawn = withdrawn;
        this.sha256 = sha256;
    }

    /** Compares by epoch, version and withdrawal, without the hash. */
    int compareRank(Identity other) {
        int by = Long.compare(epoch, other.epoch);
        by = by != 0 ? by : Long.compare(version, other.version);
        return by != 0 ? by : Boolean.compare(withdrawn, other.withdrawn);
    }

    boolean isNewerThan(Identity other) {
        return compareRank(other) > 0;
    }

    @Override
    public int compareTo(Identity other) {
        int by = compareRank(other);
        return by != 0 ? by : PlanDocument.compareNames(sha256, other.sha256);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Identity && compareTo((Identity) other) == 0;
    }

    @Override
    public int hashCode() {
        return (Long.hashCode(epoch) * 31 + Long.hashCode(version)) * 31 + sha256.hashCode();
    }

    /** Returns the form that members exchange. */
    List<Object> toJson() {
        return List.of(epoch, version, withdrawn, sha256);
    }

    /** Parses the newest record of another member; returns NOTHING if the value is invalid. */
    static Identity fromJson(Object raw) {
        if (!(raw instanceof List) || ((List<?>) raw).size() != 4) {
            return NOTHING;
        }
        List<?> values = (List<?>) raw;
        if (!(values.get(0) instanceof Long && values.get(1) instanceof Long
            && values.get(2) instanceof Boolean && values.get(3) instanceof String)) {
            return NOTHING;
        }
        return new Identity(
            (Long) values.get(0), (Long) values.get(1), (Boolean) values.get(2), (String) values.get(3));
    }
}
