package fairlead.kafka;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The follower of one consumer. As the group's leader, it decides on the assignment. It requests a rebalance
 * when there is a newer plan. The rules are those of {@code fairlead/followers/core/follower.py}.
 */
final class Follower implements FollowerStatusMBean {
    private static final Logger LOG = LoggerFactory.getLogger(Follower.class);
    private static final long RETRY_MS = 5_000;
    private static final int RETRIES = 12;
    /** Orders members' notes by the plan that they state, the newest last. Of equal plans, a valid lease comes last. */
    private static final Comparator<Notes.Subscribed> NEWEST = Comparator.comparing(Notes.Subscribed::seen)
        .thenComparing(Notes.Subscribed::lapsed, Comparator.reverseOrder());
    private static final Notes.Assigned JOINING = new Notes.Assigned(
        null, Identity.NOTHING,
        "a rebalance is under way, or some member of the group does not follow plans", false, null, false);
    private static final Notes.Assigned BY_BROKER = new Notes.Assigned(
        null, Identity.NOTHING,
        "the group is one of the consumer protocol, in which the broker assigns", false, null, false);

    private final String group;
    private final String clientId;
    private final String instanceId;
    private final long readTimeoutMs;
    /** Milliseconds for which members other than the leader wait for the leader to request the rebalance. */
    private final long turnMs;
    private final RejoinSchedule schedule;
    private final RebalanceTrigger trigger;
    private final PlanLog plans;

    /** The leader's note. It and the following fields are guarded by this object, since two threads use them. */
    private Notes.Assigned note = JOINING;
    private String memberId;
    private Identity decided;
    private boolean decidedLapsed;
    private boolean newMember;
    private boolean unfinished;
    private boolean triggering;
    private String loggedReason;
    private int joins;
    private boolean idle;
    private int rebalances;
    private int rejoinsAsked;
    private int again;

    /**
     * @param jitterMs a rebalance is requested at a random moment within this time after a new plan; if it is
     *     negative, the follower requests no rebalance
     * @param heartbeatMs the time until other members learn of a rebalance
     */
    Follower(
        String group, String clientId, String instanceId, long readTimeoutMs, long jitterMs,
        long heartbeatMs, RebalanceTrigger trigger, Function<Follower, PlanLog> follow) {
        this.group = group;
        this.clientId = clientId;
        this.instanceId = instanceId;
        this.readTimeoutMs = readTimeoutMs;
        this.turnMs = jitterMs + 2 * heartbeatMs;
        this.schedule = jitterMs < 0 ? null : new RejoinSchedule(jitterMs, new Random());
        this.trigger = trigger;
        this.plans = follow.apply(this);
    }

    String group() {
        return group;
    }

    /** Returns the user data of this member's subscription. Kafka calls this when the member joins. */
    synchronized ByteBuffer subscription() {
        if (schedule != null) {
            schedule.unsettle();
        }
        joins++;
        note = JOINING;
        decided = null;
        unfinished = false;
        // A static member that restarted may already lead the group without knowing it.
        newMember = instanceId != null && rebalances == 0;
        PlanState state = plans.state(group);
        return new Notes.Subscribed(
            clientId, instanceId, state.seen(), state.lapsed(Instant.now()), again).encode();
    }

    /** Decides for the whole group, as its leader. Returns a map from member id to assignment. */
    Map<String, Assignment> assign(Group members, Function<Group, Map<String, List<TopicPartition>>> fallback) {
        Notes.Subscribed heard = members.members().stream().map(Group.Member::note).max(NEWEST).orElseThrow();
        PlanState state = plans.current(group, heard.seen(), readTimeoutMs);
        Instant now = Instant.now();
        String reason = state.whyNot(now);
        Map<String, List<TopicPartition>> shares =
            reason == null ? fit(state.plan(), members) : fallback.apply(members);
        log(state, reason, members.members().size());
        Map<String, List<TopicPartition>> first = members.firstRound(shares);
        boolean over = state.lapsed(now);
        synchronized (this) {
            decided = state.seen();
            decidedLapsed = over;
        }
        Notes.Subscribed own = new Notes.Subscribed(clientId, instanceId, state.seen(), over, 0);
        Notes.Subscribed newest = NEWEST.compare(own, heard) > 0 ? own : heard;
        Notes.Assigned note = new Notes.Assigned(
            reason == null ? Long.valueOf(state.plan().version()) : null,
            newest.seen(),
            reason,
            newest.lapsed(),
            state.seen(),
            Group.size(first) < Group.size(shares));
        ByteBuffer userData = note.encode();
        Map<String, Assignment> assignments = new HashMap<>();
        first.forEach((memberId, share) -> assignments.put(memberId, new Assignment(share, userData.duplicate())));
        return assignments;
    }

    /** Fits a plan to the group. Returns a map from member id to partitions. */
    static Map<String, List<TopicPartition>> fit(PlanDocument plan, Group group) {
        Map<String, String> names = group.names();
        Map<String, Collection<String>> subscriptions = new LinkedHashMap<>();
        group.members().forEach(member -> subscriptions.put(names.get(member.memberId()), member.topics()));
        Map<String, List<TopicPartition>> byName = Fit.fit(plan, subscriptions, group.partitionCounts());
        Map<String, List<TopicPartition>> shares = new LinkedHashMap<>();
        names.forEach((memberId, name) -> shares.put(memberId, byName.get(name)));
        return shares;
    }

