package share;

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The official client as a peer of `kshare bench`: consume, produce or transactions, and what `kshare bench --help` says. */
public final class Bench {
    private Bench() {}

    public static void main(String[] args) {
        switch (args[0]) {
            case "consume" -> consume(args[1], args[2], args[3], Long.parseLong(args[4]));
            case "produce" -> produce(args[1], args[2], Long.parseLong(args[3]), Integer.parseInt(args[4]), Integer.parseInt(args[5]));
            case "transactions" -> transactions(args[1], args[2], args[3], args[4], args[5], Long.parseLong(args[6]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void consume(String servers, String topic, String group, long wanted) {
        long records = 0;
        long first = 0;
        try (var consumer = consumer(servers, topic, group, "500", "batch_optimized")) {
            while (records < wanted) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofSeconds(1));
                if (first == 0 && !polled.isEmpty()) {
                    first = System.nanoTime();
                }
                polled.forEach(consumer::acknowledge);
                records += polled.count();
            }
            double seconds = (System.nanoTime() - first) / 1e9;
            consumer.commitSync();
            System.out.println("{\"records\": " + records + ", \"seconds\": " + seconds + "}");
        }
    }

    private static void produce(String servers, String topic, long records, int size, int partitions) {
        byte[] value = new byte[size];
        java.util.Arrays.fill(value, (byte) 'x');
        try (var producer = producer(servers, new Properties())) {
            long first = System.nanoTime();
            for (long n = 0; n < records; n++) {
                // What was not written is missing in the topic, which is counted.
                producer.send(new ProducerRecord<>(topic, (int) (n % partitions), null, value));
            }
            producer.flush();
            double seconds = (System.nanoTime() - first) / 1e9;
            System.out.println("{\"records\": " + records + ", \"seconds\": " + seconds + "}");
        }
    }

    private static void transactions(String servers, String topic, String group, String output, String each, long wanted) {
        long records = 0;
        long transactions = 0;
        long first = 0;
        Properties config = new Properties();
        config.put("transactional.id", group);
        try (var producer = producer(servers, config); var consumer = consumer(servers, topic, group, each, "record_limit")) {
            producer.initTransactions();
            while (records < wanted) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofSeconds(1));
                if (polled.isEmpty()) {
                    continue;
                }
                if (first == 0) {
                    first = System.nanoTime();
                }
                producer.beginTransaction();
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    producer.send(new ProducerRecord<>(output, record.value()));
                }
                producer.commitTransaction();
                polled.forEach(consumer::acknowledge);
                records += polled.count();
                transactions++;
            }
            double seconds = (System.nanoTime() - first) / 1e9;
            consumer.commitSync();
            System.out.println(
                "{\"records\": " + records + ", \"seconds\": " + seconds + ", \"transactions\": " + transactions + "}");
        }
    }

    private static KafkaShareConsumer<byte[], byte[]> consumer(
        String servers, String topic, String group, String poll, String acquire) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("group.id", group);
        config.put("share.acknowledgement.mode", "explicit");
        config.put("max.poll.records", poll);
        config.put("share.acquire.mode", acquire);
        var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private static KafkaProducer<byte[], byte[]> producer(String servers, Properties config) {
        config.put("bootstrap.servers", servers);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }
}
