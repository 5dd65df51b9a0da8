package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.util.Collection;
import java.util.Random;
import java.util.TreeSet;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/** Gives the structs of a message tagged fields that no version knows, as a newer peer would send them. */
final class UnknownTags {
    /** Above every tag in use, with the sizes at which the tag's varint grows. */
    private static final int[] TAGS = {40, 100, 127, 128, 16383, 16384, 2097152, Integer.MAX_VALUE - 1};

    private final Spec spec;
    private final short version;
    private final Random random;

    UnknownTags(Spec spec, short version, Random random) {
        this.spec = spec;
        this.version = version;
        this.random = random;
    }

    void addTo(Message message, JsonNode fields) throws ReflectiveOperationException {
        TreeSet<Integer> tags = new TreeSet<>();
        for (int i = random.nextInt(3); i > 0; i--) {
            tags.add(TAGS[random.nextInt(TAGS.length)]);
        }
        for (int tag : tags) {
            byte[] data = new byte[random.nextInt(8) == 0 ? 200 : random.nextInt(6)];
            random.nextBytes(data);
            message.unknownTaggedFields().add(new RawTaggedField(tag, data));
        }
        for (JsonNode spec : fields) {
            // A default struct that gets a tag would have to be written, so only structs of this version are entered.
            if (Spec.present(spec, version)) {
                enter(message, spec);
            }
        }
    }

    private void enter(Message message, JsonNode field) throws ReflectiveOperationException {
        Field member = message.getClass().getDeclaredField(Spec.javaName(field));
        member.setAccessible(true);
        Object value = member.get(message);
        if (value instanceof Message nested) {
            addTo(nested, spec.structFields(field));
        } else if (value instanceof Collection<?> items) {
            for (Object item : items) {
                if (item instanceof Message nested) {
                    addTo(nested, spec.structFields(field));
                }
            }
        }
    }
}
