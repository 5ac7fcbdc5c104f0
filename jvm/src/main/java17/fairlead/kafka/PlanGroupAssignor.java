package fairlead.kafka;

import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets brokers follow plans, for groups of the consumer protocol (KIP-848): clients in any language follow
 * without a line of code, by {@code group.remote.assignor=fairlead}. What is decided: {@link Decider}.
 *
 * <p>In the broker's properties:
 *
 * <pre>
 * group.consumer.assignors=uniform,range,fairlead.kafka.PlanGroupAssignor
 * fairlead.bootstrap.servers=localhost:9092
 * </pre>
 *
 * <p>It neither waits nor throws, whatever happens: the coordinator's thread and the members' heartbeats
 * would suffer. A bug leaves everybody what they have.
 */
public final class PlanGroupAssignor implements ConsumerGroupPartitionAssignor, Configurable {
    /** What consumers ask for by {@code group.remote.assignor}. */
    public static final String NAME = "fairlead";

    private static final Logger LOG = LoggerFactory.getLogger(PlanGroupAssignor.class);

    /** What all assignors of a reader share. */
    private record Shared(BrokerReader reader, BrokerMetrics metrics) {}

    private static final Map<BrokerReader, BrokerMetrics> METRICS = new HashMap<>();

    private volatile Shared shared;
    private volatile Decider decider = new Decider(new PlanBook(), false, false);

    @Override
    public String name() {
        return NAME;
    }

    /** Take the broker's own properties, and let the topics be read. */
    @Override
    public void configure(Map<String, ?> configs) {
        var settings = new BrokerSettings(configs);
        BrokerReader reader = BrokerReader.of(settings);
        synchronized (METRICS) {
            BrokerMetrics metrics = METRICS.computeIfAbsent(reader, BrokerMetrics::new);
            metrics.register();
            shared = new Shared(reader, metrics);
        }
        decider = new Decider(reader.book, settings.uniformOnLapse, settings.keepWithoutPlan);
    }

    @Override
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        long start = System.nanoTime();
        Shared with = shared;
        try {
            Uuid planTopic = with == null ? null : with.reader.planTopicId();
            Decider.Decision decision = decider.decide(group, topics, planTopic, Instant.now());
            LOG.debug("Group {}: {}, plan version {}", decision.group(), decision.outcome(), decision.version());
            if (with != null) {
                with.metrics.count(decision.outcome(), System.nanoTime() - start);
            }
            return decision.assignment();
        } catch (Throwable error) { // one that gets out fails the members' heartbeats
            if (with == null || with.metrics.failed(error, System.nanoTime() - start)) {
                LOG.error("Deciding on a group failed: targets stay. This is a bug", error);
            }
            return unchanged(group, topics);
        }
    }

    /** The targets as they are, and what has no owner placed: by as little code as may be. */
    private static GroupAssignment unchanged(GroupSpec group, SubscribedTopicDescriber topics) {
        try {
            var view = new GroupView(group, topics, null);
            return view.keep();
        } catch (Throwable error) { // not even that: then to the letter
            Map<String, MemberAssignment> members = new HashMap<>();
            group.memberIds().forEach(id -> members.put(id, group.memberAssignment(id)));
            return new GroupAssignment(members);
        }
    }
}
