package fairlead.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;

/**
 * Places what has no owner, where no plan says how: evenly by count, and nothing else moves.
 *
 * <p>Topics with the fewest readers first, since others can go elsewhere; each partition to the reader with
 * the fewest, among equals the one that comes first.
 */
final class Orphans {
    private Orphans() {}

    /** Give each partition of a topic that somebody reads an owner. Changes the array it is given. */
    static int[] place(GroupView group, int[] owner) {
        var topics = new ArrayList<Integer>();
        for (int t = 0; t < group.topics.length; t++) {
            for (int index = group.offsets[t]; index < group.offsets[t + 1]; index++) {
                if (owner[index] < 0) {
                    topics.add(t);
                    break;
                }
            }
        }
        if (topics.isEmpty() || group.members.length == 0) {
            return owner;
        }
        int[] counts = group.counts(owner);
        for (Audience audience : audiences(group, topics)) {
            deal(group, audience, owner, counts);
        }
        return owner;
    }

    private static void deal(GroupView group, Audience audience, int[] owner, int[] counts) {
        var least = new PriorityQueue<Integer>(
            audience.members.length, Comparator.<Integer>comparingInt(m -> counts[m]).thenComparingInt(m -> m));
        for (int m : audience.members) {
            least.add(m);
        }
        for (int t : audience.topics) {
            for (int index = group.offsets[t]; index < group.offsets[t + 1]; index++) {
                if (owner[index] < 0) {
                    int m = least.remove();
                    owner[index] = m;
                    counts[m]++;
                    least.add(m);
                }
            }
        }
    }

    /** Topics that the same members read. */
    private static final class Audience {
        final int[] members;
        final List<Integer> topics = new ArrayList<>();

        Audience(int[] members) {
            this.members = members;
        }
    }

    private static List<Audience> audiences(GroupView group, List<Integer> topics) {
        Map<BitSet, Audience> same = new HashMap<>();
        if (group.alike) {
            var all = new Audience(everybody(group));
            all.topics.addAll(topics);
            return List.of(all);
        }
        for (int t : topics) {
            var readers = new BitSet(group.members.length);
            for (int m = 0; m < group.members.length; m++) {
                if (group.reads[m].get(t)) {
                    readers.set(m);
                }
            }
            same.computeIfAbsent(readers, found -> new Audience(found.stream().toArray())).topics.add(t);
        }
        var audiences = new ArrayList<>(same.values());
        audiences.removeIf(audience -> audience.members.length == 0);
        audiences.sort(Comparator.<Audience>comparingInt(audience -> audience.members.length)
            .thenComparingInt(audience -> audience.topics.get(0)));
        return audiences;
    }

    private static int[] everybody(GroupView group) {
        int[] members = new int[group.members.length];
        Arrays.setAll(members, m -> m);
        return members;
    }
}
