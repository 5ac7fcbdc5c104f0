package fairlead.kafka;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Parses times as the planner writes them: ISO 8601 with seconds and a time zone. */
final class Times {
    private static final Pattern TIME = Pattern.compile(
        "([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.(?:[0-9]{3}|[0-9]{6}))?)"
            + "(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))");

    private Times() {
    }

    /** Returns a time, or null if the text is not one. Accepts the same texts as {@code fairlead.wire.times}. */
    static Instant parse(String text) {
        Matcher found = TIME.matcher(text);
        if (!found.matches() || text.startsWith("0000")) {
            return null;
        }
        try {
            Instant time = LocalDateTime.parse(found.group(1)).toInstant(ZoneOffset.UTC);
            if (found.group(2) == null) {
                return time;
            }
            long east = 60L * (60L * Long.parseLong(found.group(3)) + Long.parseLong(found.group(4)));
            return time.minusSeconds(found.group(2).equals("+") ? east : -east);
        } catch (DateTimeException error) {
            return null;
        }
    }
}
