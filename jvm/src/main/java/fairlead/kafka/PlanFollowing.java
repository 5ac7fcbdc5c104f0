package fairlead.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Applies a plan to a group's present members.
 *
 * <p>A member is named by the group's roster, else by its instance id. A member without a name counts as new until the
 * roster has it. Partitions of topics whose names are unknown keep their targets.
 */
final class PlanFollowing {
    private final GroupView view;
    private final PlanBook.Plan plan;
    private final Roster roster;
    /** The name of each topic of the view; null if it is unknown or the plan has another topic with this name. */
    private final String[] topicNames;
    /** The unique name of each member of the view, or null. */
    private final String[] names;

    PlanFollowing(GroupView view, PlanBook.Plan plan, Roster roster) {
        this.view = view;
        this.plan = plan;
        this.roster = roster;
        topicNames = nameTopics();
        names = nameMembers();
    }

    /** Returns the owner of each partition; null if no member's name is known, so that the plan cannot be applied. */
    int[] owners() {
        if (Arrays.stream(names).allMatch(Objects::isNull)) {
            return null;
        }
        Arrays.setAll(names, m -> names[m] == null ? view.members[m] : names[m]);
        var subscriptions = new HashMap<String, Collection<String>>();
        var known = new HashMap<BitSet, List<String>>();
        for (int m = 0; m < view.members.length; m++) {
            subscriptions.put(names[m], known.computeIfAbsent(view.reads[m], this::topicsOf));
        }
        var counts = new HashMap<String, Integer>();
        for (int t = 0; t < topicNames.length; t++) {
            if (topicNames[t] != null) {
                counts.put(topicNames[t], view.count(t));
            }
        }
        return view.place(merged(Fit.decide(plan.document(), subscriptions, counts)));
    }

    private List<String> topicsOf(BitSet read) {
        var topics = new ArrayList<String>();
        for (int t = read.nextSetBit(0); t >= 0; t = read.nextSetBit(t + 1)) {
            if (topicNames[t] != null) {
                topics.add(topicNames[t]);
            }
        }
        return topics;
    }

    /** Returns the owners under the fitted plan, or the present targets for topics without a name. */
    private int[] merged(Fit fit) {
        boolean whole = !Arrays.asList(topicNames).contains(null);
        int[] owner = whole ? new int[view.size()] : view.targets();
        var numbers = new HashMap<String, Integer>();
        for (int m = 0; m < names.length; m++) {
            numbers.put(names[m], m);
        }
        int[] numberOf = Arrays.stream(fit.members).mapToInt(numbers::get).toArray();
        for (int t = 0; t < topicNames.length; t++) {
            if (topicNames[t] == null) {
                continue;
            }
            int index = view.offsets[t];
            for (int member : fit.owners(topicNames[t])) {
                owner[index++] = member < 0 ? -1 : numberOf[member];
            }
        }
        return owner;
    }

    /** Returns names of topics from the plan, else from the roster unless the plan has another topic with this name. */
    private String[] nameTopics() {
        String[] found = new String[view.topics.length];
        Set<String> used = new HashSet<>(plan.topics().values());
        for (int t = 0; t < found.length; t++) {
            found[t] = plan.topics().get(view.topics[t]);
            if (found[t] == null && roster != null) {
                String name = roster.topics().get(view.topics[t]);
                found[t] = name != null && used.add(name) ? name : null;
            }
        }
        return found;
    }

    private String[] nameMembers() {
        String[] found = new String[view.members.length];
        Set<String> used = new HashSet<>();
        for (int m = 0; m < found.length; m++) {
            String listed = roster == null ? null : roster.names().get(view.members[m]);
            String name = listed == null ? view.instances[m] : listed;
            found[m] = name != null && used.add(name) ? name : null;
        }
        return found;
    }
}
