import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/**
 * A Java consumer with Kafka's own StickyAssignor; prints its partitions whenever they change.
 *
 * <p>The consumer joins its group at the start. The lines "leave" and "join" on standard input make
 * it leave the group and join again; the end of the input ends the program.
 */
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
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        do {
            consume(config, args[2], input);
            System.out.println();
        } while ("leave".equals(input.readLine()) && "join".equals(input.readLine()));
    }

    private static void consume(Properties config, String topic, BufferedReader input)
            throws IOException {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(List.of(topic));
            String last = "";
            while (!input.ready()) {
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
