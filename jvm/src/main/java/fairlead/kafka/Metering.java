package fairlead.kafka;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Divides a consumer's configuration into the settings of reports and commits, and the configuration for Kafka. */
final class Metering {
    final boolean reports;
    /** Whether {@link AutoCommit} replaces Kafka's own automatic commits. */
    final boolean commits;
    final Duration commitInterval;
    final Duration retryBackoff;
    /** Maximum duration of a commit before a rebalance. */
    final Duration commitTimeout;
    final Duration pollInterval;
    /** The configuration for Kafka, without automatic commits if {@link AutoCommit} replaces them. */
    final Map<String, Object> forKafka;

    /** Parses a configuration as Kafka does, but does not log all values. */
    private static final class Quiet extends ConsumerConfig {
        Quiet(Map<String, Object> configs) {
            super(configs, false);
        }
    }

    Metering(Map<String, Object> configs) {
        Map<String, Object> complete = new HashMap<>(configs);
        // Only for parsing: deserializers may be given as objects, and without a client id, Kafka would generate one
        // and so change the ids of later consumers.
        complete.putIfAbsent(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        complete.putIfAbsent(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        complete.putIfAbsent(ConsumerConfig.CLIENT_ID_CONFIG, "any");
        ConsumerConfig read = new Quiet(complete);
        reports = Settings.flag(configs, Settings.REPORT_WORK, true);
        commits = reports && configs.get(ConsumerConfig.GROUP_ID_CONFIG) != null
            && read.getBoolean(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG);
        commitInterval = Duration.ofMillis(read.getInt(ConsumerConfig.AUTO_COMMIT_INTERVAL_MS_CONFIG));
        retryBackoff = Duration.ofMillis(read.getLong(ConsumerConfig.RETRY_BACKOFF_MS_CONFIG));
        pollInterval = Duration.ofMillis(read.getInt(ConsumerConfig.MAX_POLL_INTERVAL_MS_CONFIG));
        Duration request = Duration.ofMillis(read.getInt(ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG));
        commitTimeout = request.compareTo(pollInterval) < 0 ? request : pollInterval;
        forKafka = new HashMap<>(configs);
        if (commits) {
            forKafka.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        }
    }
}
