package fairlead.kafka;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.Uuid;

/**
 * What a broker knows of each group: its newest plan, the names of its members, and the member ids in the coordinator's
 * last call for this group.
 *
 * <p>Written by the thread that reads the topics, and read by the threads that assign. {@link BrokerReader} limits
 * the memory that plans and names take.
 */
final class PlanBook {
    /** Maximum number of groups whose member ids are remembered. */
    private static final int REMEMBERED = 20_000;
    /** Maximum number of members that are remembered because their group began without a plan. */
    private static final int BEGUN = 100_000;

    /**
     * A group's plan, as the plan topic has it.
     *
     * @param topics map from id to name of the plan's topics; lacks topics that have no id in the plan
     */
    record Plan(String group, PlanState state, Map<Uuid, String> topics) {
        static Plan of(String group, PlanState state) {
            var topics = new HashMap<Uuid, String>();
            if (state.plan() != null) {
                state.plan().topicIds().forEach((name, text) -> {
                    Uuid id = Roster.uuid(text);
                    if (id != null) {
                        topics.put(id, name);
                    }
                });
            }
            return new Plan(group, state, Map.copyOf(topics));
        }

        PlanDocument document() {
            return state.plan();
        }
    }

    /** Map from group to its plan. */
    final Map<String, Plan> plans = new ConcurrentHashMap<>();
    /** Map from group to its members' names. Changed only by {@link #put(Roster)} and {@link #removeRoster}. */
    final Map<String, Roster> rosters = new ConcurrentHashMap<>();
    /** Map from member id to the group whose roster lists this member. */
    private final Map<String, String> listed = new ConcurrentHashMap<>();
    private final Object seenLock = new Object();
    /** Map from member id to the group that had this member in the coordinator's last call for the group. */
    private final Map<String, String> seen = new HashMap<>();
    private final Map<String, String[]> together = new LinkedHashMap<>(16, 0.75f, true);
    /** Member ids of groups that began without a plan and have not followed one since. */
    private final Set<String> begun = new LinkedHashSet<>();
    /** Whether the topics have been read to their ends since the broker started. */
    volatile boolean complete;

    void put(Plan plan) {
        plans.put(plan.group(), plan);
    }

    void put(Roster roster) {
        Roster old = rosters.put(roster.group(), roster);
        roster.names().keySet().forEach(id -> listed.put(id, roster.group()));
        if (old != null) {
            old.names().keySet().stream()
                .filter(id -> !roster.names().containsKey(id))
                .forEach(id -> listed.remove(id, old.group()));
        }
    }

    void removeRoster(String group) {
        Roster old = rosters.remove(group);
        if (old != null) {
            old.names().keySet().forEach(id -> listed.remove(id, group));
        }
    }

    /**
     * Returns the group whose roster lists most of these members. If no roster lists any, returns the group that had
     * most of them in the coordinator's last call for that group; null if no group had any.
     */
    String groupOf(String[] members) {
        String found = most(members, listed);
        if (found != null) {
            return found;
        }
        synchronized (seenLock) {
            return most(members, seen);
        }
    }

    private static String most(String[] members, Map<String, String> groups) {
        var votes = new HashMap<String, Integer>();
        for (String member : members) {
            String group = groups.get(member);
            if (group != null) {
                votes.merge(group, 1, Integer::sum);
            }
        }
        // If several groups have most of the members, choose the first by name.
        return votes.entrySet().stream()
            .min(Map.Entry.<String, Integer>comparingByValue().reversed().thenComparing(Map.Entry.comparingByKey()))
            .map(Map.Entry::getKey).orElse(null);
    }

    /** Remembers the members in the coordinator's present call for a group, and forgets those in the previous call. */
    void remember(String group, String[] members) {
        synchronized (seenLock) {
            forget(group, together.remove(group));
            together.put(group, members);
            for (String member : members) {
                seen.put(member, group);
            }
            if (together.size() > REMEMBERED) {
                var eldest = together.entrySet().iterator().next();
                together.remove(eldest.getKey());
                forget(eldest.getKey(), eldest.getValue());
            }
        }
    }

    /** Returns whether this broker has assigned partitions of a group before. */
    boolean met(String group) {
        synchronized (seenLock) {
            return together.containsKey(group);
        }
    }

    /** Returns whether some of these members are in a group that began without a plan and still follows none. */
    boolean hasBegun(String[] members) {
        synchronized (seenLock) {
            return Arrays.stream(members).anyMatch(begun::contains);
        }
    }

    /** Remembers that the group of these members began without a plan. */
    void begin(String[] members) {
        synchronized (seenLock) {
            Collections.addAll(begun, members);
            var oldest = begun.iterator();
            while (begun.size() > BEGUN) {
                oldest.next();
                oldest.remove();
            }
        }
    }

    /** Remembers that these members follow a plan. When the plan ends, their targets stay. */
    void follows(String[] members) {
        synchronized (seenLock) {
            Arrays.asList(members).forEach(begun::remove);
        }
    }

    private void forget(String group, String[] members) {
        if (members != null) {
            for (String member : members) {
                seen.remove(member, group);
            }
        }
    }
}
