package fairlead.kafka;

import com.sun.tools.attach.VirtualMachine;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import javax.management.MBeanAttributeInfo;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.openmbean.TabularData;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** Reads the JMX attributes of the broker's assignor from a running JVM. */
final class Beans {
    private Beans() {}

    /** Returns the attributes by name, from the JVM with this process id; empty without an assignor. */
    static Map<String, Object> read(String processId) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(processId);
        String url = machine.startLocalManagementAgent();
        machine.detach();
        Map<String, Object> found = new LinkedHashMap<>();
        try (var connector = JMXConnectorFactory.connect(new JMXServiceURL(url))) {
            var server = connector.getMBeanServerConnection();
            var name = new ObjectName(BrokerMetrics.NAME);
            if (server.isRegistered(name)) {
                for (MBeanAttributeInfo attribute : server.getMBeanInfo(name).getAttributes()) {
                    found.put(attribute.getName(), plain(server.getAttribute(name, attribute.getName())));
                }
            }
        }
        return found;
    }

    /** Converts JMX tables of keys and values back to maps. */
    private static Object plain(Object value) {
        if (value instanceof TabularData) {
            Map<String, Object> found = new TreeMap<>();
            for (Object row : ((TabularData) value).values()) {
                var pair = (CompositeData) row;
                found.put(pair.get("key").toString(), plain(pair.get("value")));
            }
            return found;
        }
        return value;
    }
}
