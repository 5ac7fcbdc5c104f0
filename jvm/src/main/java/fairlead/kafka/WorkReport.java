package fairlead.kafka;

import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;

/**
 * The text of a report of work, which consumers commit as the metadata of offsets. The format is that of
 * {@code fairlead/wire/work_report.py}: ASCII, with numbers in base 36 that have fixed numbers of digits.
 */
final class WorkReport {
    private static final String PREFIX = "fairlead1 c=";
    private static final int HASH_DIGITS = 7;
    private static final int TOKEN_DIGITS = 6;
    /** Names of the numbers, in order. The next field has the number of digits of each. */
    private static final String[] NAMES = {"e", "w", "h", "k", "n", "b", "q", "p", "t"};
    private static final int[] DIGITS = {8, 8, 8, 7, 8, 8, 10, 3, 8};
    /** Replaces the number of paused partitions if times are unknown, because other threads process records. */
    static final long TIMES_UNKNOWN = 36 * 36 * 36 - 1;

    private WorkReport() {
    }

    /** Returns a random token, which distinguishes successive consumers with the same member id. */
    static String newToken() {
        return new SecureRandom().ints(TOKEN_DIGITS, 0, 36)
            .mapToObj(digit -> base36(digit, 1)).collect(Collectors.joining());
    }

    /** Returns the hash with which reports identify a member. */
    static String memberHash(String memberId) {
        CRC32 crc = new CRC32();
        crc.update(memberId.getBytes(StandardCharsets.UTF_8));
        return base36(crc.getValue(), HASH_DIGITS);
    }

    /**
     * Returns the text of a report.
     *
     * @param owner the member's hash, followed by the consumer's token
     * @param numbers one number for each of {@code NAMES}, in the same order
     */
    static String text(String owner, long... numbers) {
        StringBuilder text = new StringBuilder(PREFIX).append(owner);
        for (int number = 0; number < numbers.length; number++) {
            text.append(' ').append(NAMES[number]).append('=').append(base36(numbers[number], DIGITS[number]));
        }
        return text.toString();
    }

    /** Returns whether an offset has metadata of the application. A report does not count as such. */
    static boolean hasMetadata(OffsetAndMetadata offset) {
        return !offset.metadata().isEmpty() && !offset.metadata().startsWith(PREFIX);
    }

    /** Returns a number in base 36 with leading zeros; z...z if it has too many digits. */
    private static String base36(long number, int digits) {
        String written = Long.toString(number, 36);
        int missing = digits - written.length();
        return missing < 0 ? "z".repeat(digits) : "0".repeat(missing) + written;
    }
}
