package oracle;

import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** One message as kafka-clients itself specifies it. */
record Spec(JsonNode root) {
    private static final ObjectMapper MAPPER =
            JsonMapper.builder().enable(JsonReadFeature.ALLOW_JAVA_COMMENTS).build();

    /** The specs of the messages that a folder of specs names, by file name. Fails if their facts differ. */
    static List<Spec> namedIn(Path folder) throws IOException {
        List<Path> files;
        try (Stream<Path> all = Files.list(folder)) {
            files = all.filter(f -> f.toString().endsWith(".json")).sorted().toList();
        }
        List<Spec> specs = new ArrayList<>();
        for (Path file : files) {
            JsonNode ours = MAPPER.readTree(file.toFile());
            Spec spec = load(ours.get("name").asText());
            if (!facts(ours).equals(facts(spec.root))) {
                throw new IOException(file + " differs from the spec " + spec.name() + " in kafka-clients");
            }
            specs.add(spec);
        }
        return specs;
    }

    /** A spec without its sentences, whose wording is each project's own. */
    private static JsonNode facts(JsonNode node) {
        JsonNode copy = node.deepCopy();
        copy.findParents("about").forEach(parent -> ((ObjectNode) parent).remove("about"));
        return copy;
    }

    static Spec load(String name) throws IOException {
        try (InputStream in = Spec.class.getResourceAsStream("/common/message/" + name + ".json")) {
            if (in == null) {
                throw new IOException("kafka-clients has no message " + name);
            }
            return new Spec(MAPPER.readTree(in));
        }
    }

    String name() {
        return root.get("name").asText();
    }

    JsonNode fields() {
        return root.get("fields");
    }

    /** The API key; -1 for headers. */
    int key() {
        return root.path("apiKey").asInt(-1);
    }

    String kind() {
        return switch (name()) {
            case "RequestHeader" -> "request_header";
            case "ResponseHeader" -> "response_header";
            default -> root.get("type").asText();
        };
    }

    short lowest() {
        return Short.parseShort(root.get("validVersions").asText().split("-")[0]);
    }

    short highest() {
        String[] ends = root.get("validVersions").asText().split("-");
        return Short.parseShort(ends[ends.length - 1]);
    }

    boolean flexible(short version) {
        return contains(root.path("flexibleVersions").asText("none"), version);
    }

    /** The fields of a struct type: those of the field itself, or of a struct shared in the message. */
    JsonNode structFields(JsonNode field) {
        if (field.has("fields")) {
            return field.get("fields");
        }
        String type = field.get("type").asText().replace("[]", "");
        for (JsonNode shared : root.path("commonStructs")) {
            if (shared.get("name").asText().equals(type)) {
                return shared.get("fields");
            }
        }
        throw new IllegalStateException(name() + " has no struct " + type);
    }

    static boolean contains(String range, short version) {
        if (range.equals("none")) {
            return false;
        }
        if (range.endsWith("+")) {
            return version >= Short.parseShort(range.substring(0, range.length() - 1));
        }
        String[] ends = range.split("-");
        return version >= Short.parseShort(ends[0]) && version <= Short.parseShort(ends[ends.length - 1]);
    }

    /** Whether a field is on the wire of a version, tagged or not. */
    static boolean present(JsonNode field, short version) {
        return contains(field.get("versions").asText(), version)
                || contains(field.path("taggedVersions").asText("none"), version);
    }

    static String javaName(JsonNode field) {
        String name = field.get("name").asText();
        return Character.toLowerCase(name.charAt(0)) + name.substring(1);
    }
}
