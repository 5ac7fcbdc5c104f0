package fairlead.kafka;

import java.time.Duration;
import java.util.Collection;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RetriableCommitFailedException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Automatic commits with reports: Kafka's own commits cannot have metadata.
 *
 * <p>Like Kafka's, they commit the positions of all assigned partitions: every {@code auto.commit.interval.ms}
 * while the application polls, before partitions are revoked, and when the consumer is closed. A commit that
 * fails is logged.
 */
final class AutoCommit {
    /** The listener of an application without one. */
    static final ConsumerRebalanceListener NO_LISTENER = new ConsumerRebalanceListener() {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            // nothing to do
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            // nothing to do
        }
    };
    private static final Logger LOG = LoggerFactory.getLogger(AutoCommit.class);

    private final Metering settings;
    private long dueNanos;
    /** Positions are committed already; the revocation that follows needs no commit. */
    private boolean leaving;

    AutoCommit(Metering settings) {
        this.settings = settings;
        dueIn(settings.commitInterval);
    }

    private void dueIn(Duration time) {
        dueNanos = System.nanoTime() + time.toNanos();
    }

    /** Returns the milliseconds until the next commit; 0 or less: it is due. */
    long untilDueMs() {
        return Duration.ofNanos(dueNanos - System.nanoTime()).toMillis();
    }

    /** Commits without waiting, if the interval is over. */
    void ifDue(MeteredConsumer<?, ?> consumer) {
        if (dueNanos - System.nanoTime() > 0) {
            return;
        }
        dueIn(settings.commitInterval);
        Map<TopicPartition, OffsetAndMetadata> positions = consumer.positions();
        if (positions.isEmpty()) {
            return;
        }
        consumer.commitAsync(positions, (offsets, error) -> {
            if (error instanceof RetriableCommitFailedException) {
                LOG.debug("Automatic commit of {} failed; it is tried again", offsets, error);
                dueIn(settings.retryBackoff);
            } else if (error != null) {
                LOG.warn("Automatic commit of {} failed: {}", offsets, error.getMessage());
            }
        });
    }

    /** Commits before partitions are given up, and waits for it. */
    private void now(MeteredConsumer<?, ?> consumer, Duration timeout) {
        try {
            Map<TopicPartition, OffsetAndMetadata> positions = consumer.positions();
            if (!positions.isEmpty()) {
                consumer.commitSync(positions, timeout);
            }
        } catch (WakeupException wakeup) { // the wakeup is meant for the application's next poll
            now(consumer, timeout);
            consumer.wakeup();
        } catch (IllegalStateException closed) {
            LOG.debug("No automatic commit", closed);
        } catch (KafkaException error) {
            LOG.warn("Automatic commit failed: {}", error.getMessage());
        }
    }

    /** Commits, then does what makes the consumer leave its group. */
    void leave(MeteredConsumer<?, ?> consumer, Duration timeout, Runnable leave) {
        now(consumer, timeout);
        leaving = true;
        try {
            leave.run();
        } finally {
            leaving = false;
        }
    }

    /** Returns a listener that commits before partitions are revoked, and then calls the application's. */
    ConsumerRebalanceListener before(MeteredConsumer<?, ?> consumer, ConsumerRebalanceListener listener) {
        return new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                if (!leaving) {
                    now(consumer, settings.commitTimeout);
                }
                listener.onPartitionsRevoked(partitions);
            }

            @Override
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                listener.onPartitionsLost(partitions); // other members may own them now, so do not commit
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                listener.onPartitionsAssigned(partitions);
            }
        };
    }
}
