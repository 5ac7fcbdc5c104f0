package fairlead.kafka;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A Java consumer that reads at a fixed rate, as tests/fairlead/domain/analysis/reader.py does with the clients of
 * Python: the same options, orders and reports. With `--desks` each partition has a worker, and is paused meanwhile.
 */
final class Reader {
    private static final int COMMIT_MS = 5000;
    private static final int HEARTBEAT_MS = 3000;
    private static final int FETCH_BYTES = 1 << 20;
    private static final int POLL_RECORDS = 500;
    private static final double CAUGHT_UP_S = 1.0;
    private static final double LEAST_S = 0.005;
    private static final double LEAST_TOLD_S = 0.1;

    private static final CountDownLatch STOPPED = new CountDownLatch(1);
    private static volatile int rate;
    private static Map<String, Object> dear;

    private Reader() {
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int place = 0; place < arguments.length; place++) {
            String name = arguments[place].substring(2);
            options.put(name, name.equals("desks") ? "" : arguments[++place]);
        }
        rate = Integer.parseInt(options.get("rate"));
        dear = PlanDocument.object(Json.parse(options.get("dear").getBytes(StandardCharsets.UTF_8)), "dear");
        Thread listener = new Thread(Reader::listen);
        listener.setDaemon(true);
        listener.start();
        boolean desks = options.containsKey("desks");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(configs(options, desks), bytes, bytes)) {
            List<String> topics = List.of(options.get("topics").split(","));
            if (desks) {
                new Desks(consumer, COMMIT_MS / Integer.parseInt(options.get("faster"))).read(topics);
            } else {
                read(consumer, topics);
            }
        }
    }

    private static Map<String, Object> configs(Map<String, String> options, boolean desks) {
        int faster = Integer.parseInt(options.get("faster"));
        return Map.ofEntries(
            Map.entry("bootstrap.servers", options.get("bootstrap-servers")),
            Map.entry("group.id", options.get("group")),
            Map.entry("client.id", options.get("name")),
            Map.entry("partition.assignment.strategy", PlanAssignor.class.getName()),
            Map.entry(Settings.PLAN_TOPIC, options.get("plan-topic")),
            Map.entry("auto.offset.reset", "earliest"),
            Map.entry("enable.auto.commit", String.valueOf(!desks)),
            Map.entry("auto.commit.interval.ms", String.valueOf(COMMIT_MS / faster)),
            Map.entry("heartbeat.interval.ms", String.valueOf(HEARTBEAT_MS / faster)),
            Map.entry("max.partition.fetch.bytes", String.valueOf(FETCH_BYTES / faster)),
            Map.entry("max.poll.records", String.valueOf(POLL_RECORDS / faster)));
    }

    /** Takes orders from standard input until it ends. */
    private static void listen() {
        try (BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String order = orders.readLine(); order != null; order = orders.readLine()) {
                if (order.startsWith("rate ")) {
                    rate = Integer.parseInt(order.substring("rate ".length()));
                }
            }
        } catch (IOException error) {
            System.err.println("No more orders: " + error);
        }
        STOPPED.countDown();
    }

    /** Reads in a plain loop: a record after the other. */
    private static void read(KafkaConsumer<byte[], byte[]> consumer, List<String> topics) throws InterruptedException {
        Pace pace = new Pace();
        Assigned assigned = new Assigned();
        consumer.subscribe(topics);
        while (STOPPED.getCount() > 0) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                if (pace.work(STOPPED, new TopicPartition(record.topic(), record.partition()))) {
                    break;
                }
            }
            assigned.now(consumer.assignment());
        }
    }

    private static synchronized void report(String event, Map<String, Object> values) {
        Map<String, Object> all = new TreeMap<>(values);
        all.put("event", event);
        all.put("at", now());
        System.out.println(Json.write(all));
    }

    private static double now() {
        return System.nanoTime() / 1e9;
    }

    /** The time that records take: of a consumer, or of one partition's worker. */
    private static final class Pace {
        private double freeAt;

        /** Waits as long as a record takes, or until an event, and returns whether that has come. */
        boolean work(CountDownLatch ended, TopicPartition at) throws InterruptedException {
            double cost = dear.get(at.toString()) instanceof Number times ? times.doubleValue() : 1.0;
            double now = now();
            freeAt = Math.max(freeAt, now - CAUGHT_UP_S) + cost / rate;
            if (freeAt - now <= LEAST_S) { // a shorter pause is made up for with the next one
                return ended.getCount() == 0;
            }
            boolean over = ended.await(Math.round((freeAt - now) * 1e9), TimeUnit.NANOSECONDS);
            double heldUp = now() - freeAt;
            if (heldUp > LEAST_TOLD_S) {
                report("processed", Map.of("records", 0, "held_up_s", heldUp));
            }
            return over;
        }
    }

    /** Reports what is owned whenever that has changed. */
    private static final class Assigned {
        private Map<String, Object> last = Map.of();

        void now(Set<TopicPartition> owned) {
            Map<String, List<Object>> found = new TreeMap<>();
            owned.stream().sorted((one, other) -> one.partition() - other.partition())
                .forEach(at -> found.computeIfAbsent(at.topic(), name -> new ArrayList<>()).add(at.partition()));
            if (!found.equals(last)) {
                last = new TreeMap<>(found);
                report("assigned", Map.of("partitions", last));
            }
        }
    }

    /** A worker for each partition: it is given some records, and no more until it is through. */
    private static final class Desks implements ConsumerRebalanceListener {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final double everyS;
        private final Map<TopicPartition, CountDownLatch> busy = new HashMap<>();
        private final Map<TopicPartition, Pace> paces = new HashMap<>();
        private final Map<TopicPartition, OffsetAndMetadata> done = new HashMap<>();
        private final Set<TopicPartition> through = ConcurrentHashMap.newKeySet();

        Desks(KafkaConsumer<byte[], byte[]> consumer, int everyMs) {
            this.consumer = consumer;
            everyS = everyMs / 1e3;
        }

        void read(List<String> topics) {
            Assigned assigned = new Assigned();
            double commitAt = 0.0;
            consumer.subscribe(topics, this);
            while (STOPPED.getCount() > 0) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(100));
                for (TopicPartition at : polled.partitions()) {
                    consumer.pause(List.of(at));
                    give(at, polled.records(at));
                }
                List<TopicPartition> free = new ArrayList<>(through);
                through.removeAll(free);
                busy.keySet().removeAll(free);
                consumer.resume(free);
                if (now() >= commitAt) {
                    commitAt = now() + everyS;
                    synchronized (this) {
                        consumer.commitAsync(new HashMap<>(done), null);
                        done.clear();
                    }
                }
                assigned.now(consumer.assignment());
            }
            onPartitionsRevoked(consumer.assignment());
        }

        private void give(TopicPartition at, List<ConsumerRecord<byte[], byte[]>> records) {
            CountDownLatch ended = new CountDownLatch(1);
            busy.put(at, ended);
            Pace pace = paces.computeIfAbsent(at, unused -> new Pace());
            Thread worker = new Thread(() -> work(at, records, pace, ended));
            worker.setDaemon(true);
            worker.start();
        }

        private void work(
            TopicPartition at, List<ConsumerRecord<byte[], byte[]>> records, Pace pace, CountDownLatch ended) {
            try {
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    pace.work(ended, at);
                    synchronized (this) {
                        if (ended.getCount() == 0) {
                            return;
                        }
                        done.put(at, new OffsetAndMetadata(record.offset() + 1));
                    }
                }
                synchronized (this) {
                    if (ended.getCount() > 0) {
                        through.add(at);
                    }
                }
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }

        /** Ends the work on partitions: they are somebody else's now. */
        @Override
        public synchronized void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            for (TopicPartition at : partitions) {
                CountDownLatch ended = busy.remove(at);
                if (ended != null) {
                    ended.countDown();
                }
                done.remove(at);
                through.remove(at);
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            consumer.resume(partitions);
        }
    }
}
