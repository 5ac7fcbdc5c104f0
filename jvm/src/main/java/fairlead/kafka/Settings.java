package fairlead.kafka;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.config.ConfigException;

/** Names of Fairlead's settings; reads their values from the configuration of a client or broker. */
final class Settings {
    static final String PLAN_TOPIC = "fairlead.plan.topic";
    static final String PUBLIC_KEYS = "fairlead.public.keys";
    static final String FALLBACK = "fairlead.fallback";
    static final String JITTER_MS = "fairlead.rejoin.jitter.ms";
    static final String READ_TIMEOUT_MS = "fairlead.read.timeout.ms";
    static final String REPORT_WORK = "fairlead.report.work";
    static final String DEFAULT_PLAN_TOPIC = "fairlead.plans";

    private static final String PREFIX = "fairlead.";

    private Settings() {
    }

    /** Reads a text. An empty text is an error, so that an environment variable that is not set turns nothing off. */
    static String text(Map<String, ?> configs, String name, String otherwise) {
        Object value = configs.get(name);
        if (value == null) {
            return otherwise;
        }
        if (value.toString().trim().isEmpty()) {
            throw new ConfigException(name + " is empty: is a variable not set? To use none, omit the option");
        }
        return value.toString().trim();
    }

    /** Reads a setting that is {@code true} or {@code false}. */
    static boolean flag(Map<String, ?> configs, String name, boolean otherwise) {
        String value = text(configs, name, Boolean.toString(otherwise));
        if (!value.equalsIgnoreCase("true") && !value.equalsIgnoreCase("false")) {
            throw new ConfigException(name, value, "true or false");
        }
        return Boolean.parseBoolean(value);
    }

    /** Reads a number of milliseconds, at least {@code least}. */
    static long milliseconds(Map<String, ?> configs, String name, long otherwise, long least) {
        String value = text(configs, name, Long.toString(otherwise));
        if (!value.matches("-?[0-9]{1,18}") || Long.parseLong(value) < least) {
            throw new ConfigException(name, value, "a number of milliseconds, " + least + " or more");
        }
        return Long.parseLong(value);
    }

    /**
     * Returns the settings of a client's connection to the cluster. These are the settings of an admin client, and
     * those that no consumer knows, since they may belong to a login module.
     */
    static Map<String, Object> connection(Map<String, ?> configs) {
        Set<String> consumers = ConsumerConfig.configNames();
        Set<String> admins = AdminClientConfig.configNames();
        Map<String, Object> connection = new HashMap<>();
        configs.forEach((name, value) -> {
            boolean foreign = !consumers.contains(name) && !name.startsWith(PREFIX);
            if (value != null && (admins.contains(name) || foreign)) {
                connection.put(name, value);
            }
        });
        connection.remove(AdminClientConfig.CLIENT_ID_CONFIG);
        connection.remove(AdminClientConfig.METRIC_REPORTER_CLASSES_CONFIG);
        return connection;
    }
}
