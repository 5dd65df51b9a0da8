package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedWriter;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Random;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Prints golden bytes of Kafka messages: {@code kind key version hex}, one vector a line; {@code -} for no bytes.
 *
 * <p>Usage: {@code oracle.Main OUT SEED COUNT SPEC_DIR}. The messages are those named in SPEC_DIR; their fields and
 * versions come from the specs inside kafka-clients, and a spec of SPEC_DIR that says anything else is an error.
 */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        if (args.length != 4) {
            System.err.println("usage: oracle.Main OUT SEED COUNT SPEC_DIR");
            System.exit(2);
        }
        long seed = Long.parseLong(args[1]);
        int count = Integer.parseInt(args[2]);
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(args[0]))) {
            for (Spec spec : Spec.namedIn(Path.of(args[3]))) {
                for (short version = spec.lowest(); version <= spec.highest(); version++) {
                    // A seed per message and version: adding a message does not change the others' vectors.
                    Random random = new Random(seed ^ ((long) spec.name().hashCode() << 20) ^ version);
                    for (int i = 0; i < count; i++) {
                        out.write(spec.kind() + " " + spec.key() + " " + version + " ");
                        byte[] bytes = vector(spec, version, random, i);
                        out.write(bytes.length == 0 ? "-" : HexFormat.of().formatHex(bytes));
                        out.newLine();
                    }
                }
            }
        }
    }

    private static byte[] vector(Spec spec, short version, Random random, int index) throws Exception {
        Values values = new Values(spec, version, random, Style.of(index));
        JsonNode json = values.struct(spec.fields());
        Class<?> converter = Class.forName("org.apache.kafka.common.message." + spec.name() + "DataJsonConverter");
        Method read = converter.getMethod("read", JsonNode.class, short.class);
        Message message = (Message) read.invoke(null, json, version);
        if (spec.flexible(version) && index % 3 == 2) {
            new UnknownTags(spec, version, random).addTo(message, spec.fields());
        }
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return copy;
    }
}
