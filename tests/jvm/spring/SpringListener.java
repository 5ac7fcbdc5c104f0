import fairlead.kafka.MeteredConsumer;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.MessageListener;

/**
 * Runs Spring containers whose consumers report their work, with the factory of docs/consumers/java.md.
 *
 * <p>Arguments: bootstrap servers, group, topic, acknowledgement mode, number of records. After the
 * containers have committed and stopped, it prints the seconds that the listener took for each partition.
 */
public final class SpringListener {
    private SpringListener() {
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> configs = new HashMap<>(Map.of(
            "bootstrap.servers", arguments[0], "group.id", arguments[1], "auto.offset.reset", "earliest"));
        ContainerProperties properties = new ContainerProperties(arguments[2]);
        properties.setAckMode(ContainerProperties.AckMode.valueOf(arguments[3]));
        CountDownLatch left = new CountDownLatch(Integer.parseInt(arguments[4]));
        Map<Integer, Double> took = new TreeMap<>();
        properties.setMessageListener((MessageListener<Object, Object>) record -> {
            long start = System.nanoTime();
            try {
                Thread.sleep(Long.parseLong((String) record.value()));
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
            synchronized (took) {
                took.merge(record.partition(), (System.nanoTime() - start) / 1e9, Double::sum);
            }
            left.countDown();
        });
        ConcurrentMessageListenerContainer<Object, Object> container =
            new ConcurrentMessageListenerContainer<>(factory(configs), properties);
        container.setConcurrency(2);
        container.start();
        left.await();
        container.stop();
        took.forEach((partition, seconds) -> System.out.println(partition + " " + seconds));
    }

    private static DefaultKafkaConsumerFactory<Object, Object> factory(Map<String, Object> configs) {
        configs.put("key.deserializer", StringDeserializer.class);
        configs.put("value.deserializer", StringDeserializer.class);
        return new DefaultKafkaConsumerFactory<>(configs) {
            @Override
            protected Consumer<Object, Object> createRawConsumer(Map<String, Object> configs) {
                return new MeteredConsumer<>(configs, getKeyDeserializer(), getValueDeserializer());
            }
        };
    }
}
