package fairlead.kafka;

import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Parses sets of partitions from range strings: "0-3,7" is 0, 1, 2, 3, 7. */
final class PartitionSets {
    /** Matches one range, with the comma before the next range if there is one. */
    private static final Pattern RANGE = Pattern.compile("\\G([0-9]{1,10})(?:-([0-9]{1,10}))?(?:,(?!\\z)|\\z)");

    private PartitionSets() {
    }

    /**
     * Parses ascending ranges, as {@code partition_sets.py} does.
     *
     * @param below the number of partitions; all numbers must be less
     * @return the first and last partition of each range, pair after pair; so the memory depends on the length of
     *     the text, not on the number of partitions
     */
    static int[] parse(String text, int below) throws InvalidPlanException {
        int[] found = new int[8];
        int size = 0;
        long free = 0;
        int end = 0;
        for (Matcher range = RANGE.matcher(text); end < text.length() && range.find(); end = range.end()) {
            long first = Long.parseLong(range.group(1));
            long last = range.group(2) == null ? first : Long.parseLong(range.group(2));
            if (first > last || first < free) {
                throw new InvalidPlanException("partitions are out of order or named twice: " + quoted(text));
            }
            if (last >= below) {
                throw new InvalidPlanException(
                    "partition " + last + " does not exist: the topic has " + below + " partitions");
            }
            if (size == found.length) {
                found = Arrays.copyOf(found, 2 * size);
            }
            found[size++] = (int) first;
            found[size++] = (int) last;
            free = last + 1;
        }
        if (end < text.length()) {
            throw new InvalidPlanException(quoted(text) + " is not a set of partition ranges such as '0-3,7'");
        }
        return Arrays.copyOf(found, size);
    }

    private static String quoted(String text) {
        return "'" + text.substring(0, Math.min(80, text.length())) + "'";
    }
}
