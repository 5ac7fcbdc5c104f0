package fairlead.kafka;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The {@code client.rack} of a rebalance trigger: {@code fairlead:<group>:<version>}. Group ids may contain colons.
 *
 * @param version version of the plan to follow; 0 if the rack names no version
 */
record TriggerRack(String group, int version) {
    private static final Pattern RACK = Pattern.compile("fairlead:(.+):([0-9]{1,9})", Pattern.DOTALL);

    /** Parses a rack; returns null if it is not that of a trigger. */
    static TriggerRack of(String rack) {
        Matcher parts = RACK.matcher(rack);
        return parts.matches() ? new TriggerRack(parts.group(1), Integer.parseInt(parts.group(2))) : null;
    }
}
