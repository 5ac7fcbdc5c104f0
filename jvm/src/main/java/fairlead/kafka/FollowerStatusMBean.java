package fairlead.kafka;

/** The present state of a follower, for metrics and for the person on call. */
public interface FollowerStatusMBean {
    /** Version of the plan that the present assignment follows; 0 if it follows no plan. */
    long getPlanVersion();

    /** Why the present assignment follows no plan; null if it follows one. */
    String getFallbackReason();

    /** Why the consumer got no partitions at the last rebalance; null if it got some. */
    String getIdleReason();

    /** Version of the newest plan that was read; 0 if there is none. */
    long getLatestVersion();

    /** What is wrong with the newest record or with the plan topic; null if nothing is. */
    String getLatestProblem();

    /** Number of records of the plan topic that were skipped, because they are unreadable or not signed correctly. */
    int getRecordsSkipped();

    /** Number of assignments that the consumer received. */
    int getRebalances();

    /** Number of rebalances that this member requested. */
    int getRejoinsAsked();
}
