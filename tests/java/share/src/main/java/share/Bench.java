package share;

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The official client as a peer of `kshare bench`: Bench BOOTSTRAP-SERVERS TOPIC GROUP RECORDS. */
public final class Bench {
    private Bench() {}

    public static void main(String[] args) {
        long wanted = Long.parseLong(args[3]);
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("group.id", args[2]);
        config.put("share.acknowledgement.mode", "explicit");
        long records = 0;
        long first = 0;
        try (var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(args[1]));
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
}
