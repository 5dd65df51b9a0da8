package clients;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** Partition of each line of a file as a key, as the Java producer chooses it: Partitions COUNT INPUT OUTPUT */
public final class Partitions {
    private Partitions() {}

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        List<String> chosen = Files.readAllLines(Path.of(args[1])).stream()
            .map(key -> BuiltInPartitioner.partitionForKey(key.getBytes(StandardCharsets.UTF_8), count))
            .map(String::valueOf)
            .toList();
        Files.write(Path.of(args[2]), chosen);
    }
}
