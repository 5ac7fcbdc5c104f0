package fairlead.kafka;

import java.util.Map;

/** Metrics of a broker's assignor, under {@code fairlead.kafka:type=PlanGroupAssignor}. */
public interface PlanGroupAssignorMXBean {
    /** How often a group was assigned since the broker started. */
    long getCalls();

    /** How often by what: {@code PLAN}, {@code KEPT_...}, {@code UNIFORM...}, {@code EMPTY}. */
    Map<String, Long> getOutcomes();

    /** Bugs: how often deciding failed, and targets stayed. */
    long getFailures();

    /** The last of them; empty: there was none. */
    String getLastFailure();

    /** What the longest call took, in milliseconds. */
    double getLongestCallMs();

    /** What all calls took, in milliseconds. */
    double getCallsMs();

    /** Whether the topics have been read to their ends since the broker started. */
    boolean isComplete();

    /** Why plans cannot be read at the moment; empty: they can. */
    String getProblem();

    /** How long ago the topics were known to be read to their ends, in seconds; -1: never. */
    double getReadSecondsAgo();

    /** Groups with a plan that holds. */
    int getPlans();

    /** Groups with a plan that has lapsed or was withdrawn, or none that could be read. */
    int getPlansOver();

    /** Groups of which something was dropped, since what is held may take an eighth of the heap at most. */
    int getGroupsDropped();

    /** Groups whose members are known by name. */
    int getRosters();

    /** Records read. */
    long getRecordsRead();

    /** Records that could not be read, or were refused. */
    long getRecordsSkipped();
}
