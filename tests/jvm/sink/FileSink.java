import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Adds each record's value to a file, as a line: Connect's own file sink of 4.4.0 was not published. */
public final class FileSink extends SinkConnector {
    private Map<String, String> properties = Map.of();

    @Override
    public void start(Map<String, String> given) {
        properties = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Lines.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int tasks) {
        return Collections.nCopies(tasks, properties);
    }

    @Override
    public void stop() { }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define("file", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "Where lines go.");
    }

    @Override
    public String version() {
        return "0";
    }

    /** Writes what its partitions have. */
    public static final class Lines extends SinkTask {
        private Path file;

        @Override
        public void start(Map<String, String> given) {
            file = Path.of(given.get("file"));
        }

        @Override
        public void put(Collection<SinkRecord> records) {
            try {
                for (SinkRecord record : records) {
                    Files.writeString(file, record.value() + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                }
            } catch (IOException failed) {
                throw new ConnectException(failed);
            }
        }

        @Override
        public void stop() { }

        @Override
        public String version() {
            return "0";
        }
    }
}
