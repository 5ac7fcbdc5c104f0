package fairlead.kafka;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;

/**
 * The assignor for a group without a valid plan: {@code range} as in Fairlead's other followers, or an assignor
 * of Kafka or of the application, configured by its name or class.
 */
final class Fallback {
    private static final String RANGE = "range";
    private static final String KAFKAS = "org.apache.kafka.clients.consumer.";
    private static final Map<String, String> NAMED = Map.of(
        "roundrobin", KAFKAS + "RoundRobinAssignor",
        "sticky", KAFKAS + "StickyAssignor",
        "cooperative-sticky", KAFKAS + "CooperativeStickyAssignor");

    /** Null means the range assignor. */
    private final ConsumerPartitionAssignor assignor;

    private Fallback(ConsumerPartitionAssignor assignor) {
        this.assignor = assignor;
    }

    /** Creates the assignor that a consumer's configuration names. */
    static Fallback of(Map<String, ?> configs) {
        Object given = configs.get(Settings.FALLBACK);
        String name = given instanceof Class<?> known ? known.getName()
            : Settings.text(configs, Settings.FALLBACK, RANGE);
        if (name.equals(RANGE)) {
            return new Fallback(null);
        }
        String type = NAMED.getOrDefault(name, name);
        if (type.equals(PlanAssignor.class.getName())) {
            throw new ConfigException(Settings.FALLBACK, name, "the fallback must not need a plan");
        }
        try {
            return new Fallback(
                ConsumerPartitionAssignor.getAssignorInstances(List.of(type), new HashMap<>(configs)).get(0));
        } catch (KafkaException error) {
            throw new ConfigException(Settings.FALLBACK, name,
                "not an assignor: use range, " + String.join(", ", new TreeMap<>(NAMED).keySet())
                    + ", or a class (" + error.getMessage() + ")");
        }
    }

    /** Returns the partitions of every member of the group. */
    Map<String, List<TopicPartition>> assign(
        Group group, Cluster cluster, Map<String, Subscription> subscriptions) {
        if (assignor == null) {
            return group.range();
        }
        Map<String, Subscription> plain = new HashMap<>();
        subscriptions.forEach((member, subscription) -> {
            Subscription bare = new Subscription(
                subscription.topics(), null, subscription.ownedPartitions());
            bare.setGroupInstanceId(subscription.groupInstanceId());
            plain.put(member, bare);
        });
        Map<String, Assignment> assigned =
            assignor.assign(cluster, new GroupSubscription(plain)).groupAssignment();
        Map<String, List<TopicPartition>> shares = new HashMap<>();
        assigned.forEach((member, assignment) -> shares.put(member, assignment.partitions()));
        return shares;
    }
}
