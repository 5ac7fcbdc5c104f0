package fairlead.kafka;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.config.ConfigException;

/**
 * Assigns partitions as in the group's plan. The group's leader reads the plan and decides for all members.
 *
 * <p>One line of configuration makes a consumer of the classic {@code group.protocol} follow plans:
 *
 * <pre>partition.assignment.strategy=fairlead.kafka.PlanAssignor,org.apache.kafka.clients.consumer.RangeAssignor</pre>
 *
 * <p>A group uses this assignor as soon as all members have it. A member rebalances cooperatively (KIP-429) if this is
 * its only assignor, and eagerly if it also has an eager one, such as {@code RangeAssignor}. A group may have members
 * of both kinds, and Fairlead's followers for Python. The settings are {@code fairlead.plan.topic},
 * {@code fairlead.public.keys}, {@code fairlead.fallback}, {@code fairlead.rejoin.jitter.ms} and
 * {@code fairlead.read.timeout.ms}.
 */
public final class PlanAssignor implements ConsumerPartitionAssignor, Configurable {
    static final String NAME = "fairlead";
    static final long NEVER_MS = -1;
    private static final long JITTER_MS = 5_000;
    private static final long READ_TIMEOUT_MS = 5_000;
    private static final long HEARTBEAT_MS = 3_000;

    private Fallback fallback;
    private Follower follower;

    /** Called by Kafka, which then calls {@link #configure}. */
    public PlanAssignor() {
        // configure() does the work
    }

    /**
     * Starts to read plans. Reading ends when this object is garbage-collected.
     *
     * @throws ConfigException {@code group.id} is missing, or a setting is invalid
     */
    @Override
    public void configure(Map<String, ?> configs) {
        String group = Settings.text(configs, ConsumerConfig.GROUP_ID_CONFIG, null);
        if (group == null) {
            throw new ConfigException("group.id is missing; plans are for groups");
        }
        String clientId = Settings.text(configs, ConsumerConfig.CLIENT_ID_CONFIG, group);
        String instanceId = Settings.text(configs, ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, null);
        String topic = Settings.text(configs, Settings.PLAN_TOPIC, Settings.DEFAULT_PLAN_TOPIC);
        String publicKeys = Settings.text(configs, Settings.PUBLIC_KEYS, null);
        long jitterMs = Settings.milliseconds(configs, Settings.JITTER_MS, JITTER_MS, NEVER_MS);
        fallback = Fallback.of(configs);
        follower = new Follower(
            group,
            clientId,
            instanceId,
            Settings.milliseconds(configs, Settings.READ_TIMEOUT_MS, READ_TIMEOUT_MS, 0),
            jitterMs,
            Settings.milliseconds(configs, ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, HEARTBEAT_MS, 1),
            new RebalanceTrigger(group, configs, topic),
            reader -> PlanLog.follow(Settings.connection(configs), topic, publicKeys, reader));
        if (!clientId.equals(RebalanceTrigger.CLIENT_ID)) {
            StatusBeans.show(this, follower, clientId);
        }
    }

    @Override
    public String name() {
        return NAME;
    }

    /** Returns both protocols. Kafka uses one that all assignors of the consumer support, preferably cooperative. */
    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return List.of(RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER);
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        return follower.subscription();
    }

    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription groupSubscription) {
        Map<String, Subscription> subscriptions = groupSubscription.groupSubscription();
        List<Group.Member> members = new ArrayList<>();
        Map<String, Integer> counts = new HashMap<>();
        subscriptions.forEach((memberId, subscription) -> {
            members.add(new Group.Member(
                memberId,
                subscription.topics(),
                subscription.groupInstanceId().orElse(null),
                Notes.Subscribed.decode(subscription.userData()),
                subscription.ownedPartitions()));
            for (String topic : subscription.topics()) {
                Integer count = metadata.partitionCountForTopic(topic);
                if (count != null && count > 0) {
                    counts.put(topic, count);
                }
            }
        });
        return new GroupAssignment(follower.assign(
            new Group(members, counts), group -> fallback.assign(group, metadata, subscriptions)));
    }

    @Override
    public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
        follower.assigned(assignment.userData(), metadata.memberId(), metadata.generationId(),
            assignment.partitions().isEmpty());
    }
}
