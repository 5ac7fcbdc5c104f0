package fairlead.kafka;

/**
 * The rack of a trigger: {@code fairlead:<group>:<version>}. Group ids may have colons.
 *
 * @param version version of the plan to follow; 0: the rack names no version
 */
record TriggerRack(String group, int version) {
    static final String PREFIX = "fairlead:";

    /** Reads a rack; null: the member is no trigger. */
    static TriggerRack of(String rack) {
        int colon = rack.lastIndexOf(':');
        if (!rack.startsWith(PREFIX) || colon <= PREFIX.length()) {
            return null;
        }
        String digits = rack.substring(colon + 1);
        boolean number = !digits.isEmpty() && digits.length() <= 9
            && digits.chars().allMatch(c -> c >= '0' && c <= '9');
        return number ? new TriggerRack(rack.substring(PREFIX.length(), colon), Integer.parseInt(digits)) : null;
    }
}
