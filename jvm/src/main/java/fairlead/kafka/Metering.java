package fairlead.kafka;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The settings of reports and automatic commits in a consumer's configuration, and the configuration for Kafka. */
final class Metering {
    final boolean reports;
    /** Whether {@link AutoCommit} replaces Kafka's own automatic commits. */
    final boolean commits;
    final Duration commitInterval;
    final Duration retryBackoff;
    /** Maximum duration of a commit before a rebalance. */
    final Duration commitTimeout;
    final Duration pollInterval;
    /** Kafka's part of the configuration, without automatic commits if {@link AutoCommit} replaces them. */
    final Map<String, Object> forKafka;

    /** A configuration parsed by Kafka, without logging all values. */
    private static final class Quiet extends ConsumerConfig {
        Quiet(Map<String, Object> configs) {
            super(configs, false);
        }
    }

    Metering(Map<String, Object> configs) {
        Map<String, Object> complete = new HashMap<>(configs);
        // For parsing only: deserializers may be objects, and Kafka would generate, and so use up, a client id.
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
