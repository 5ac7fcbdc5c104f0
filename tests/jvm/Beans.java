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

/** Beans PID: prints, as JSON, what the brokers' assignor shows by JMX in a running JVM; {}: nothing. */
final class Beans {
    private Beans() {}

    public static void main(String[] arguments) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(arguments[0]);
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
        System.out.println(Json.write(found));
    }

    /** On its way a map has become a table of keys and values. */
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
