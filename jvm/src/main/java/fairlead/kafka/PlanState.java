package fairlead.kafka;

import java.time.Duration;
import java.time.Instant;

/**
 * The known state of a group's plan. Immutable.
 *
 * @param plan the last valid plan; null if there is none or it was withdrawn
 * @param seen the newest valid record
 * @param problem why the newest record was skipped, or why the topic cannot be read; null if nothing is wrong
 * @param skipped number of records skipped so far
 */
record PlanState(PlanDocument plan, Identity seen, Instant leaseUntil, String problem, int skipped) {
    /** By how much a follower's clock may be ahead of the planner's before plans expire too early. */
    static final Duration SKEW = Duration.ofSeconds(60);
    static final PlanState UNKNOWN = new PlanState(null, Identity.NOTHING, null, null, 0);

    /** Returns whether there is a plan whose lease has expired. */
    boolean lapsed(Instant now) {
        return plan != null && leaseUntil != null && !now.isBefore(leaseUntil.plus(SKEW));
    }

    /** Returns why no plan can be followed; null if one can. */
    String whyNot(Instant now) {
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

    /** Returns the state after a record that was skipped. */
    PlanState skipping(String why) {
        return new PlanState(plan, seen, leaseUntil, why, skipped + 1);
    }

    PlanState withProblem(String other) {
        return new PlanState(plan, seen, leaseUntil, other, skipped);
    }
}
