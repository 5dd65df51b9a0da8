package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;

/** Makes one random value of a message, holding just the fields of a version, in the form Kafka's JSON readers take. */
final class Values {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final int[] STRING_SIZES = {127, 128, 300, 16383, 16384, 32766, 32767};
    private static final int[] BYTES_SIZES = {127, 128, 300, 16383, 16384, 32767, 32768, 70000};
    private static final int[] ARRAY_SIZES = {126, 127, 128, 300};
    private static final String[] WORDS = {"a", "topic-1", "__share_group_state", "größe", "日本語", "𝄞𝄢", "\u0000", " x\ny "};

    private final Spec spec;
    private final short version;
    private final Random random;
    private final Style style;
    private int largeLeft;

    Values(Spec spec, short version, Random random, Style style) {
        this.spec = spec;
        this.version = version;
        this.random = random;
        this.style = style;
        this.largeLeft = style == Style.LARGE ? 2 : 0;
    }

    ObjectNode struct(JsonNode fields) {
        ObjectNode node = JSON.objectNode();
        for (JsonNode field : fields) {
            boolean tagged = Spec.contains(field.path("taggedVersions").asText("none"), version);
            if (Spec.present(field, version) && !(tagged && leaveOut())) {
                node.set(Spec.javaName(field), value(field));
            }
        }
        return node;
    }

    private boolean leaveOut() {
        return switch (style) {
            case EMPTY -> true;
            case EXTREMES, NULLS -> false;
            default -> random.nextInt(3) == 0;
        };
    }

    private JsonNode value(JsonNode field) {
        if (Spec.contains(field.path("nullableVersions").asText("none"), version) && makeNull()) {
            return JSON.nullNode();
        }
        String type = field.get("type").asText();
        return type.startsWith("[]") ? array(field, type.substring(2)) : single(field, type);
    }

    private boolean makeNull() {
        return switch (style) {
            case NULLS -> true;
            case EMPTY, EXTREMES -> false;
            default -> random.nextInt(4) == 0;
        };
    }

    private ArrayNode array(JsonNode field, String type) {
        ArrayNode node = JSON.arrayNode();
        boolean plain = type.startsWith("int");
        int size = switch (style) {
            case EMPTY -> 0;
            case NULLS, LARGE -> 1 + random.nextInt(2);
            case EXTREMES -> 3;
            case LONG_ARRAYS -> plain ? ARRAY_SIZES[random.nextInt(ARRAY_SIZES.length)] : 2;
            case MIXED -> random.nextInt(4);
        };
        for (int i = 0; i < size; i++) {
            node.add(single(field, type));
        }
        return node;
    }

    private JsonNode single(JsonNode field, String type) {
        return switch (type) {
            case "bool" -> JSON.booleanNode(style != Style.EMPTY && random.nextBoolean());
            case "int8" -> JSON.numberNode((byte) integer(Byte.MIN_VALUE, Byte.MAX_VALUE));
            case "int16" -> JSON.numberNode((short) integer(Short.MIN_VALUE, Short.MAX_VALUE));
            case "uint16" -> JSON.numberNode((int) integer(0, 0xffff));
            case "int32" -> JSON.numberNode((int) integer(Integer.MIN_VALUE, Integer.MAX_VALUE));
            case "uint32" -> JSON.numberNode(integer(0, 0xffff_ffffL));
            case "int64" -> JSON.numberNode(integer(Long.MIN_VALUE, Long.MAX_VALUE));
            case "float64" -> JSON.numberNode(style == Style.EMPTY ? 0.0 : random.nextGaussian() * 1e9);
            case "uuid" -> JSON.textNode(uuid().toString());
            case "string" -> JSON.textNode(string());
            case "bytes" -> JSON.binaryNode(bytes());
            case "records" -> JSON.binaryNode(random.nextBoolean() ? bytes() : batch());
            default -> struct(spec.structFields(field));
        };
    }

    private long integer(long min, long max) {
        if (style == Style.EMPTY) {
            return 0;
        }
        return switch (random.nextInt(style == Style.EXTREMES ? 2 : 6)) {
            case 0 -> min;
            case 1 -> max;
            case 2 -> Math.max(min, -1);
            case 3 -> random.nextInt(128);
            // Math.floorMod of the whole long range has no divisor; the cast at the call cuts a wide value to its type.
            default -> min == 0 ? random.nextLong() & max : random.nextLong();
        };
    }

    private Uuid uuid() {
        return switch (style == Style.EMPTY ? 0 : random.nextInt(5)) {
            case 0 -> Uuid.ZERO_UUID;
            case 1 -> new Uuid(-1L, -1L);
            default -> new Uuid(random.nextLong(), random.nextLong());
        };
    }

    private String string() {
        if (style == Style.EMPTY) {
            return "";
        }
        if (largeLeft > 0 && random.nextInt(3) > 0) {
            largeLeft--;
            return sized(STRING_SIZES[random.nextInt(STRING_SIZES.length)]);
        }
        return switch (random.nextInt(4)) {
            case 0 -> "";
            case 1 -> sized(1 + random.nextInt(20));
            default -> WORDS[random.nextInt(WORDS.length)];
        };
    }

    /** A string of exactly that many UTF-8 bytes, with multi-byte characters where they fit. */
    private String sized(int bytes) {
        StringBuilder text = new StringBuilder();
        int left = bytes;
        while (left > 0) {
            String next = left >= 4 && random.nextInt(16) == 0 ? "𝄞" : left >= 2 && random.nextInt(8) == 0 ? "é" : "x";
            text.append(next);
            left -= next.getBytes(StandardCharsets.UTF_8).length;
        }
        return text.toString();
    }

    private byte[] bytes() {
        int size = 0;
        if (largeLeft > 0) {
            largeLeft--;
            size = BYTES_SIZES[random.nextInt(BYTES_SIZES.length)];
        } else if (style != Style.EMPTY) {
            size = random.nextInt(20);
        }
        byte[] bytes = new byte[size];
        random.nextBytes(bytes);
        return bytes;
    }

    private byte[] batch() {
        if (style == Style.EMPTY) {
            return new byte[0];
        }
        SimpleRecord[] records = new SimpleRecord[1 + random.nextInt(3)];
        for (int i = 0; i < records.length; i++) {
            records[i] = new SimpleRecord(random.nextInt(1 << 30), bytes(), bytes());
        }
        ByteBuffer buffer = MemoryRecords.withRecords(Compression.NONE, records).buffer();
        byte[] batch = new byte[buffer.remaining()];
        buffer.duplicate().get(batch);
        return batch;
    }
}
