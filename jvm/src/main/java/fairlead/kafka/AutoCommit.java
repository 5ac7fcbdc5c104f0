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
 * Automatic commits whose metadata are reports of work. Kafka's own automatic commits cannot have metadata.
 *
 * <p>Like Kafka, this class commits the positions of all assigned partitions: every
 * {@code auto.commit.interval.ms} while the application polls, before partitions are revoked, and when the
 * consumer is closed. A commit that fails is logged.
 */
final class AutoCommit {
    /** The listener if the application has none. */
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
    /** Whether positions have been committed because the consumer leaves. The revocation then commits nothing. */
    private boolean leaving;

    AutoCommit(Metering settings) {
        this.settings = settings;
        dueIn(settings.commitInterval);
    }

    private void dueIn(Duration time) {
        dueNanos = System.nanoTime() + time.toNanos();
    }

    /** Returns the milliseconds until the next commit is due; 0 or less if it is due now. */
    long untilDueMs() {
        return Duration.ofNanos(dueNanos - System.nanoTime()).toMillis();
    }

    /** Commits asynchronously if the interval since the last commit is over. */
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

    /** Commits synchronously, before partitions are given up. */
    private void now(MeteredConsumer<?, ?> consumer, Duration timeout) {
        try {
            Map<TopicPartition, OffsetAndMetadata> positions = consumer.positions();
            if (!positions.isEmpty()) {
                consumer.commitSync(positions, timeout);
            }
        } catch (WakeupException wakeup) { // commit, then repeat the wakeup for the next poll
            now(consumer, timeout);
            consumer.wakeup();
        } catch (IllegalStateException closed) {
            LOG.debug("No automatic commit", closed);
        } catch (KafkaException error) {
            LOG.warn("Automatic commit failed: {}", error.getMessage());
        }
    }

    /** Commits synchronously, then runs {@code leave}, which makes the consumer leave its group. */
    void leave(MeteredConsumer<?, ?> consumer, Duration timeout, Runnable leave) {
        now(consumer, timeout);
        leaving = true;
        try {
            leave.run();
        } finally {
            leaving = false;
        }
    }

    /** Returns a listener that commits before partitions are revoked, and then calls {@code listener}. */
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
