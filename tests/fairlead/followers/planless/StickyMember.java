import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** A Java consumer with Kafka's own StickyAssignor; prints what it owns whenever that changes. */
public class StickyMember {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("group.id", args[1]);
        config.put("group.protocol", "classic");
        config.put("heartbeat.interval.ms", "300");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.StickyAssignor");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(List.of(args[2]));
            String last = "";
            while (System.in.available() == 0) {
                consumer.poll(Duration.ofMillis(100));
                String owned = consumer.assignment().stream().map(p -> p.partition()).sorted()
                    .map(String::valueOf).collect(Collectors.joining(" "));
                if (!owned.equals(last)) {
                    System.out.println(owned);
                    last = owned;
                }
            }
        }
    }
}
