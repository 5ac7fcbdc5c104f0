package fairlead.kafka;

import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * Decides the target assignment of one group of the consumer protocol.
 *
 * <p>If the group has a valid plan, the plan is fitted to the present members. Otherwise, every member keeps its
 * targets (the partitions that it has or will get), and only partitions without an owner are placed. There are three
 * exceptions, in which Kafka's uniform assignor decides: the group began without a plan and has not followed one since;
 * the group certainly has no plan; or its plan has expired or was withdrawn. The second and the third exception depend
 * on the settings.
 */
final class Decider {
    /** The possible decisions, with their reasons. */
    enum Outcome {
        /** Targets follow the plan. */
        PLAN,
        /** Targets stayed, because the topics have not been read to their ends yet. */
        KEPT_UNREAD,
        /** Targets stayed, because there may be a plan for this group, but its members' names are unknown. */
        KEPT_UNKNOWN,
        /** Targets stayed, because the plan has expired or was withdrawn. */
        KEPT_LAPSED,
        /** Targets stayed, because all records of the group were unreadable or refused. */
        KEPT_UNREADABLE,
        /** Targets stayed, because a rebalance trigger names a version that has not been read yet. */
        KEPT_BEHIND,
        /** Targets stayed, because the group has no plan and the settings choose this. */
        KEPT_PLANLESS,
        /** The uniform assignor decided, because the group has no targets yet, or only uniform ones. */
        UNIFORM_NEW,
        /** The uniform assignor decided, because the group has no valid plan and the settings choose this. */
        UNIFORM,
        /** The group has no members except rebalance triggers. */
        EMPTY
    }

    /**
     * A decision.
     *
     * @param group the group's id; null if it is unknown
     * @param version the version of the plan that is followed; 0 if no plan is followed
     */
    record Decision(GroupAssignment assignment, Outcome outcome, String group, long version) {}

    private final PlanBook book;
    private final boolean uniformOnLapse;
    private final boolean keepWithoutPlan;
    private final UniformAssignor uniform = new UniformAssignor();

    Decider(PlanBook book, boolean uniformOnLapse, boolean keepWithoutPlan) {
        this.book = book;
        this.uniformOnLapse = uniformOnLapse;
        this.keepWithoutPlan = keepWithoutPlan;
    }

    /** Returns the assignment of a group; {@code planTopic} is the plan topic's id, null if not yet known. */
    Decision decide(GroupSpec spec, SubscribedTopicDescriber describer, Uuid planTopic, Instant now) {
        var view = new GroupView(spec, describer, planTopic);
        if (view.members.length == 0) {
            return new Decision(view.complete(new HashMap<>()), Outcome.EMPTY, null, 0);
        }
        if (!book.complete) {
            return keep(view, describer, Outcome.KEPT_UNREAD, null);
        }
        String group = groupOf(view);
        if (group == null && !view.triggers.isEmpty()) { // the trigger names a plan that has not been read yet
            return keep(view, describer, Outcome.KEPT_BEHIND, null);
        }
        if (group == null) {
            return mayHavePlan(view)
                ? keep(view, describer, Outcome.KEPT_UNKNOWN, null)
                : withoutPlan(view, describer, null);
        }
        book.remember(group, view.members);
        PlanBook.Plan plan = book.plans.get(group);
        if (isNewerAnnounced(view, group, plan == null ? 0 : plan.state().seen().version())) {
            return keep(view, describer, Outcome.KEPT_BEHIND, group);
        }
        if (plan == null) {
            return withoutPlan(view, describer, group);
        }
        PlanState state = plan.state();
        if (state.plan() == null && state.seen().equals(Identity.NOTHING)) {
            return keep(view, describer, Outcome.KEPT_UNREADABLE, group);
        }
        if (state.plan() == null || state.lapsed(now)) {
            return uniformOnLapse
                ? uniform(view, describer, Outcome.UNIFORM, group)
                : keep(view, describer, Outcome.KEPT_LAPSED, group);
        }
        int[] owner = new PlanFollowing(view, plan, book.rosters.get(group)).owners();
        if (owner == null) {
            return keep(view, describer, Outcome.KEPT_UNKNOWN, group);
        }
        book.follows(view.members);
        return new Decision(view.assignment(owner), Outcome.PLAN, group, state.seen().version());
    }

    /**
     * Finds the group's id from the members' ids, else from a trigger, else from instance ids and topics; null if
     * it is unknown.
     */
    private String groupOf(GroupView view) {
        String group = book.groupOf(view.members);
        if (group != null) {
            return group;
        }
        for (TriggerRack trigger : view.triggers) {
            if (hasTopicOf(book.plans.get(trigger.group()), view)) {
                return trigger.group();
            }
        }
        return byInstances(view);
    }

    /** Returns the group of the plan with exactly these instance ids and topics; null unless there is one such plan. */
    private String byInstances(GroupView view) {
        if (Arrays.asList(view.instances).contains(null)) {
            return null;
        }
        Set<String> instances = new HashSet<>(Arrays.asList(view.instances));
        Set<Uuid> topics = new HashSet<>(Arrays.asList(view.topics));
        List<PlanBook.Plan> plans = book.plans.values().stream()
            .filter(plan -> plan.document() != null
                && plan.topics().keySet().equals(topics)
                && plan.document().members().keySet().equals(instances))
            .limit(2).toList();
        return plans.size() == 1 ? plans.get(0).group() : null;
    }

    /** Returns whether some plan has a topic that this group reads. Such a plan may be the group's plan. */
    private boolean mayHavePlan(GroupView view) {
        return book.plans.values().stream().anyMatch(plan -> hasTopicOf(plan, view));
    }

    private static boolean hasTopicOf(PlanBook.Plan plan, GroupView view) {
        return plan != null && plan.topics().keySet().stream().anyMatch(topic -> view.numberOf(topic) >= 0);
    }

    private static boolean isNewerAnnounced(GroupView view, String group, long version) {
        return view.triggers.stream()
            .anyMatch(trigger -> trigger.group().equals(group) && trigger.version() > version);
    }

    private Decision withoutPlan(GroupView view, SubscribedTopicDescriber describer, String group) {
        return keepWithoutPlan
            ? keep(view, describer, Outcome.KEPT_PLANLESS, group)
            : uniform(view, describer, Outcome.UNIFORM, group);
    }

    private Decision keep(GroupView view, SubscribedTopicDescriber describer, Outcome why, String group) {
        if (view.untouched() || book.hasBegun(view.members)) {
            book.begin(view.members);
            return uniform(view, describer, Outcome.UNIFORM_NEW, group);
        }
        return new Decision(view.keep(), why, group, 0);
    }

    private Decision uniform(GroupView view, SubscribedTopicDescriber describer, Outcome why, String group) {
        try {
            var members = new HashMap<>(uniform.assign(view.withoutTriggers(), describer).members());
            return new Decision(view.complete(members), why, group, 0);
        } catch (RuntimeException error) { // for example, a topic was deleted
            return new Decision(view.keep(), why, group, 0);
        }
    }
}
