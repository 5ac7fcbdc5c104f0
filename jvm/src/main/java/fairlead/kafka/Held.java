package fairlead.kafka;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Predicate;

/**
 * A map from group to entry with a limit on total memory.
 *
 * <p>To stay within the limit, entries that were stored as spare are removed first, then those of unknown groups, then
 * the largest.
 *
 * @param <T> type of the entries
 */
final class Held<T> {
    /** Memory of a group in the maps of a reader, in bytes, in addition to its name and its entry. */
    private static final long GROUP_BYTES = 1_000;

    private record Size(boolean spare, boolean known, long bytes, String group) {
        static final Comparator<Size> ORDER = Comparator.comparing(Size::spare)
            .thenComparing(Size::known, Comparator.reverseOrder()).thenComparing(Size::bytes).thenComparing(Size::group);
    }

    private final long most;
    private final Predicate<String> known;
    /** Map from group to its entry. */
    final Map<String, T> values = new HashMap<>();
    private final Map<String, Size> sizes = new HashMap<>();
    private final TreeSet<Size> bySize = new TreeSet<>(Size.ORDER);
    private long bytes;

    /**
     * Creates an empty map with a maximum number of bytes.
     *
     * @param known returns whether a group is known to exist, so that records for invented groups cannot displace
     *     those of known groups
     */
    Held(long most, Predicate<String> known) {
        this.most = most;
        this.known = known;
    }

    /**
     * Stores the entry of a group.
     *
     * @param spare whether the entry is removed before all entries that are not spare
     * @return the groups whose entries were removed, perhaps this one
     */
    List<String> put(String group, T value, long size, boolean spare) {
        remove(group);
        values.put(group, value);
        rank(new Size(spare, known.test(group), GROUP_BYTES + 4L * group.length() + size, group));
        var dropped = new ArrayList<String>();
        while (bytes > most) {
            Size last = bySize.last();
            if (!last.known && known.test(last.group)) {
                unrank(last);
                rank(new Size(last.spare, true, last.bytes, last.group));
            } else {
                remove(last.group);
                dropped.add(last.group);
            }
        }
        return dropped;
    }

    void remove(String group) {
        Size size = sizes.get(group);
        if (size != null) {
            unrank(size);
            values.remove(group);
        }
    }

    private void rank(Size size) {
        sizes.put(size.group, size);
        bySize.add(size);
        bytes += size.bytes;
    }

    private void unrank(Size size) {
        sizes.remove(size.group);
        bySize.remove(size);
        bytes -= size.bytes;
    }
}
