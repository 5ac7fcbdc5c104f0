package fairlead.kafka;

/** The present state of a follower, for metrics and for a person on call. */
public interface FollowerStatusMBean {
    /** The version of the plan that the present assignment follows; 0: no plan. */
    long getPlanVersion();

    /** Why the present assignment follows no plan; null: it follows a plan. */
    String getFallbackReason();

    /** Why the consumer got no partitions at the last rebalance; null: it got some. */
    String getIdleReason();

    /** The version of the newest plan that was read; 0: there is none. */
    long getLatestVersion();

    /** The problem of the newest record, or of the plan topic; null: no problem. */
    String getLatestProblem();

    /** Number of records of the plan topic that were unreadable or not signed correctly. */
    int getRecordsSkipped();

    /** Number of assignments received. */
    int getRebalances();

    /** Number of rebalances that this member requested. */
    int getRejoinsAsked();
}
