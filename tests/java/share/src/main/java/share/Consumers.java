package share;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Share consumers in both modes against the broker given as the first argument. Exits with an error where it misbehaves;
 * with "exact" as the second argument its delivery counts must be right to the last one.
 * Compiled against the newest clients, it also runs on those of 4.1, and leaves out what they lack.
 */
public final class Consumers {
    private static final Duration POLL = Duration.ofMillis(500);
    private static final long PATIENCE_MS = 60_000;

    private final String bootstrap;
    private final Admin admin;
    private final String topic = "share-" + UUID.randomUUID();
    /** One partition, which all members share. */
    private final String narrow = topic + "-narrow";
    /** Renewals, record_limit and lag came with 4.2. */
    private final boolean newer = !clients().startsWith("4.1.");
    private final AtomicInteger groups = new AtomicInteger();
    /** Whether the broker forgets no delivery. A real one may, where it reads back the state of a share-partition. */
    private final boolean exact;

    private Consumers(String bootstrap, boolean exact) {
        this.bootstrap = bootstrap;
        this.exact = exact;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] args) throws Exception {
        Consumers run = new Consumers(args[0], args.length > 1 && args[1].equals("exact"));
        NewTopic narrow = new NewTopic(run.narrow, 1, (short) 1);
        run.admin.createTopics(List.of(new NewTopic(run.topic, 4, (short) 1), narrow)).all().get();
        run.produce(run.topic, 4, 400);
        run.produce(run.narrow, 1, 10);
        // All at a time: each has groups of its own, and mostly waits.
        List<Part> parts = new ArrayList<>(List.of(
                run::implicitMode,
                () -> run.explicitMode("batch_optimized"),
                run::lockExpiry,
                run::deliveryLimit,
                run::readCommitted,
                run::deadLetters,
                () -> run.administration(run.twoMembers())));
        if (run.newer) {
            parts.add(() -> run.explicitMode("record_limit"));
            parts.add(run::renewal);
        }
        ExecutorService threads = Executors.newFixedThreadPool(parts.size());
        List<Future<?>> running = new ArrayList<>();
        for (Part part : parts) {
            running.add(threads.submit(() -> {
                part.run();
                return null;
            }));
        }
        threads.shutdown();
        for (Future<?> part : running) {
            part.get();
        }
        run.admin.close();
        System.out.println("ok " + clients());
    }

    /** The release of the client classes. */
    private static String clients() {
        Properties version = new Properties();
        try (InputStream in = KafkaShareConsumer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            version.load(in);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return version.getProperty("version");
    }

    private void produce(String topic, int partitions, int count) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("linger.ms", "5");
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < count; n++) {
                producer.send(new ProducerRecord<>(topic, n % partitions, "key" + n, "value" + n));
            }
            producer.flush();
        }
    }

    /** A group that reads from the start, with further settings. */
    private String group(String... settings) throws Exception {
        String group = topic + "-" + groups.getAndIncrement();
        List<AlterConfigOp> ops = new ArrayList<>();
        ops.add(new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET));
        for (int at = 0; at < settings.length; at += 2) {
            ConfigEntry entry = new ConfigEntry(settings[at], settings[at + 1]);
            ops.add(new AlterConfigOp(entry, AlterConfigOp.OpType.SET));
        }
        Map<ConfigResource, Collection<AlterConfigOp>> change = new HashMap<>();
        change.put(new ConfigResource(ConfigResource.Type.GROUP, group), ops);
        admin.incrementalAlterConfigs(change).all().get();
        return group;
    }

    private KafkaShareConsumer<String, String> consumer(String group, String mode, String... settings) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", group);
        config.put("share.acknowledgement.mode", mode);
        for (int at = 0; at < settings.length; at += 2) {
            config.put(settings[at], settings[at + 1]);
        }
        var consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static String id(ConsumerRecord<String, String> record) {
        return record.partition() + "/" + record.offset();
    }

    private interface Part {
        void run() throws Exception;
    }

    private interface Step {
        boolean done() throws Exception;
    }

    private static void until(String what, Step step) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!step.done()) {
            check(System.currentTimeMillis() < end, what + ": not within " + PATIENCE_MS + " ms");
        }
    }

    private void implicitMode() throws Exception {
        String group = group();
        Set<String> seen = new TreeSet<>();
        try (var consumer = consumer(group, "implicit")) {
            until("implicit mode", () -> {
                for (var record : consumer.poll(POLL)) {
                    check(record.value().equals("value" + record.key().substring(3)), "values stay with their keys");
                    check(seen.add(id(record)), "delivered twice: " + id(record));
                }
                return seen.size() == 400;
            });
            for (Optional<KafkaException> result : consumer.commitSync().values()) {
                check(result.isEmpty(), "commit failed: " + result);
            }
        }
        try (var consumer = consumer(group, "implicit")) {
            for (int n = 0; n < 4; n++) {
                check(consumer.poll(POLL).isEmpty(), "accepted records came again");
            }
        }
    }

    private void explicitMode(String acquire) throws Exception {
        String group = group();
        Map<String, Short> released = new TreeMap<>();
        Set<String> rejected = new TreeSet<>();
        Set<String> accepted = new TreeSet<>();
        List<Exception> failures = new ArrayList<>();
        int limit = 40;
        String[] settings = {"max.poll.records", "" + limit, "share.acquire.mode", acquire};
        try (var consumer = consumer(group, "explicit", newer ? settings : Arrays.copyOf(settings, 2))) {
            consumer.setAcknowledgementCommitCallback((offsets, exception) -> {
                if (exception != null) {
                    failures.add(exception);
                }
            });
            until(acquire, () -> {
                ConsumerRecords<String, String> records = consumer.poll(POLL);
                check(!acquire.equals("record_limit") || records.count() <= limit, records.count() + " records");
                for (var record : records) {
                    check(!accepted.contains(id(record)) && !rejected.contains(id(record)), "again: " + id(record));
                    short count = record.deliveryCount().orElseThrow();
                    if (record.offset() % 10 == 3) {
                        consumer.acknowledge(record, AcknowledgeType.REJECT);
                        rejected.add(id(record));
                    } else if (record.offset() % 10 == 7 && count == 1) {
                        consumer.acknowledge(record, AcknowledgeType.RELEASE);
                        released.put(id(record), count);
                    } else {
                        int most = released.containsKey(id(record)) ? 2 : 1;
                        check(count == most || !exact && count < most, id(record) + " delivery " + count);
                        consumer.acknowledge(record);
                        accepted.add(id(record));
                    }
                }
                for (Optional<KafkaException> result : consumer.commitSync().values()) {
                    check(result.isEmpty(), "commit failed: " + result);
                }
                return accepted.size() + rejected.size() == 400;
            });
            check(released.size() == 40 && rejected.size() == 40, released.size() + " released");
            check(accepted.containsAll(released.keySet()), "released records come again");
        }
        check(failures.isEmpty(), "acknowledgements failed: " + failures);
    }

    private void renewal() throws Exception {
        String group = group("share.record.lock.duration.ms", "15000");
        try (var consumer = consumer(group, "explicit")) {
            List<ConsumerRecord<String, String>> first = some(consumer);
            for (var record : first) {
                consumer.acknowledge(record, AcknowledgeType.RENEW);
            }
            for (Optional<KafkaException> result : consumer.commitSync().values()) {
                check(result.isEmpty(), "renewal failed: " + result);
            }
            check(consumer.acquisitionLockTimeoutMs().orElseThrow() == 15_000, "lock timeout");
            Set<String> renewed = new TreeSet<>();
            first.forEach(record -> renewed.add(id(record)));
            until("renewed records are handed out again", () -> {
                for (var record : consumer.poll(POLL)) {
                    renewed.remove(id(record));
                    consumer.acknowledge(record);
                }
                consumer.commitSync();
                return renewed.isEmpty();
            });
        }
    }

    private List<ConsumerRecord<String, String>> some(KafkaShareConsumer<String, String> consumer) throws Exception {
        List<ConsumerRecord<String, String>> got = new ArrayList<>();
        until("records", () -> {
            consumer.poll(POLL).forEach(got::add);
            return !got.isEmpty();
        });
        return got;
    }

    private void lockExpiry() throws Exception {
        String group = group("share.record.lock.duration.ms", "15000");
        try (var slow = consumer(group, "explicit"); var other = consumer(group, "explicit")) {
            slow.subscribe(List.of(narrow));
            other.subscribe(List.of(narrow));
            List<ConsumerRecord<String, String>> held = some(slow);
            Set<String> missing = new TreeSet<>();
            held.forEach(record -> missing.add(id(record)));
            until("records whose lock is over come to another member", () -> {
                for (var record : other.poll(POLL)) {
                    if (missing.remove(id(record))) {
                        // On a machine that is busy enough the lock may end once more on the way.
                        int count = record.deliveryCount().orElseThrow();
                        check(count >= 2 || !exact, "delivered for the first time again: count " + count);
                    }
                    other.acknowledge(record);
                }
                return missing.isEmpty();
            });
            other.commitSync();
            List<Exception> told = new ArrayList<>();
            slow.setAcknowledgementCommitCallback((offsets, exception) -> told.add(exception));
            for (var record : held) {
                slow.acknowledge(record);
            }
            // Below the start offset the broker has nothing to object; above it the lock is lost.
            Map<TopicIdPartition, Optional<KafkaException>> results = slow.commitSync();
            check(!results.isEmpty(), "a late acknowledgement has a result");
            until("the callback is called", () -> {
                slow.poll(Duration.ZERO);
                return !told.isEmpty();
            });
        }
    }

    /** A record is handed out so often and no more, and its neighbours of the same batch do not suffer. */
    private void deliveryLimit() throws Exception {
        String group;
        int limit = 3;
        try {
            group = group("share.delivery.count.limit", "3");
        } catch (ExecutionException e) {
            // Brokers before 4.3 have one limit for all groups.
            check(e.getCause().getMessage().contains("Unknown group config"), e.toString());
            group = group();
            limit = 5;
        }
        int deliveries = 0;
        Set<Long> accepted = new TreeSet<>();
        try (var consumer = consumer(group, "explicit")) {
            consumer.subscribe(List.of(narrow));
            long quiet = 0;
            while (accepted.size() < 9 || quiet < 3) {
                var records = consumer.poll(POLL);
                quiet = records.isEmpty() ? quiet + 1 : 0;
                for (var record : records) {
                    boolean bad = record.offset() == 4;
                    deliveries += bad ? 1 : 0;
                    check(bad || accepted.add(record.offset()), "again: " + record.offset());
                    consumer.acknowledge(record, bad ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                }
                consumer.commitSync();
                check(deliveries <= limit || !exact, "delivered " + deliveries + " times");
            }
        }
        check((exact ? deliveries == limit : deliveries > 1) && accepted.size() == 9, deliveries + " deliveries, " + accepted.size() + " accepted");
    }

    /** Rejected records are written to the group's dead letter queue, where the broker has them (from 4.4 on). */
    private void deadLetters() throws Exception {
        String queue = "dlq." + topic;
        NewTopic letters = new NewTopic(queue, 1, (short) 1);
        final String group;
        try {
            group = group("errors.deadletterqueue.topic.name", queue, "errors.deadletterqueue.copy.record.enable", "true");
            admin.createTopics(List.of(letters.configs(Map.of("errors.deadletterqueue.group.enable", "true")))).all().get();
        } catch (ExecutionException e) {
            check(e.getCause().getMessage().contains("Unknown") && !clients().startsWith("4.4."), e.toString());
            return;
        }
        try (var consumer = consumer(group, "explicit")) {
            consumer.subscribe(List.of(narrow));
            Set<Long> seen = new TreeSet<>();
            until("ten records", () -> {
                for (var record : consumer.poll(POLL)) {
                    boolean bad = record.offset() % 4 == 1;
                    consumer.acknowledge(record, bad ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
                    seen.add(record.offset());
                }
                consumer.commitSync();
                return seen.size() == 10;
            });
        }
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        try (var reader = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            TopicPartition partition = new TopicPartition(queue, 0);
            reader.assign(List.of(partition));
            reader.seekToBeginning(List.of(partition));
            List<String> got = new ArrayList<>();
            until("dead letters", () -> {
                for (var record : reader.poll(POLL)) {
                    Map<String, String> headers = new TreeMap<>();
                    record.headers().forEach(h -> headers.put(h.key(), new String(h.value(), StandardCharsets.UTF_8)));
                    check(narrow.equals(headers.get("__dlq.errors.topic")), "headers: " + headers);
                    check(group.equals(headers.get("__dlq.errors.group")), "headers: " + headers);
                    check(headers.get("__dlq.errors.delivery.count").equals("1"), "headers: " + headers);
                    got.add(headers.get("__dlq.errors.offset") + record.key() + record.value());
                }
                return got.size() >= 3;
            });
            got.sort(null);
            check(got.equals(List.of("1key1value1", "5key5value5", "9key9value9")), "dead letters: " + got);
        }
    }

    private void readCommitted() throws Exception {
        String committed = topic + "-committed";
        admin.createTopics(List.of(new NewTopic(committed, 1, (short) 1))).all().get();
        String group = group("share.isolation.level", "read_committed");
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("transactional.id", committed);
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
                var consumer = consumer(group, "implicit")) {
            consumer.subscribe(List.of(committed));
            producer.initTransactions();
            for (String fate : List.of("abort", "commit", "abort", "commit")) {
                producer.beginTransaction();
                for (int n = 0; n < 5; n++) {
                    producer.send(new ProducerRecord<>(committed, fate));
                }
                if (fate.equals("commit")) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(committed, "open")).get();
            List<String> seen = new ArrayList<>();
            until("committed records", () -> {
                consumer.poll(POLL).forEach(record -> seen.add(record.value()));
                return seen.size() >= 10;
            });
            consumer.poll(POLL).forEach(record -> seen.add(record.value()));
            check(seen.equals(Collections.nCopies(10, "commit")), "seen: " + seen);
            producer.abortTransaction();
        }
    }

    /** Gives the group. */
    private String twoMembers() throws Exception {
        String group = group();
        Set<String> seen = new TreeSet<>();
        try (var a = consumer(group, "implicit", "max.poll.records", "10");
                var b = consumer(group, "implicit", "max.poll.records", "10")) {
            until("two members", () -> {
                for (var consumer : List.of(a, b)) {
                    for (var record : consumer.poll(Duration.ofMillis(100))) {
                        check(seen.add(id(record)), "delivered twice: " + id(record));
                    }
                }
                return seen.size() == 400;
            });
            ShareGroupDescription description = admin.describeShareGroups(List.of(group)).all().get().get(group);
            check(description.members().size() == 2, description.toString());
            check(description.groupState().toString().equals("Stable"), description.toString());
            a.commitSync();
            b.commitSync();
        }
        return group;
    }

    private void administration(String group) throws Exception {
        Collection<GroupListing> listed = admin.listGroups().all().get();
        check(listed.stream().anyMatch(found -> found.groupId().equals(group)), "listed: " + listed);
        TopicPartition partition = new TopicPartition(topic, 0);
        var spec = new ListShareGroupOffsetsSpec().topicPartitions(List.of(partition));
        until("lag", () -> {
            if (!newer) {
                return true;
            }
            Map<TopicPartition, SharePartitionOffsetInfo> offsets =
                    admin.listShareGroupOffsets(Map.of(group, spec)).partitionsToOffsetInfo(group).get();
            return offsets.get(partition).lag().orElse(-1L) == 0;
        });
        until("the group is empty", () -> {
            Thread.sleep(100);
            var description = admin.describeShareGroups(List.of(group)).all().get().get(group);
            return description.groupState().toString().equals("Empty");
        });
        admin.alterShareGroupOffsets(group, Map.of(partition, 90L)).all().get();
        Set<String> seen = new TreeSet<>();
        try (var consumer = consumer(group, "implicit")) {
            // The leaders of a 4.1 cluster go on with what they have in memory.
            until("records from the new start offset", () -> {
                consumer.poll(POLL).forEach(record -> seen.add(id(record)));
                return seen.size() == 10 || !newer;
            });
            consumer.commitSync();
        }
        admin.deleteShareGroupOffsets(group, Set.of(topic)).all().get();
        admin.deleteShareGroups(List.of(group)).all().get();
    }
}
