package tools;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's command line tools one after the other in one process, which saves a start of Java for each. A line of
 * standard input is a main class and its arguments, parted by tabs. The answer is what the tool printed, each line after
 * "| ", and then "exit CODE".
 */
public final class Main {
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1;

        Ended() {
            super(null, null, false, false);
        }
    }

    private static volatile Integer code;
    /** What the tool wants done as its process ends. */
    private static final List<Runnable> HOOKS = new ArrayList<>();

    private Main() {}

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((status, message) -> end(status));
        Exit.setHaltProcedure((status, message) -> end(status));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        var commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            var printed = new ByteArrayOutputStream();
            try (var capture = new PrintStream(printed, true, StandardCharsets.UTF_8)) {
                System.setOut(capture);
                System.setErr(capture);
                run(words[0], Arrays.copyOfRange(words, 1, words.length));
            }
            printed.toString(StandardCharsets.UTF_8).lines().forEach(text -> answers.println("| " + text));
            answers.println("exit " + code);
            answers.flush();
        }
        System.exit(0);
    }

    /** A tool may catch what its first exit throws and exit once more: the first code is the one a shell would see. */
    private static void end(int status) {
        if (code == null) {
            code = status;
        }
        throw new Ended();
    }

    private static void run(String tool, String[] args) throws ReflectiveOperationException {
        code = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            if (code == null) {
                e.getCause().printStackTrace();
                code = 1;
            }
        }
        if (code == null) {
            code = 0;
        }
        HOOKS.forEach(Runnable::run);
        HOOKS.clear();
    }
}
