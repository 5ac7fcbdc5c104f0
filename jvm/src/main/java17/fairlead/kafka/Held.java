package fairlead.kafka;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * What is held of each group, within a bound on the memory that all of it takes.
 *
 * <p>What can be spared goes first, then what takes most.
 *
 * @param <T> what is held of a group
 */
final class Held<T> {
    /** What a group takes in the maps of a reader besides its name and what is said of it, in bytes. */
    private static final long GROUP_BYTES = 1_000;

    private record Size(boolean spare, long bytes, String group) implements Comparable<Size> {
        private static final Comparator<Size> ORDER =
            Comparator.comparing(Size::spare).thenComparing(Size::bytes).thenComparing(Size::group);

        @Override
        public int compareTo(Size other) {
            return ORDER.compare(this, other);
        }
    }

    private final long most;
    private final Map<String, T> values = new HashMap<>();
    private final Map<String, Size> sizes = new HashMap<>();
    private final TreeSet<Size> bySize = new TreeSet<>();
    private long bytes;

    /** Holds so many bytes at most. */
    Held(long most) {
        this.most = most;
    }

    Map<String, T> values() {
        return values;
    }

    T get(String group) {
        return values.get(group);
    }

    /**
     * Holds what is said of a group.
     *
     * @param spare whether it can be spared
     * @return the groups that are dropped, which may be this one
     */
    List<String> put(String group, T value, long size, boolean spare) {
        remove(group);
        var added = new Size(spare, GROUP_BYTES + 4L * group.length() + size, group);
        values.put(group, value);
        sizes.put(group, added);
        bySize.add(added);
        bytes += added.bytes;
        var dropped = new ArrayList<String>();
        while (bytes > most) {
            dropped.add(bySize.last().group);
            remove(bySize.last().group);
        }
        return dropped;
    }

    void remove(String group) {
        Size size = sizes.remove(group);
        if (size != null) {
            bySize.remove(size);
            values.remove(group);
            bytes -= size.bytes;
        }
    }
}
