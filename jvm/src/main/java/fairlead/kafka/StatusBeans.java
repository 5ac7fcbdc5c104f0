package fairlead.kafka;

import java.lang.management.ManagementFactory;
import java.lang.ref.Cleaner;
import java.util.HashMap;
import java.util.Map;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * JMX beans with the states of followers. Kafka does not close assignors, so a bean exists until its assignor is
 * garbage-collected.
 */
final class StatusBeans {
    private static final Logger LOG = LoggerFactory.getLogger(StatusBeans.class);
    private static final Cleaner CLEANER = Cleaner.create();
    /** Map from name to a token for its present bean. A new consumer with the same name replaces the bean. */
    private static final Map<ObjectName, Object> PRESENT = new HashMap<>();

    private StatusBeans() {
    }

    /** Registers a bean for a follower, named by group and client id, until {@code owner} is garbage-collected. */
    static void show(Object owner, Follower follower, String clientId) {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        Object token = new Object();
        try {
            ObjectName name = new ObjectName("fairlead:type=follower,group="
                + ObjectName.quote(follower.group()) + ",client-id=" + ObjectName.quote(clientId));
            synchronized (PRESENT) {
                if (PRESENT.put(name, token) != null) {
                    server.unregisterMBean(name);
                }
                server.registerMBean(new StandardMBean(follower, FollowerStatusMBean.class), name);
            }
            CLEANER.register(owner, () -> remove(server, name, token));
        } catch (JMException | SecurityException error) {
            LOG.warn("No JMX bean for the follower of group {}: {}", follower.group(), error.toString());
        }
    }

    private static void remove(MBeanServer server, ObjectName name, Object token) {
        synchronized (PRESENT) {
            if (PRESENT.remove(name, token)) {
                try {
                    server.unregisterMBean(name);
                } catch (JMException error) {
                    LOG.debug("{} is not removed", name, error);
                }
            }
        }
    }
}
