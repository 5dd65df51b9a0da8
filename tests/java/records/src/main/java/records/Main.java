package records;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Writes record batches as {@code java-*.bin} into a folder, then describes every {@code *.bin} there in a
 * {@code .txt} beside it: one line per batch and one per record.
 */
public final class Main {
    private static final long TIMESTAMP = 1_700_000_000_000L;
    private static final int RECORDS = 3_000;

    public static void main(String[] args) throws IOException {
        Path folder = Path.of(args[0]);
        for (Map.Entry<String, Compression> codec : codecs().entrySet()) {
            write(folder.resolve("java-" + codec.getKey() + ".bin"), data(codec.getValue()));
        }
        for (ControlRecordType type : List.of(ControlRecordType.COMMIT, ControlRecordType.ABORT)) {
            EndTransactionMarker marker = new EndTransactionMarker(type, 31);
            MemoryRecords records =
                MemoryRecords.withEndTransactionMarker(50L, TIMESTAMP, 7, 4_000L, (short) 2, marker);
            write(folder.resolve("java-" + type.name().toLowerCase() + ".bin"), records);
        }
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.filter(f -> f.toString().endsWith(".bin")).sorted().toList()) {
                Files.writeString(Path.of(file.toString().replace(".bin", ".txt")), describe(file));
            }
        }
    }

    private static Map<String, Compression> codecs() {
        Map<String, Compression> codecs = new LinkedHashMap<>();
        codecs.put("none", Compression.NONE);
        codecs.put("gzip", Compression.gzip().build());
        codecs.put("snappy", Compression.snappy().build());
        codecs.put("lz4", Compression.lz4().build());
        codecs.put("zstd", Compression.zstd().build());
        codecs.put("gzip-level-1", Compression.gzip().level(1).build());
        codecs.put("lz4-level-17", Compression.lz4().level(17).build());
        codecs.put("zstd-level-22", Compression.zstd().level(22).build());
        return codecs;
    }

    private static MemoryRecords data(Compression compression) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 20);
        MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.MAGIC_VALUE_V2, compression,
            TimestampType.CREATE_TIME, 100L, RecordBatch.NO_TIMESTAMP, 4_000L, (short) 2, 5, true, 7);
        for (int index = 0; index < RECORDS; index++) {
            builder.appendWithOffset(100L + index, TIMESTAMP + (index * 7919L) % 5_000, key(index), value(index),
                headers(index));
        }
        return builder.build();
    }

    private static byte[] key(int index) {
        return index % 3 == 0 ? null : ("key-" + index % 50).getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] value(int index) {
        if (index % 11 == 0) {
            return null;
        }
        byte[] value = new byte[index % 400];
        for (int at = 0; at < value.length; at++) {
            value[at] = (byte) (at % 2 == 0 ? 'a' + at % 20 : (index * 31 + at * at) % 251);
        }
        return value;
    }

    private static Header[] headers(int index) {
        Header[] headers = {
            new RecordHeader("x", new byte[] {1}),
            new RecordHeader("x", (byte[]) null),
            new RecordHeader("y", new byte[0]),
            new RecordHeader("x", new byte[] {(byte) index}),
        };
        return Arrays.copyOf(headers, index % 5);
    }

    private static void write(Path file, MemoryRecords records) throws IOException {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        Files.write(file, bytes);
    }

    private static String describe(Path file) throws IOException {
        StringBuilder out = new StringBuilder();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file))).batches()) {
            batch.ensureValid();
            out.append(String.format("batch %d %d epoch %d producer %d %d %d %s time %s %d transactional %b control %b%n",
                batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch(), batch.producerId(),
                batch.producerEpoch(), batch.baseSequence(), batch.compressionType().name, batch.timestampType(),
                batch.maxTimestamp(), batch.isTransactional(), batch.isControlBatch()));
            for (Record record : batch) {
                record.ensureValid();
                out.append(record.offset()).append(' ').append(record.timestamp()).append(' ');
                out.append(hex(record.key())).append(' ').append(hex(record.value()));
                for (Header header : record.headers()) {
                    byte[] value = header.value();
                    out.append(' ').append(header.key()).append('=').append(hex(value == null ? null : ByteBuffer.wrap(value)));
                }
                out.append('\n');
            }
        }
        return out.toString();
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null) {
            return "null";
        }
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return "[" + HexFormat.of().formatHex(copy) + "]";
    }
}
