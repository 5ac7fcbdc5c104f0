package fairlead.kafka;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.errors.InconsistentGroupProtocolException;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes a group rebalance from outside its consumers' threads.
 *
 * <p>An assignor cannot request a rebalance: only {@code KafkaConsumer.enforceRebalance()} can, on the application's
 * thread. But every group rebalances if a member joins. So the trigger joins the group, subscribed only to the plan
 * topic. It joins as a static member, because dynamic members must join twice (KIP-394). While the other members are
 * still joining, an admin request with the rights of this consumer removes the trigger. So there is only one rebalance,
 * and the leader does not get the trigger as a member.
 */
final class RebalanceTrigger {
    private static final Logger LOG = LoggerFactory.getLogger(RebalanceTrigger.class);
    static final String CLIENT_ID = "fairlead-rebalance-trigger";
    private static final long ASK_S = 15;
    private static final Duration JOIN = Duration.ofMillis(50);

    /** The result of one attempt. */
    enum Outcome {
        /** The group is rebalancing. */
        DONE,
        /** A later attempt may succeed. */
        FAILED,
        /** No rebalance is needed: the member has left, or the group does not use this assignor. */
        NEEDLESS
    }

    private final String group;
    private final Map<String, Object> connection;
    private final Map<String, Object> consumer = new HashMap<>();
    private final String topic;
    private String knownProblem;

    /**
     * @param configs the configuration of the consumer that follows plans
     * @param topic the plan topic
     */
    RebalanceTrigger(String group, Map<String, ?> configs, String topic) {
        this.group = group;
        this.topic = topic;
        connection = Settings.connection(configs);
        connection.put(ConsumerConfig.CLIENT_ID_CONFIG, CLIENT_ID);
        consumer.putAll(connection);
        for (String name : List.of(
            ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG,
            ConsumerConfig.MAX_POLL_INTERVAL_MS_CONFIG, Settings.PUBLIC_KEYS, Settings.FALLBACK)) {
            if (configs.get(name) != null) {
                consumer.put(name, configs.get(name));
            }
        }
        consumer.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        consumer.put("group.protocol", "classic");
        consumer.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        consumer.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        // If all other members have left, the trigger leads the group, and must decide as they would.
        consumer.put(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, List.of(PlanAssignor.class));
        consumer.put(Settings.PLAN_TOPIC, topic);
        consumer.put(Settings.JITTER_MS, PlanAssignor.NEVER_MS);
    }

    /** Makes the group rebalance if this member is in it. Returns within half a minute. */
    Outcome run(String memberId) {
        try (Admin admin = Admin.create(connection)) {
            Outcome reason = reasonAgainst(admin, memberId);
            if (reason != null) {
                return reason;
            }
            String instanceId = CLIENT_ID + "-" + UUID.randomUUID();
            Map<String, Object> configs = new HashMap<>(consumer);
            configs.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, instanceId);
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            try (KafkaConsumer<byte[], byte[]> member = new KafkaConsumer<>(configs, bytes, bytes)) {
                return joinAndLeave(admin, member, instanceId);
            }
        } catch (InconsistentGroupProtocolException error) {
            LOG.debug("Group {}: some member does not follow plans: no rebalance is requested", group);
            return Outcome.NEEDLESS;
        } catch (Exception | LinkageError error) {
            if (error.toString().equals(knownProblem)) {
                LOG.debug("Group {}: still could not request a rebalance: {}", group, knownProblem);
            } else {
                knownProblem = error.toString();
                LOG.warn("Group {}: could not request a rebalance: {}", group, knownProblem);
            }
            return Outcome.FAILED;
        }
    }

    private Outcome joinAndLeave(Admin admin, KafkaConsumer<byte[], byte[]> member, String instanceId)
        throws Exception {
        member.subscribe(Set.of(topic));
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(ASK_S);
        boolean gone = false;
        try {
            while (!gone && System.nanoTime() - until < 0) {
                member.poll(JOIN);
                gone = remove(admin, instanceId);
            }
        } finally {
            if (!gone) {
                remove(admin, instanceId);
            }
        }
        return gone ? Outcome.DONE : Outcome.FAILED;
    }

    /** Returns null if the group should rebalance now, else the outcome to return without a rebalance. */
    private Outcome reasonAgainst(Admin admin, String memberId) throws Exception {
        ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(group))
            .describedGroups().get(group).get(ASK_S, TimeUnit.SECONDS);
        if (!isClassic(described)
            || described.members().stream().noneMatch(one -> one.consumerId().equals(memberId))) {
            return Outcome.NEEDLESS;
        }
        if (described.partitionAssignor().isEmpty()) { // the group is rebalancing already
            return Outcome.FAILED;
        }
        return PlanAssignor.NAME.equals(described.partitionAssignor()) ? null : Outcome.NEEDLESS;
    }

    private static boolean isClassic(ConsumerGroupDescription described) {
        try {
            return described.type() == GroupType.CLASSIC;
        } catch (NoSuchMethodError older) { // older clients know only classic groups
            return true;
        }
    }

    /** Removes the trigger from the group; returns false if it has not joined yet. */
    private boolean remove(Admin admin, String instanceId) throws Exception {
        MemberToRemove trigger = new MemberToRemove(instanceId);
        RemoveMembersFromConsumerGroupOptions options =
            new RemoveMembersFromConsumerGroupOptions(Set.of(trigger));
        options.reason("a new plan");
        try {
            admin.removeMembersFromConsumerGroup(group, options).memberResult(trigger)
                .get(ASK_S, TimeUnit.SECONDS);
            return true;
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownMemberIdException) {
                return false;
            }
            throw error;
        }
    }
}