    private synchronized void log(PlanState state, String reason, int size) {
        if (reason == null) {
            LOG.info("Group {}: as leader, assigning plan version {} to {} members",
                group, state.plan().version(), size);
        } else if (!reason.equals(loggedReason)) {
            LOG.warn("Group {}: as leader, falling back: {}", group, reason);
        }
        loggedReason = reason;
    }

    /** Stores the leader's note, which records whether the new assignment follows a plan. */
    synchronized void assigned(ByteBuffer userData, String member, int generation, boolean nothing) {
        // Every leader with this assignor writes a note. If there is none, the broker assigns, and another rebalance
        // would change nothing.
        boolean byBroker = userData == null || !userData.hasRemaining();
        note = byBroker ? BY_BROKER : Notes.Assigned.decode(userData);
        memberId = member;
        idle = nothing && !note.incomplete();
        rebalances++;
        LOG.info("Group {}, generation {}: the assignment follows {}", group, generation, note.followed());
        // This member may have restarted just when it had to give up partitions and rejoin.
        unfinished = newMember && note.incomplete();
        if (schedule == null || byBroker) {
            return;
        }
        if (decided != null) { // this member leads: rebalance for any plan newer than its own
            schedule.settle(decided, decidedLapsed, 0);
        } else if (newMember && note.decided() != null) { // it may have led before a restart
            boolean hadPlan = note.decided().version() > 0 && !note.decided().withdrawn();
            schedule.settle(note.decided(), hadPlan && note.planVersion() == null, 0);
        } else {
            schedule.settle(note.seen(), note.lapsed(), turnMs);
        }
    }

    /** Requests a rebalance if one is due. Called four times per second. */
    void tick() {
        PlanState state = plans.state(group);
        synchronized (this) {
            if (schedule == null || triggering) {
                return;
            }
            String why = null;
            long nowMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
            if (schedule.due(state.seen(), state.lapsed(Instant.now()), state.leaseUntil(), nowMs)) {
                why = "to adopt a plan";
            }
            if (unfinished) {
                why = "to complete the rebalance that another member began";
                unfinished = false;
                again++;
            }
            if (why == null) {
                return;
            }
            LOG.info("Group {}: requesting a rebalance {}; newest plan read: {}", group, why,
                state.plan() == null ? "none" : "version " + state.plan().version());
            rejoinsAsked++;
            triggering = true;
            int joinsBefore = joins;
            Thread thread = new Thread(() -> ask(joinsBefore), "fairlead-rebalance-trigger-" + clientId);
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** Repeats the request until the group rebalances for any reason. */
    private void ask(int joinsBefore) {
        try {
            for (int attempt = 0; attempt < RETRIES; attempt++) {
                String member;
                synchronized (this) {
                    if (joins != joinsBefore) {
                        return;
                    }
                    member = memberId;
                }
                RebalanceTrigger.Outcome outcome = trigger.run(member);
                if (outcome != RebalanceTrigger.Outcome.FAILED) {
                    LOG.debug("Group {}: {}", group, outcome);
                    return;
                }
                Thread.sleep(RETRY_MS);
            }
        } catch (InterruptedException error) {
            LOG.debug("Group {}: interrupted while requesting a rebalance", group);
        } finally {
            synchronized (this) {
                triggering = false;
            }
        }
    }

    @Override
    public synchronized long getPlanVersion() {
        return note.planVersion() == null ? 0 : note.planVersion();
    }

    @Override
    public synchronized String getFallbackReason() {
        return note.planVersion() != null ? null
            : note.fallbackReason() == null ? "its leader gave no reason" : note.fallbackReason();
    }

    @Override
    public synchronized String getIdleReason() {
        return idle ? idleReason(note.planVersion() == null ? null : plans.state(group).plan(),
            instanceId != null ? instanceId : clientId) : null;
    }

    /** Returns why a member has no partitions, as {@code fairlead/followers/core/status.py} does. */
    private static String idleReason(PlanDocument plan, String name) {
        if (plan == null) {
            return "the fallback gives it no partitions: each topic has fewer partitions than readers";
        }
        String version = "plan version " + plan.version();
        PlanDocument.Share share = plan.members().get(name);
        if (share == null) {
            return version + " was made without '" + name + "', and leaves no partition for it: the next plan includes it";
        }
        return share.ranges().isEmpty() ? version + " gives '" + name + "' no partitions: the other members suffice"
            : version + " has a share for '" + name + "', but another member with this name reads it: "
                + "give each member its own client.id or group.instance.id";
    }

    @Override
    public long getLatestVersion() {
        PlanDocument plan = plans.state(group).plan();
        return plan == null ? 0 : plan.version();
    }

    @Override
    public String getLatestProblem() {
        return plans.state(group).problem();
    }

    @Override
    public int getRecordsSkipped() {
        return plans.state(group).skipped();
    }

    @Override
    public synchronized int getRebalances() {
        return rebalances;
    }

    @Override
    public synchronized int getRejoinsAsked() {
        return rejoinsAsked;
    }
}
