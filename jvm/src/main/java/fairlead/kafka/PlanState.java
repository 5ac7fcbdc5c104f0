package fairlead.kafka;

import java.time.Duration;
import java.time.Instant;

/** The known state of a group's plan; immutable. */
public final class PlanState {
    /** Maximum lead of a follower's clock over the planner's with which no plan expires too early. */
    static final Duration SKEW = Duration.ofSeconds(60);
    static final PlanState UNKNOWN = new PlanState(null, Identity.NOTHING, null, null, 0);

    private final PlanDocument plan;
    final Identity seen;
    final Instant leaseUntil;
    private final String problem;
    private final int skipped;

    PlanState(PlanDocument plan, Identity seen, Instant leaseUntil, String problem, int skipped) {
        this.plan = plan;
        this.seen = seen;
        this.leaseUntil = leaseUntil;
        this.problem = problem;
        this.skipped = skipped;
    }

    /** The last good plan; null: there is none, or it was withdrawn. */
    public PlanDocument plan() {
        return plan;
    }

    /** When the plan expires, including the allowance for clocks; null: never. */
    public Instant validUntil() {
        return leaseUntil == null ? null : leaseUntil.plus(SKEW);
    }

    /** Whether there is a plan whose lease has expired. */
    public boolean lapsed(Instant now) {
        return plan != null && leaseUntil != null && !now.isBefore(validUntil());
    }

    /** Why the newest record was skipped, or the topic cannot be read; null: nothing is wrong. */
    public String problem() {
        return problem;
    }

    /** Number of records skipped so far. */
    public int skipped() {
        return skipped;
    }

    /** Returns why no plan can be followed; null: a plan can be followed. */
    public String whyNot(Instant now) {
        if (plan != null) {
            return lapsed(now) ? "plan version " + plan.version() + " expired at " + leaseUntil : null;
        }
        if (problem != null) {
            return "there is no readable plan: " + problem;
        }
        return seen.equals(Identity.NOTHING) ? "no plan has been published" : "the plan was withdrawn";
    }

    /** Returns the state after a valid record. */
    PlanState withRecord(PlanDocument newPlan, Identity identity, Instant newLease) {
        return new PlanState(newPlan, identity, newLease, null, skipped);
    }

    /** Returns the state after its own record was read again, with this lease. */
    PlanState withLease(Instant newLease) {
        return withRecord(plan, seen, newLease);
    }

    /** Returns the state after a record that is skipped. */
    PlanState skipping(String why) {
        return new PlanState(plan, seen, leaseUntil, why, skipped + 1);
    }

    PlanState withProblem(String other) {
        return new PlanState(plan, seen, leaseUntil, other, skipped);
    }
}
