package fairlead.kafka;

import java.time.Instant;
import java.util.Objects;
import java.util.Random;

/**
 * When one member requests a rebalance to follow a plan that its group does not follow yet, by the rules of
 * {@code fairlead/followers/core/rejoin.py}.
 *
 * <p>A member makes at most one request per plan, and one more for each renewed lease of an expired plan, at
 * a random time within the jitter, after the member's turn has come.
 */
final class RejoinSchedule {
    private final long jitterMs;
    private final Random random;
    /** Null while a rebalance is under way. */
    private Identity settled;
    private boolean settledLapsed;
    private Identity asked = Identity.NOTHING;
    private Identity renewed = Identity.NOTHING;
    private Instant renewedUntil;
    private Long at;
    private long turnMs;

    RejoinSchedule(long jitterMs, Random random) {
        this.jitterMs = jitterMs;
        this.random = random;
    }

    /** Notes that a rebalance has begun: no request is due until it ends. */
    void unsettle() {
        settled = null;
    }

    /** Notes that a rebalance has ended, in which this record was the newest known. */
    void settle(Identity seen, boolean lapsed, long turn) {
        settled = seen;
        settledLapsed = lapsed;
        at = null;
        turnMs = turn;
    }

    /** Whether to request a rebalance now; true once per plan, and once per renewed lease of an expired plan. */
    boolean due(Identity seen, boolean lapsed, Instant leaseUntil, long nowMs) {
        if (settled == null) {
            return false;
        }
        Identity known = asked.isNewerThan(settled) ? asked : settled;
        boolean again = settledLapsed && !lapsed && seen.compareRank(settled) == 0
            && !(seen.equals(renewed) && Objects.equals(leaseUntil, renewedUntil));
        if (!seen.isNewerThan(known) && !again) {
            return false;
        }
        if (at == null) {
            at = nowMs + turnMs + (long) (random.nextDouble() * jitterMs);
        }
        if (nowMs < at) {
            return false;
        }
        asked = seen;
        renewed = seen;
        renewedUntil = leaseUntil;
        at = null;
        return true;
    }
}
