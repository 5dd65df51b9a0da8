package oracle;

import java.io.BufferedWriter;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HexFormat;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Prints what kafka-clients knows beside the layout of messages, one fact a line.
 *
 * <ul>
 *   <li>{@code header KEY VERSION REQUEST_HEADER_VERSION RESPONSE_HEADER_VERSION}
 *   <li>{@code error CODE NAME RETRIABLE REFRESHES_METADATA}
 *   <li>{@code default KIND KEY VERSION HEX}: an unfilled message; {@code -} for no bytes, {@code refused} where the
 *       version cannot carry the defaults
 *   <li>{@code consumer NAME}, {@code producer NAME}: a property of that client
 *   <li>{@code unshared NAME}: a property of consumers that share consumers refuse
 * </ul>
 *
 * <p>Usage: {@code oracle.Facts OUT SPEC_DIR}
 */
public final class Facts {
    private Facts() {}

    public static void main(String[] args) throws Exception {
        if (args.length != 2) {
            System.err.println("usage: oracle.Facts OUT SPEC_DIR");
            System.exit(2);
        }
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(args[0]))) {
            for (Spec spec : Spec.namedIn(Path.of(args[1]))) {
                for (short version = spec.lowest(); version <= spec.highest(); version++) {
                    if (spec.kind().equals("request")) {
                        ApiKeys api = ApiKeys.forId(spec.key());
                        out.write("header " + spec.key() + " " + version + " " + api.requestHeaderVersion(version));
                        out.write(" " + api.responseHeaderVersion(version) + "\n");
                    }
                    out.write("default " + spec.kind() + " " + spec.key() + " " + version);
                    out.write(" " + unfilled(spec, version) + "\n");
                }
            }
            for (Errors error : Errors.values()) {
                boolean retriable = error.exception() instanceof RetriableException;
                boolean refreshes = error.exception() instanceof InvalidMetadataException;
                out.write("error " + error.code() + " " + error.name() + " " + retriable + " " + refreshes + "\n");
            }
            writeNames(out, "consumer", ConsumerConfig.configNames());
            writeNames(out, "producer", ProducerConfig.configNames());
            writeNames(out, "unshared", refusedByShareConsumers());
        }
    }

    private static void writeNames(BufferedWriter out, String kind, Collection<String> names) throws IOException {
        for (String name : new TreeSet<>(names)) {
            out.write(kind + " " + name + "\n");
        }
    }

    /** The list is not public. */
    @SuppressWarnings("unchecked")
    private static Collection<String> refusedByShareConsumers() throws ReflectiveOperationException {
        Class<?> config = Class.forName("org.apache.kafka.clients.consumer.ShareConsumerConfig");
        Field field = config.getDeclaredField("SHARE_GROUP_UNSUPPORTED_CONFIGS");
        field.setAccessible(true);
        return (Collection<String>) field.get(null);
    }

    private static String unfilled(Spec spec, short version) throws ReflectiveOperationException {
        Class<?> data = Class.forName("org.apache.kafka.common.message." + spec.name() + "Data");
        Message message = (Message) data.getConstructor().newInstance();
        ByteBuffer buffer;
        try {
            buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        } catch (RuntimeException e) {
            return "refused";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes.length == 0 ? "-" : HexFormat.of().formatHex(bytes);
    }
}
