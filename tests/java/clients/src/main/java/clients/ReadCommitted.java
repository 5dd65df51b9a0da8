package clients;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Writes what a read_committed consumer sees of a topic, a record a line: ReadCommitted SERVERS TOPIC OUTPUT-FILE */
public final class ReadCommitted {
    private ReadCommitted() {}

    public static void main(String[] args) throws Exception {
        Map<String, Object> config =
            Map.of("bootstrap.servers", args[0], "isolation.level", "read_committed", "auto.offset.reset", "earliest");
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(config, bytes, bytes);
            var out = new PrintStream(Files.newOutputStream(Path.of(args[2])), false, StandardCharsets.UTF_8)) {
            List<TopicPartition> all =
                consumer.partitionsFor(args[1]).stream().map(p -> new TopicPartition(p.topic(), p.partition())).toList();
            consumer.assign(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (all.stream().anyMatch(tp -> consumer.position(tp) < ends.get(tp))) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("the end was not reached: " + ends);
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    out.println(line(record));
                }
            }
        }
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder line = new StringBuilder();
        line.append(record.partition()).append(' ').append(record.offset()).append(' ').append(record.timestamp());
        line.append(' ').append(text(record.key())).append(' ').append(text(record.value()));
        for (Header header : record.headers()) {
            line.append(' ').append(header.key()).append('=').append(text(header.value()));
        }
        return line.toString();
    }

    private static String text(byte[] field) {
        return field == null ? "null" : "[" + new String(field, StandardCharsets.UTF_8) + "]";
    }
}
