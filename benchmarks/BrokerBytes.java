import com.sun.tools.attach.VirtualMachine;
import java.util.Map;
import java.util.TreeMap;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Prints the number of bytes that brokers have sent over each of their listeners. The arguments are the brokers'
 * process ids. Each line of output is a JSON object for one broker: a map from listener to the value of the broker's
 * metric {@code outgoing-byte-total}.
 */
final class BrokerBytes {
    private static final String METRICS = "kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*";

    private BrokerBytes() {}

    /** Queries one broker after the other. */
    public static void main(String[] pids) throws Exception {
        for (String pid : pids) {
            VirtualMachine broker = VirtualMachine.attach(pid);
            String address = broker.startLocalManagementAgent();
            broker.detach();
            try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
                System.out.println(sent(connector.getMBeanServerConnection()));
            }
        }
    }

    private static String sent(MBeanServerConnection beans) throws Exception {
        Map<String, Double> sent = new TreeMap<>();
        for (ObjectName name : beans.queryNames(new ObjectName(METRICS), null)) {
            double bytes = (Double) beans.getAttribute(name, "outgoing-byte-total");
            sent.merge("\"" + name.getKeyProperty("listener") + "\"", bytes, Double::sum);
        }
        return sent.toString().replace('=', ':');
    }
}
