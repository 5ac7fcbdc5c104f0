package fairlead.kafka;

import java.io.DataOutputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer that logs its own work, as benchmarks/working.py describes: Working SERVERS GROUP TOPIC NAME LOG CV
 * SECONDS... There is one argument SECONDS for each partition. When standard input is closed, the process writes its
 * log and ends.
 */
final class Working {
    private static final Duration WAIT = Duration.ofMillis(200);

    private final double[] seconds;
    private final double sigma;
    private final Random random;
    private double[] log = new double[4096];
    private int filled;

    private Working(double[] seconds, double cv, long seed) {
        this.seconds = seconds;
        sigma = Math.sqrt(Math.log(1 + cv * cv));
        random = new Random(seed);
    }

    public static void main(String[] given) {
        double[] seconds = Arrays.stream(given).skip(6).mapToDouble(Double::parseDouble).toArray();
        Working working = new Working(seconds, Double.parseDouble(given[5]), given[3].hashCode());
        Map<String, Object> configs = Map.of(
            "bootstrap.servers", given[0], "group.id", given[1], "client.id", given[3],
            "auto.offset.reset", "earliest", "auto.commit.interval.ms", "1000", "heartbeat.interval.ms", "1000",
            "partition.assignment.strategy", List.of(PlanAssignor.class, RangeAssignor.class));
        MeteredConsumer<byte[], byte[]> consumer =
            new MeteredConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(given[2]));
        new Thread(() -> working.end(Path.of(given[4]))).start();
        while (true) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(WAIT)) {
                working.handle(record.partition());
            }
        }
    }

    private void handle(int partition) {
        long began = System.nanoTime();
        double drawn = seconds[partition] * Math.exp(sigma * random.nextGaussian() - sigma * sigma / 2);
        long until = began + (long) (1e9 * drawn);
        for (long left = until - began; left > 0; left = until - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
        note(partition, began / 1e9, (System.nanoTime() - began) / 1e9, drawn);
    }

    private synchronized void note(double... values) {
        if (filled + values.length > log.length) {
            log = Arrays.copyOf(log, 2 * log.length);
        }
        System.arraycopy(values, 0, log, filled, values.length);
        filled += values.length;
    }

    private void end(Path path) {
        try {
            System.in.readAllBytes();
            write(path);
        } catch (IOException error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(0);
    }

    private synchronized void write(Path path) throws IOException {
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path)))) {
            for (int at = 0; at < filled; at++) {
                out.writeDouble(log[at]);
            }
        }
    }
}
