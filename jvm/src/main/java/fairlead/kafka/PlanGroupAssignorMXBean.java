package fairlead.kafka;

import java.util.Map;

/** Metrics of a broker's assignor, with the name {@code fairlead.kafka:type=PlanGroupAssignor}. */
public interface PlanGroupAssignorMXBean {
    /**
     * Number of decisions with each outcome since the broker started. Outcomes are {@code PLAN}, {@code KEPT_...},
     * {@code UNIFORM...} and {@code EMPTY}.
     */
    Map<String, Long> getOutcomes();

    /** Number of decisions that failed because of a bug, so that targets stayed. */
    long getFailures();

    /** Error of the last failed decision; empty if none failed. */
    String getLastFailure();

    /** Whether the topics have been read to their ends since the broker started. */
    boolean isComplete();

    /** Why plans cannot be read now; empty if they can. */
    String getProblem();

    /** Seconds since the topics were last read to their ends; -1 if they never were. */
    double getReadSecondsAgo();

    /** Number of groups with a plan in force. */
    int getPlans();

    /** Number of groups whose plan or names were dropped, because plans would take more than an eighth of the heap. */
    int getGroupsDropped();

    /** Number of records read. */
    long getRecordsRead();

    /** Number of records that were unreadable or refused. */
    long getRecordsSkipped();
}
