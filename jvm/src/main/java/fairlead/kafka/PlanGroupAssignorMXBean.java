package fairlead.kafka;

import java.util.Map;

/** Metrics of a broker's assignor, under {@code fairlead.kafka:type=PlanGroupAssignor}. */
public interface PlanGroupAssignorMXBean {
    /** Number of assignments since the broker started by outcome: {@code PLAN}, {@code KEPT_...}, {@code UNIFORM...}, {@code EMPTY}. */
    Map<String, Long> getOutcomes();

    /** Number of failed decisions, which are bugs; targets stayed. */
    long getFailures();

    /** The error of the last failed decision; empty: none failed. */
    String getLastFailure();

    /** Whether the topics have been read to their ends since the broker started. */
    boolean isComplete();

    /** Why plans cannot be read at the moment; empty: they can be read. */
    String getProblem();

    /** Seconds since the topics were last read to their ends; -1: never. */
    double getReadSecondsAgo();

    /** Number of groups with a plan in force. */
    int getPlans();

    /** Number of groups with dropped records: all records may take at most an eighth of the heap. */
    int getGroupsDropped();

    /** Number of records read. */
    long getRecordsRead();

    /** Number of records that were unreadable or refused. */
    long getRecordsSkipped();
}
