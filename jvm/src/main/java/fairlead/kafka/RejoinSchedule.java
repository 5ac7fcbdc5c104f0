package fairlead.kafka;

import java.time.Instant;
import java.util.Objects;
import java.util.Random;

/**
 * Decides when a member requests a rebalance so that its group follows a newer plan. The rules are those of {@code
 * fairlead/followers/core/rejoin.py}.
 *
 * <p>A member makes at most one request per plan, and one more whenever the lease of an expired plan is renewed. The
 * request is made at a random moment within the jitter. Members other than the leader first wait for the leader's
 * request.
 */
final class RejoinSchedule {
    private final long jitterMs;
    private final Random random;
    /** The newest record at the last rebalance; null during a rebalance. */
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

    /** To be called when a rebalance begins. No request is due until it ends. */
    void unsettle() {
        settled = null;
    }

    /** To be called when a rebalance has ended, with the newest record that was known in it. */
    void settle(Identity seen, boolean lapsed, long turn) {
        settled = seen;
        settledLapsed = lapsed;
        at = null;
        turnMs = turn;
    }

    /** Returns whether to request a rebalance now. True once per plan, and once per renewal of an expired plan. */
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
