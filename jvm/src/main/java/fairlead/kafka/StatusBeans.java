package fairlead.kafka;

import java.lang.management.ManagementFactory;
import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Followers' states as JMX beans, each for as long as its assignor lives: nothing tells when one is closed. */
final class StatusBeans {
    private static final Logger LOG = LoggerFactory.getLogger(StatusBeans.class);
    private static final Cleaner CLEANER = Cleaner.create();
    /** What stands under each name; a consumer that comes anew takes its predecessor's place. */
    private static final Map<ObjectName, Object> PRESENT = new HashMap<>();

    private StatusBeans() {
    }

    /** Shows a follower under its group and client id until the owner is garbage. */
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
                server.registerMBean(
                    new StandardMBean(new Weak(follower), FollowerStatusMBean.class), name);
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
                } catch (InstanceNotFoundException gone) {
                    LOG.debug("{} is gone already", name);
                } catch (JMException error) {
                    LOG.warn("{} stays", name, error);
                }
            }
        }
    }

    /** Says what a follower says, and does not keep it. */
    private static final class Weak implements FollowerStatusMBean {
        private final WeakReference<Follower> follower;
        private final String group;

        Weak(Follower follower) {
            this.follower = new WeakReference<>(follower);
            this.group = follower.group();
        }

        @Override
        public String getGroup() {
            return group;
        }

        @Override
        public long getPlanVersion() {
            Follower known = follower.get();
            return known == null ? 0 : known.getPlanVersion();
        }

        @Override
        public String getFallbackReason() {
            Follower known = follower.get();
            return known == null ? "the consumer is gone" : known.getFallbackReason();
        }

        @Override
        public String getIdleReason() {
            Follower known = follower.get();
            return known == null ? null : known.getIdleReason();
        }

        @Override
        public long getLatestVersion() {
            Follower known = follower.get();
            return known == null ? 0 : known.getLatestVersion();
        }

        @Override
        public String getLatestProblem() {
            Follower known = follower.get();
            return known == null ? null : known.getLatestProblem();
        }

        @Override
        public int getRecordsSkipped() {
            Follower known = follower.get();
            return known == null ? 0 : known.getRecordsSkipped();
        }

        @Override
        public int getRebalances() {
            Follower known = follower.get();
            return known == null ? 0 : known.getRebalances();
        }

        @Override
        public int getRejoinsAsked() {
            Follower known = follower.get();
            return known == null ? 0 : known.getRejoinsAsked();
        }
    }
}
