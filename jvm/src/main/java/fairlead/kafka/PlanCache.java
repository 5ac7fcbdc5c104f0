package fairlead.kafka;

import org.apache.kafka.common.header.Header;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The last valid plan of one group, updated with each record by the rules of {@code
 * fairlead/followers/core/plan_cache.py}.
 *
 * <p>The record with the latest epoch counts; within an epoch, the record with the highest version; if a version has a
 * plan and a withdrawal, the withdrawal. A repeated version extends the lease. A record is skipped, and the last valid
 * plan stays, if the record is invalid, is not signed as required, or has other bytes for a known version. A tombstone
 * is skipped if public keys are configured, since tombstones cannot be signed.
 */
final class PlanCache {
    private static final Logger LOG = LoggerFactory.getLogger(PlanCache.class);

    private final String group;
    private final VerifiedRecord.Origin origin;
    private final Signatures signatures;
    private PlanState state;
    /**
     * The record of the plan that was known before this connection; null once the connection has read this record. If
     * the connection reads a tombstone before this record, the plan is valid again from this record on, because the
     * tombstone withdrew only earlier records.
     */
    private Identity unread;

    PlanCache(String group, VerifiedRecord.Origin origin, Signatures signatures, PlanState known) {
        this.group = group;
        this.origin = origin;
        this.signatures = signatures;
        this.state = known == null ? PlanState.UNKNOWN : known.withProblem(null);
        this.unread = state.plan() != null ? state.seen() : null;
    }

    PlanState state() {
        return state;
    }

    /** Applies a record with the group's key, in the order of offsets. A tombstone has the value null. */
    void apply(long offset, byte[] value, Iterable<Header> headers) {
        if (value == null) {
            bury(offset);
            return;
        }
        VerifiedRecord verified;
        try {
            verified = VerifiedRecord.read(value, headers, group, origin, signatures);
        } catch (InvalidPlanException error) {
            skip(offset, error.getMessage());
            return;
        }
        boolean again = verified.identity().equals(unread);
        if (again) {
            unread = null;
        }
        int rank = verified.identity().compareRank(state.seen());
        if (rank > 0 || (again && state.plan() == null)) {
            LOG.info("Group {}: plan version {} {} (offset {})", group, verified.identity().version(),
                verified.plan() != null ? "read" : "was withdrawn", offset);
            state = state.withRecord(verified.plan(), verified.identity(), verified.leaseUntil());
        } else if (rank == 0 && !verified.identity().sha256().equals(state.seen().sha256())) {
            skip(offset, "Version " + state.seen().version() + " was already read, with another content");
        } else if (rank == 0) {
            extend(verified);
        }
    }

    private void extend(VerifiedRecord verified) {
        boolean later = state.leaseUntil() != null
            && (verified.leaseUntil() == null || verified.leaseUntil().isAfter(state.leaseUntil()));
        state = state.withRecord(state.plan(), state.seen(), later ? verified.leaseUntil() : state.leaseUntil());
    }

    private void bury(long offset) {
        if (signatures != null) {
            skip(offset, "A tombstone is not signed");
            return;
        }
        LOG.info("Group {}: the plan was withdrawn (tombstone at offset {})", group, offset);
        Identity seen = new Identity(state.seen().epoch(), state.seen().version(), true, "");
        state = state.withRecord(null, seen, null);
    }

    private void skip(long offset, String problem) {
        LOG.warn("Group {}: the plan record at offset {} is skipped: {}. {}", group, offset, problem,
            state.plan() != null
                ? "Version " + state.plan().version() + " stays in force"
                : "There is no earlier plan to keep");
        state = state.skipping(problem);
    }
}
