import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/**
 * A Java consumer that follows its group's plans. Only two settings concern plans:
 * {@code client.id} and {@code partition.assignment.strategy}.
 *
 * <p>java -cp "fairlead-kafka.jar:kafka-clients.jar:slf4j-api.jar" JavaConsumer.java localhost:9092 orders-1
 */
public final class JavaConsumer {
    private JavaConsumer() {
    }

    public static void main(String[] arguments) {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("group.id", "orders");
        config.put("client.id", arguments[1]); // this member's name in plans
        config.put("partition.assignment.strategy",
            "fairlead.kafka.PlanAssignor,org.apache.kafka.clients.consumer.RangeAssignor");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(List.of("orders"));
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(record.value());
                }
            }
        }
    }
}
