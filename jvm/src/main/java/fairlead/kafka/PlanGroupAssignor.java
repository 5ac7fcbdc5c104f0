package fairlead.kafka;

import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets brokers follow plans for groups of the consumer protocol (KIP-848). Clients in any language then follow plans
 * with {@code group.remote.assignor=fairlead}, without further code. {@link Decider} makes the decisions.
 *
 * <p>The broker's properties need:
 *
 * <pre>
 * group.consumer.assignors=uniform,range,fairlead.kafka.PlanGroupAssignor
 * fairlead.bootstrap.servers=localhost:9092
 * </pre>
 *
 * <p>The assignor never waits and never throws, to protect the coordinator's thread and the members' heartbeats. If a
 * bug makes a decision fail, all members keep their partitions.
 */
public final class PlanGroupAssignor implements ConsumerGroupPartitionAssignor, Configurable {
    /** The value of {@code group.remote.assignor} with which consumers choose this assignor. */
    public static final String NAME = "fairlead";

    private static final Logger LOG = LoggerFactory.getLogger(PlanGroupAssignor.class);

    private volatile BrokerReader reader;
    private volatile Decider decider;

    @Override
    public String name() {
        return NAME;
    }

    /** Reads the broker's own properties, and starts reading the topics. */
    @Override
    public void configure(Map<String, ?> configs) {
        var settings = new BrokerSettings(configs);
        reader = BrokerReader.of(settings);
        decider = new Decider(reader.book, settings.uniformOnLapse, settings.keepWithoutPlan);
    }

    @Override
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        try {
            Decider.Decision decision = decider.decide(group, topics, reader.planTopicId, Instant.now());
            LOG.debug("Group {}: {}, plan version {}", decision.group(), decision.outcome(), decision.version());
            reader.metrics.count(decision.outcome());
            return decision.assignment();
        } catch (Throwable error) { // an exception would fail the members' heartbeats
            if (reader.metrics.failed(error)) {
                LOG.error("The target assignment of a group stays, because computing it failed. This is a bug", error);
            }
            return unchanged(group, topics);
        }
    }

    /** Returns the present targets, with partitions without an owner placed. Uses as little code as possible. */
    private static GroupAssignment unchanged(GroupSpec group, SubscribedTopicDescriber topics) {
        try {
            var view = new GroupView(group, topics, null);
            return view.keep();
        } catch (Throwable error) { // if this fails, too, only copy the targets
            Map<String, MemberAssignment> members = new HashMap<>();
            group.memberIds().forEach(id -> members.put(id, group.memberAssignment(id)));
            return new GroupAssignment(members);
        }
    }
}
