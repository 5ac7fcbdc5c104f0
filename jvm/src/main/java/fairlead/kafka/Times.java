package fairlead.kafka;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Times as the planner writes them: ISO 8601 to the second or finer, with their time zone. */
final class Times {
    private static final Pattern TIME = Pattern.compile(
        "([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\\.([0-9]{3}|[0-9]{6}))?"
            + "(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))");

    private Times() {
    }

    /** Reads a time; null: the text is not a time. Accepts the same texts as {@code fairlead.wire.times}. */
    static Instant parse(String text) {
        Matcher found = TIME.matcher(text);
        if (!found.matches() || number(found, 1) == 0) {
            return null;
        }
        String fraction = found.group(7) == null ? "0" : (found.group(7) + "000000").substring(0, 9);
        try {
            LocalDateTime local = LocalDateTime.of(
                number(found, 1), number(found, 2), number(found, 3), number(found, 4),
                number(found, 5), number(found, 6), Integer.parseInt(fraction));
            Instant time = local.toInstant(ZoneOffset.UTC);
            if (found.group(8) == null) {
                return time;
            }
            long east = 60L * (60L * number(found, 9) + number(found, 10));
            return time.minusSeconds(found.group(8).equals("+") ? east : -east);
        } catch (DateTimeException error) {
            return null;
        }
    }

    private static int number(Matcher found, int group) {
        return Integer.parseInt(found.group(group));
    }
}
