package fairlead.kafka;

import java.util.Arrays;

/** Sets of partitions as range strings: "0-3,7" is 0, 1, 2, 3, 7. */
final class PartitionSets {
    private static final int MOST_DIGITS = 10;

    private PartitionSets() {
    }

    /**
     * Reads ascending ranges of partitions below a count, as {@code partition_sets.py} does.
     *
     * @return the first and last partition of each range, pair after pair: so memory depends on the text's
     *     length, not on the number of partitions
     */
    static int[] parse(String text, int below) throws InvalidPlanException {
        int[] found = new int[8];
        int size = 0;
        long free = 0;
        int at = 0;
        while (!text.isEmpty()) {
            int end = digitsEnd(text, at);
            long first = Long.parseLong(text.substring(at, end));
            long last = first;
            at = end;
            if (at < text.length() && text.charAt(at) == '-') {
                end = digitsEnd(text, at + 1);
                last = Long.parseLong(text.substring(at + 1, end));
                at = end;
            }
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
            if (at == text.length()) {
                break;
            }
            if (text.charAt(at) != ',') {
                throw malformed(text);
            }
            at++;
        }
        return Arrays.copyOf(found, size);
    }

    private static int digitsEnd(String text, int start) throws InvalidPlanException {
        int end = start;
        while (end < text.length() && text.charAt(end) >= '0' && text.charAt(end) <= '9') {
            end++;
        }
        if (end == start || end - start > MOST_DIGITS) {
            throw malformed(text);
        }
        return end;
    }

    private static InvalidPlanException malformed(String text) {
        return new InvalidPlanException(quoted(text) + " is no set of partition ranges such as '0-3,7'");
    }

    private static String quoted(String text) {
        return "'" + text.substring(0, Math.min(80, text.length())) + "'";
    }
}
