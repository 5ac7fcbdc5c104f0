package fairlead.kafka;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Applications with a {@link MeteredConsumer} that run commands and measure their own work. */
final class Metered {
    /** Seconds of a clock tick: a power of two, so that sums are exact. */
    private static final double TICK = 1.0 / 512;
    private static final Duration SHORT = Duration.ofMillis(100);
    private static final Duration ENDLESS = Duration.ofDays(1);
    private static final Map<String, Metered> OPEN = new HashMap<>();

    private final MeteredConsumer<byte[], byte[]> consumer;
    private final Map<String, Object> configs;
    private final List<String> read = new ArrayList<>();
    private final List<String> calls = new ArrayList<>();
    /** Minimum and maximum seconds that the application took for each partition's records. */
    private final Map<String, double[]> took = new LinkedHashMap<>();
    /** Seconds within calls of poll (`polled`), and between these calls (`between`). */
    private double polled;
    private double between;
    private double since = seconds();

    private Metered(Map<String, Object> configs) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        this.configs = configs;
        this.consumer = new MeteredConsumer<>(configs, bytes, bytes);
    }

    /** Runs one command with a consumer; returns the consumer's state. */
    static Object act(Map<String, Object> request) throws Exception {
        String name = (String) request.get("name");
        if (request.get("act").equals("open")) {
            OPEN.put(name, new Metered(PlanDocument.object(request.get("configs"), "configs")));
        }
        Metered one = OPEN.get(name);
        one.act((String) request.get("act"), (String) request.get("topic"), (Long) request.get("number"));
        return one.state(((String) request.get("act")).contains("close"));
    }

    private void act(String act, String topic, Long number) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        Map<TopicPartition, OffsetAndMetadata> own = Map.of(partition, new OffsetAndMetadata(3, "own"));
        Map<TopicPartition, OffsetAndMetadata> plain = Map.of(partition, new OffsetAndMetadata(3));
        switch (act) {
            case "open":
                break;
            case "assign":
                consumer.assign(List.of(partition));
                break;
            case "subscribe":
                consumer.subscribe(List.of(topic));
                break;
            case "subscribe with a listener":
                consumer.subscribe(List.of(topic), listener());
                break;
            case "poll":
                work(SHORT);
                break;
            case "read":
                while (read.size() < number) {
                    work(SHORT);
                }
                work(Duration.ZERO);
                break;
            case "read on another thread":
                readOnAnotherThread();
                break;
            case "poll until a commit":
                pollUntilCommitted(partition);
                break;
            case "commit":
                consumer.commitSync();
                break;
            case "commit in time":
                consumer.commitSync(Duration.ofMinutes(10));
                break;
            case "commit an offset":
                consumer.commitSync(plain);
                break;
            case "commit own metadata":
                consumer.commitSync(own);
                break;
            case "commit without waiting":
                consumer.commitAsync();
                consumer.commitSync(Map.of()); // waits for earlier commits
                break;
            case "commit with a callback":
                consumer.commitAsync((offsets, error) -> calls.add(text(offsets) + (error == null ? "" : error)));
                consumer.commitAsync(plain, (offsets, error) -> calls.add(text(offsets) + (error == null ? "" : error)));
                consumer.commitSync(Map.of());
                break;
            case "commit a report":
                consumer.commitSync(Map.of(partition, new OffsetAndMetadata(3, consumer.reportFor(partition, 3))));
                break;
            case "unsubscribe":
                consumer.unsubscribe();
                break;
            case "close":
                consumer.close();
                break;
            case "wake up and close":
                consumer.wakeup();
                consumer.close();
                break;
            default:
                throw new IllegalArgumentException(act);
        }
    }

    private ConsumerRebalanceListener listener() {
        return new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                calls.add("revoked " + numbers(partitions));
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                calls.add("assigned " + numbers(partitions));
            }
        };
    }

    /** Polls once and processes each record for the milliseconds in its value; measures bounds of the time. */
    private void work(Duration timeout) throws InterruptedException {
        double began = seconds();
        ConsumerRecords<byte[], byte[]> records = consumer.poll(timeout);
        between += began - since;
        since = seconds();
        polled += since - began;
        records.nextOffsets().forEach((partition, next) -> {
            if (next.offset() != consumer.position(partition)) {
                throw new IllegalStateException(next + " is not the position");
            }
        });
        double[] of = null;
        double before = seconds();
        for (Iterator<ConsumerRecord<byte[], byte[]>> rest = records.iterator(); rest.hasNext();) {
            double next = seconds();
            ConsumerRecord<byte[], byte[]> record = rest.next();
            double start = seconds();
            if (of != null) {
                of[1] += start - before;
            }
            before = next;
            read.add(record.partition() + ":" + record.offset());
            of = took.computeIfAbsent(String.valueOf(record.partition()), any -> new double[2]);
            Thread.sleep(Long.parseLong(new String(record.value(), StandardCharsets.UTF_8)));
            of[0] += seconds() - start;
        }
        if (of != null) {
            of[1] += seconds() - before;
        }
    }

    private void readOnAnotherThread() throws InterruptedException {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(SHORT);
        while (records.isEmpty()) {
            records = consumer.poll(SHORT);
        }
        Thread other = new Thread(records.iterator()::next);
        other.start();
        other.join();
    }

    /** Polls with an endless timeout, until another client sees that an offset was committed. */
    private void pollUntilCommitted(TopicPartition partition) throws Exception {
        Map<String, Object> plain = new HashMap<>(configs);
        plain.put("client.id", "watcher");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        Thread watcher = new Thread(() -> {
            try (KafkaConsumer<byte[], byte[]> other = new KafkaConsumer<>(plain, bytes, bytes)) {
                while (other.committed(Set.of(partition)).get(partition) == null) {
                    Thread.onSpinWait();
                }
            }
            consumer.wakeup();
        });
        watcher.start();
        try {
            consumer.poll(ENDLESS);
            throw new IllegalStateException("poll has returned without a record");
        } catch (WakeupException expected) {
            watcher.join();
        }
    }

    private Map<String, Object> state(boolean isClosed) {
        Map<String, Object> state = new LinkedHashMap<>();
        if (!isClosed) {
            state.put("assigned", numbers(consumer.assignment()));
            state.put("member", consumer.groupMetadata().memberId());
        }
        Map<String, Object> measured = new LinkedHashMap<>();
        took.forEach((partition, seconds) -> measured.put(partition, List.of(seconds[0], seconds[1])));
        state.put("took", measured);
        state.put("polled", polled);
        state.put("between", between);
        state.put("read", read);
        state.put("calls", calls);
        return state;
    }

    /** Returns the committed offset and metadata of each partition. */
    static Object committed(Map<String, Object> request) throws InvalidPlanException {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        Map<String, Object> configs = PlanDocument.object(request.get("configs"), "configs");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(configs, bytes, bytes)) {
            Set<TopicPartition> partitions = consumer.partitionsFor((String) request.get("topic")).stream()
                .map(info -> new TopicPartition(info.topic(), info.partition())).collect(Collectors.toSet());
            Map<String, Object> committed = new LinkedHashMap<>();
            consumer.committed(partitions).forEach((partition, offset) -> {
                if (offset != null) {
                    committed.put(String.valueOf(partition.partition()), List.of(offset.offset(), offset.metadata()));
                }
            });
            return committed;
        }
    }

    /** Runs a meter on a simulated clock, which the events move forward; returns the meter's reports. */
    static Object meter(Map<String, Object> request) throws InvalidPlanException {
        double[] now = {0};
        Meter meter = new Meter(() -> now[0] * TICK, (Long) request.get("most") * TICK);
        Map<Long, Iterator<?>> batch = new HashMap<>();
        List<Object> reports = new ArrayList<>();
        for (Object one : (List<?>) request.get("events")) {
            List<?> event = (List<?>) one;
            Long number = event.size() > 1 && event.get(1) instanceof Long ? (Long) event.get(1) : null;
            switch ((String) event.get(0)) {
                case "advance":
                    now[0] += number;
                    break;
                case "poll":
                    meter.asked();
                    meter.waits();
                    now[0] += number;
                    meter.waited((Long) event.get(2) * TICK);
                    take(meter, PlanDocument.object(event.get(3), "counts"), batch);
                    break;
                case "next":
                    batch.get(number).hasNext();
                    batch.get(number).next();
                    break;
                case "end":
                    batch.get(number).hasNext();
                    break;
                default:
                    reports.add(meter.report(new TopicPartition("t", number.intValue()), (Long) event.get(2),
                        meter.owner((String) request.get("member")), ((Long) event.get(3)).intValue()));
            }
        }
        return reports;
    }

    private static void take(Meter meter, Map<String, Object> counts, Map<Long, Iterator<?>> batch) {
        Map<TopicPartition, List<ConsumerRecord<Integer, Integer>>> lists = new LinkedHashMap<>();
        counts.forEach((partition, count) -> {
            List<ConsumerRecord<Integer, Integer>> list = new ArrayList<>();
            for (long record = 0; record < (Long) count; record++) {
                list.add(new ConsumerRecord<>("t", Integer.parseInt(partition), record, null, null));
            }
            lists.put(new TopicPartition("t", Integer.parseInt(partition)), list);
        });
        ConsumerRecords<Integer, Integer> taken = meter.took(new ConsumerRecords<>(lists, Map.of()));
        batch.clear();
        taken.partitions().forEach(
            partition -> batch.put((long) partition.partition(), taken.records(partition).iterator()));
    }

    private static List<Object> numbers(Collection<TopicPartition> partitions) {
        return partitions.stream().map(partition -> (long) partition.partition()).sorted().collect(Collectors.toList());
    }

    private static String text(Map<TopicPartition, OffsetAndMetadata> offsets) {
        return offsets.entrySet().stream()
            .map(entry -> entry.getKey().partition() + ":" + entry.getValue().offset() + ":" + entry.getValue().metadata())
            .sorted().collect(Collectors.joining(" "));
    }

    private static double seconds() {
        return System.nanoTime() / 1e9;
    }
}
