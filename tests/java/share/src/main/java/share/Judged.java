package share;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A plain share consumer, for the judge of clients: consumes a topic and accepts every record until its standard input ends.
 * Arguments: bootstrap servers, topic, group, "implicit" or "explicit".
 */
public final class Judged {
    private static final Duration POLL = Duration.ofMillis(200);

    private Judged() {
    }

    public static void main(String[] args) {
        boolean explicit = args[3].equals("explicit");
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("group.id", args[2]);
        properties.put("share.acknowledgement.mode", args[3]);
        AtomicBoolean stopped = new AtomicBoolean();
        Thread stop = new Thread(() -> awaitEndOfInput(stopped));
        stop.setDaemon(true);
        stop.start();
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(properties, text, text)) {
            consumer.subscribe(List.of(args[1]));
            while (!stopped.get()) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    if (explicit) {
                        consumer.acknowledge(record);
                    }
                }
            }
        }
    }

    private static void awaitEndOfInput(AtomicBoolean stopped) {
        try {
            while (System.in.read() >= 0) {
                // What is written to it does not matter.
            }
        } catch (IOException ended) {
            System.err.println("standard input: " + ended);
        }
        stopped.set(true);
    }
}
