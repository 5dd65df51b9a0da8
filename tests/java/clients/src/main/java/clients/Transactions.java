package clients;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What an ordinary Java application does with topics, producers, transactions and assigned consumers. Ends with exit code
 * 0 if all of it came out right. Runs against any cluster: Transactions BOOTSTRAP-SERVERS
 */
public final class Transactions {
    private static final int TIMEOUT_MS = 20_000;

    private final String servers;
    private final String topic = "java-" + UUID.randomUUID();
    private final Admin admin;

    private Transactions(String servers) {
        this.servers = servers;
        this.admin = Admin.create(base());
    }

    public static void main(String[] args) throws Exception {
        Transactions run = new Transactions(args[0]);
        stage("topics", run::topics);
        stage("idempotent", run::idempotent);
        stage("compressed", run::compressed);
        stage("configs", run::configs);
        stage("transactions", run::transactions);
        stage("concurrent", run::concurrent);
        stage("fencing", run::fencing);
        stage("timedOut", run::timedOut);
        stage("offsetsAndDeletion", run::offsetsAndDeletion);
        run.admin.close();
        System.out.println("ok");
    }

    private static void stage(String name, Call call) throws Exception {
        long start = System.nanoTime();
        call.run();
        System.out.println(name + " " + (System.nanoTime() - start) / 1_000_000 + " ms");
    }

