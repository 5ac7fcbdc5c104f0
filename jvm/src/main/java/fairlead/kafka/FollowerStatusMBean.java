package fairlead.kafka;

/** The present state of a follower, for metrics and for a person on call. */
public interface FollowerStatusMBean {
    /** The consumer group. */
    String getGroup();

    /** The plan that the present assignment follows; 0: none. */
    long getPlanVersion();

    /** Why the present assignment is not a plan's; null: it is. */
    String getFallbackReason();

    /** Why the consumer was given nothing at the last rebalance; null: it was given something. */
    String getIdleReason();

    /** The newest plan read; 0: there is none. */
    long getLatestVersion();

    /** What is wrong with the newest record, or with the plan topic; null: nothing. */
    String getLatestProblem();

    /** Unreadable or badly signed records of the plan topic. */
    int getRecordsSkipped();

    /** Assignments received. */
    int getRebalances();

    /** Rebalances that this member asked for. */
    int getRejoinsAsked();
}
