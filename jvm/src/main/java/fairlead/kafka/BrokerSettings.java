package fairlead.kafka;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigException;

/** Settings of the assignor, from the broker's properties. */
final class BrokerSettings {
    static final String MEMBERS_TOPIC = "fairlead.members.topic";
    static final String BOOTSTRAP = "fairlead.bootstrap.servers";
    static final String CLIENT = "fairlead.client.";
    static final String ON_LAPSE = "fairlead.on.lapse";

    final String planTopic;
    final String membersTopic;
    final Signatures signatures;
    final String bootstrapServers;
    final boolean uniformOnLapse;
    final boolean keepWithoutPlan;
    /** The settings that determine how plans are read. Assignors share a reader if these settings are equal. */
    final Map<String, String> said = new TreeMap<>();

    /**
     * Reads the settings; most other properties are ignored.
     *
     * @throws ConfigException a value is invalid, or the configured public keys cannot be used
     */
    BrokerSettings(Map<String, ?> configs) {
        configs.forEach((name, value) -> {
            if (name.startsWith("fairlead.") && value != null) {
                said.put(name, value.toString().trim());
            }
        });
        planTopic = Settings.text(configs, Settings.PLAN_TOPIC, Settings.DEFAULT_PLAN_TOPIC);
        membersTopic = Settings.text(configs, MEMBERS_TOPIC, "fairlead.members");
        if (planTopic.equals(membersTopic)) {
            throw new ConfigException(Settings.PLAN_TOPIC + " and " + MEMBERS_TOPIC + " must name two topics");
        }
        signatures = Signatures.of(said.get(Settings.PUBLIC_KEYS));
        uniformOnLapse = choice(configs, ON_LAPSE, "keep", "uniform").equals("uniform");
        keepWithoutPlan = choice(configs, Settings.FALLBACK, "uniform", "keep").equals("keep");
        bootstrapServers = Settings.text(configs, BOOTSTRAP, ownListener(configs));
        if (bootstrapServers != null) {
            said.put(BOOTSTRAP, bootstrapServers);
        }
    }

    private static String choice(Map<String, ?> configs, String name, String preset, String other) {
        String value = Settings.text(configs, name, preset);
        if (!value.equals(preset) && !value.equals(other)) {
            throw new ConfigException(name, value, "must be " + preset + " or " + other);
        }
        return value;
    }

    /** Returns the configuration of a Kafka client for reading the topics. */
    Map<String, Object> connection() {
        var configs = new HashMap<String, Object>();
        configs.put("client.id", "fairlead-group-assignor");
        said.forEach((name, value) -> {
            if (name.startsWith(CLIENT)) {
                configs.put(name.substring(CLIENT.length()), value);
            }
        });
        configs.put("bootstrap.servers", bootstrapServers);
        return configs;
    }

    /** Returns the broker's first listener that needs neither TLS nor SASL; null if there is none. */
    private static String ownListener(Map<String, ?> configs) {
        var protocols = new HashMap<String, String>();
        for (String pair : text(configs, "listener.security.protocol.map").split(",")) {
            String[] parts = pair.trim().split(":");
            if (parts.length == 2) {
                protocols.put(parts[0], parts[1]);
            }
        }
        String controllers = "," + text(configs, "controller.listener.names").replace(" ", "") + ",";
        String advertised = text(configs, "advertised.listeners");
        String listeners = advertised.isEmpty() ? text(configs, "listeners") : advertised;
        for (String listener : listeners.split(",")) {
            String[] parts = listener.trim().split("://");
            if (parts.length == 2
                && protocols.getOrDefault(parts[0], parts[0]).equals("PLAINTEXT")
                && !controllers.contains("," + parts[0] + ",")) {
                return parts[1].startsWith(":") ? "localhost" + parts[1] : parts[1];
            }
        }
        return null;
    }

    private static String text(Map<String, ?> configs, String name) {
        Object value = configs.get(name);
        return value == null ? "" : value.toString().trim();
    }
}