    private void topics() throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all().get();
        expect(TopicExistsException.class,
            () -> admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all().get());
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        eventually("three partitions",
            () -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 3);
        eventually("listed", () -> admin.listTopics().names().get().contains(topic));
        check(!admin.describeCluster().nodes().get().isEmpty(), "nodes");
    }

    private void idempotent() throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(base())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < 5_000; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, 0, "k" + i, "v" + i)));
            }
            for (int i = 0; i < sent.size(); i++) {
                check(sent.get(i).get().offset() == i, "offset of record " + i);
            }
            expect(RecordTooLargeException.class,
                () -> producer.send(new ProducerRecord<>(topic, 0, "k", "x".repeat(2_000_000))).get());
        }
        List<ConsumerRecord<String, String>> read = read(0, false);
        check(read.size() == 5_000, "read " + read.size());
        for (int i = 0; i < read.size(); i++) {
            check(read.get(i).value().equals("v" + i) && read.get(i).offset() == i, "order at " + i);
        }
    }

    private void compressed() throws Exception {
        long before = end(2, false);
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
            Properties config = base();
            config.put("compression.type", codec);
            config.put("acks", "all");
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
                for (int i = 0; i < 100; i++) {
                    producer.send(new ProducerRecord<>(topic, 2, null, codec + i));
                }
                producer.flush();
            }
        }
        check(end(2, false) == before + 400, "compressed end");
        check(read(2, false).get(399).value().equals("zstd99"), "compressed value");
    }

    private void configs() throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        alter(resource, "retention.ms", "123456789");
        eventually("retention", () -> config(resource, "retention.ms").equals("123456789"));
        expect(InvalidConfigurationException.class, () -> alter(resource, "cleanup.policy", "shred"));
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "group-" + topic);
        alter(group, "share.auto.offset.reset", "earliest");
        eventually("offset reset", () -> config(group, "share.auto.offset.reset").equals("earliest"));
        expect(InvalidConfigurationException.class, () -> alter(group, "share.delivery.count.limit", "1"));
    }

    private void transactions() throws Exception {
        String id = "txn-" + topic;
        try (KafkaProducer<String, String> producer = transactional(id, 60_000)) {
            producer.initTransactions();
            for (int n = 0; n < 6; n++) {
                producer.beginTransaction();
                for (int i = 0; i < 10; i++) {
                    producer.send(new ProducerRecord<>(topic, 1, null, "t" + n + "-" + i));
                }
                producer.flush();
                TransactionDescription open = admin.describeTransactions(List.of(id)).description(id).get();
                check(open.state() == TransactionState.ONGOING, "state " + open.state());
                check(open.topicPartitions().equals(Set.of(new TopicPartition(topic, 1))), "members");
                check(end(1, true) < end(1, false), "stable offset while open");
                if (n % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
            producer.beginTransaction();
            producer.commitTransaction();
        }
        List<String> committed = read(1, true).stream().map(ConsumerRecord::value).toList();
        List<String> expected = new ArrayList<>();
        for (int n = 0; n < 6; n += 2) {
            for (int i = 0; i < 10; i++) {
                expected.add("t" + n + "-" + i);
            }
        }
        check(committed.equals(expected), "committed records: " + committed);
        check(read(1, false).size() == 60, "all records");
        check(end(1, true) == end(1, false), "stable offset at the end");
        check(admin.listTransactions().all().get().stream().anyMatch(t -> t.transactionalId().equals(id)), "listed txn");
        check(!admin.describeProducers(List.of(new TopicPartition(topic, 1))).all().get().isEmpty(), "producers");
    }

    /** Producers whose transactions interleave in one partition: a reader sees whole transactions, each once, or nothing. */
    private void concurrent() throws Exception {
        String shared = topic + "-shared";
        admin.createTopics(List.of(new NewTopic(shared, 1, (short) 1))).all().get();
        int producers = 4;
        int rounds = 15;
        ExecutorService threads = Executors.newFixedThreadPool(producers);
        List<Future<?>> running = new ArrayList<>();
        for (int p = 0; p < producers; p++) {
            int number = p;
            running.add(threads.submit(() -> {
                try (KafkaProducer<String, String> producer = transactional("concurrent-" + number + "-" + topic, 60_000)) {
                    producer.initTransactions();
                    for (int round = 0; round < rounds; round++) {
                        producer.beginTransaction();
                        boolean commit = (round + number) % 3 != 0;
                        for (int i = 0; i < 5; i++) {
                            producer.send(new ProducerRecord<>(shared, 0, null, number + "-" + round + (commit ? "" : "-not")));
                        }
                        producer.flush();
                        if (commit) {
                            producer.commitTransaction();
                        } else {
                            producer.abortTransaction();
                        }
                    }
                }
            }));
        }
        for (Future<?> one : running) {
            one.get();
        }
        threads.shutdown();
        TopicPartition partition = new TopicPartition(shared, 0);
        check(end(partition, true) == end(partition, false), "stable offset after concurrent transactions");
        Map<String, Integer> seen = new HashMap<>();
        read(partition, true).forEach(record -> seen.merge(record.value(), 1, Integer::sum));
        check(seen.size() == producers * rounds * 2 / 3, seen.size() + " transactions: " + seen);
        check(seen.values().stream().allMatch(count -> count == 5), "torn or doubled: " + seen);
        check(seen.keySet().stream().noneMatch(value -> value.endsWith("-not")), "aborted records: " + seen);
    }

    private void fencing() {
        String id = "fence-" + topic;
        try (KafkaProducer<String, String> old = transactional(id, 60_000);
            KafkaProducer<String, String> fresh = transactional(id, 60_000)) {
            old.initTransactions();
            old.beginTransaction();
            old.send(new ProducerRecord<>(topic, 1, null, "from the fenced one"));
            old.flush();
            fresh.initTransactions();
            fresh.beginTransaction();
            fresh.send(new ProducerRecord<>(topic, 1, null, "from the new one"));
            fresh.commitTransaction();
            expect(ProducerFencedException.class, old::commitTransaction);
        }
        List<String> values = read(1, true).stream().map(ConsumerRecord::value).toList();
        check(values.contains("from the new one") && !values.contains("from the fenced one"), "fenced records");
    }

    private void timedOut() throws Exception {
        String id = "slow-" + topic;
        try (KafkaProducer<String, String> producer = transactional(id, 1_000)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 1, null, "too late"));
            producer.flush();
            long deadline = System.nanoTime() + Duration.ofSeconds(40).toNanos();
            while (admin.describeTransactions(List.of(id)).description(id).get().state() != TransactionState.COMPLETE_ABORT) {
                check(System.nanoTime() < deadline, "the transaction does not time out");
                Thread.sleep(100);
            }
            check(end(1, true) == end(1, false), "stable offset after the timeout");
            try {
                producer.commitTransaction();
                check(false, "a transaction that timed out was committed");
            } catch (org.apache.kafka.common.KafkaException expected) {
                // Which one depends on the transaction version.
            }
        }
        check(read(1, true).stream().noneMatch(r -> r.value().equals("too late")), "late record");
    }

    private void offsetsAndDeletion() throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        long start = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(1_000))).lowWatermarks()
            .get(partition).get().lowWatermark();
        check(start == 1_000 && offset(0, OffsetSpec.earliest()) == 1_000, "start after deletion " + start);
        check(offset(0, OffsetSpec.latest()) == 5_000, "latest");
        check(offset(0, OffsetSpec.forTimestamp(0)) == 1_000, "by time");
        check(offset(0, OffsetSpec.maxTimestamp()) >= 1_000, "max timestamp");
        check(read(0, false).get(0).offset() == 1_000, "first record after deletion");
        admin.deleteTopics(List.of(topic)).all().get();
        eventually("deleted", () -> !admin.listTopics().names().get().contains(topic));
        expect(UnknownTopicOrPartitionException.class,
            () -> admin.describeTopics(List.of(topic)).allTopicNames().get());
    }

    private List<ConsumerRecord<String, String>> read(int partition, boolean committed) {
        return read(new TopicPartition(topic, partition), committed);
    }

    private List<ConsumerRecord<String, String>> read(TopicPartition tp, boolean committed) {
        Properties config = base();
        config.put("isolation.level", committed ? "read_committed" : "read_uncommitted");
        List<ConsumerRecord<String, String>> all = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            consumer.assign(List.of(tp));
            consumer.seekToBeginning(List.of(tp));
            long end = consumer.endOffsets(List.of(tp)).get(tp);
            long deadline = System.nanoTime() + Duration.ofMillis(TIMEOUT_MS).toNanos();
            while (consumer.position(tp) < end) {
                check(System.nanoTime() < deadline, "reader stuck at " + consumer.position(tp) + " of " + end);
                consumer.poll(Duration.ofMillis(200)).forEach(all::add);
            }
        }
        return all;
    }

    private long end(int partition, boolean committed) {
        return end(new TopicPartition(topic, partition), committed);
    }

    private long end(TopicPartition tp, boolean committed) {
        Properties config = base();
        config.put("isolation.level", committed ? "read_committed" : "read_uncommitted");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            return consumer.endOffsets(List.of(tp)).get(tp);
        }
    }

    private long offset(int partition, OffsetSpec spec) throws Exception {
        TopicPartition tp = new TopicPartition(topic, partition);
        return admin.listOffsets(Map.of(tp, spec)).partitionResult(tp).get().offset();
    }

    private void alter(ConfigResource resource, String name, String value) throws Exception {
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(new HashMap<>(Map.of(resource, List.of(op)))).all().get();
    }

    private KafkaProducer<String, String> transactional(String id, int timeoutMs) {
        Properties config = base();
        config.put("transactional.id", id);
        config.put("transaction.timeout.ms", timeoutMs);
        return new KafkaProducer<>(config);
    }

    private Properties base() {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("key.serializer", StringSerializer.class.getName());
        config.put("value.serializer", StringSerializer.class.getName());
        config.put("key.deserializer", StringDeserializer.class.getName());
        config.put("value.deserializer", StringDeserializer.class.getName());
        config.put("max.request.size", 10_000_000);
        config.put("request.timeout.ms", TIMEOUT_MS / 2);
        config.put("delivery.timeout.ms", TIMEOUT_MS);
        config.put("max.block.ms", TIMEOUT_MS);
        config.put("default.api.timeout.ms", TIMEOUT_MS);
        return config;
    }

    private interface Call {
        void run() throws Exception;
    }

    private static void expect(Class<? extends Exception> type, Call call) {
        Optional<Throwable> thrown = Optional.empty();
        try {
            call.run();
        } catch (ExecutionException e) {
            thrown = Optional.of(e.getCause());
        } catch (Exception e) {
            thrown = Optional.of(e);
        }
        check(thrown.filter(type::isInstance).isPresent(), "expected " + type.getSimpleName() + ", got " + thrown);
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    /** A real cluster's nodes learn of changes a little later than they are confirmed. */
    private static void eventually(String what, Condition condition) throws Exception {
        long deadline = System.nanoTime() + Duration.ofMillis(TIMEOUT_MS).toNanos();
        while (!condition.holds()) {
            check(System.nanoTime() < deadline, what);
            Thread.sleep(20);
        }
    }

    private String config(ConfigResource resource, String name) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name).value();
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}
