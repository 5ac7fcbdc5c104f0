package fairlead.kafka;

import java.lang.management.ManagementFactory;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.JMException;
import javax.management.ObjectName;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Counts the decisions of all assignors that share a {@link BrokerReader}; publishes the counts by JMX. */
final class BrokerMetrics implements PlanGroupAssignorMXBean {
    static final String NAME = "fairlead.kafka:type=PlanGroupAssignor";
    private static final Logger LOG = LoggerFactory.getLogger(BrokerMetrics.class);

    private final BrokerReader reader;
    private final Map<String, Long> outcomes = new ConcurrentSkipListMap<>();
    private final AtomicLong failures = new AtomicLong();
    private volatile String lastFailure = "";

    BrokerMetrics(BrokerReader reader) {
        this.reader = reader;
        for (Decider.Outcome outcome : Decider.Outcome.values()) {
            outcomes.put(outcome.name(), 0L);
        }
    }

    /** Registers the metrics, unless another assignor of this JVM has already registered them. */
    void register() {
        try {
            var server = ManagementFactory.getPlatformMBeanServer();
            var name = new ObjectName(NAME);
            if (!server.isRegistered(name)) {
                server.registerMBean(this, name);
            }
        } catch (JMException error) {
            LOG.info("{} cannot be shown: {}", NAME, error.getMessage());
        }
    }

    void count(Decider.Outcome outcome) {
        outcomes.merge(outcome.name(), 1L, Long::sum);
    }

    /** Counts a decision that failed because of a bug. Returns whether to log the error: not if it repeats. */
    boolean failed(Throwable error) {
        failures.incrementAndGet();
        String text = error.toString();
        boolean isNew = !text.equals(lastFailure);
        lastFailure = text;
        return isNew;
    }

    @Override
    public Map<String, Long> getOutcomes() {
        return outcomes;
    }

    @Override
    public long getFailures() {
        return failures.get();
    }

    @Override
    public String getLastFailure() {
        return lastFailure;
    }

    @Override
    public boolean isComplete() {
        return reader.book.complete;
    }

    @Override
    public String getProblem() {
        String problem = reader.problem();
        return problem == null ? "" : problem;
    }

    @Override
    public double getReadSecondsAgo() {
        long at = reader.readAt;
        return at == 0 ? -1 : (System.currentTimeMillis() - at) / 1e3;
    }

    @Override
    public int getPlans() {
        return (int) reader.book.plans.values().stream()
            .filter(plan -> plan.document() != null && !plan.state().lapsed(Instant.now())).count();
    }

    @Override
    public int getGroupsDropped() {
        return reader.dropped.size();
    }

    @Override
    public long getRecordsRead() {
        return reader.records;
    }

    @Override
    public long getRecordsSkipped() {
        return reader.skipped;
    }
}
