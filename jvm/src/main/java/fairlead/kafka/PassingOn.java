package fairlead.kafka;

/**
 * Recognises applications that only pass records on to other threads, as
 * {@code fairlead/followers/core/passing_on.py} does.
 *
 * <p>Such an application needs a short time for nearly every record. The mean time cannot show this: on a busy
 * machine, a few long interruptions by other processes make the mean many times as long as the usual time.
 */
final class PassingOn {
    /** Seconds. To pass on a record takes less than this, unless another process interrupts it. */
    static final double QUICK = 2.5e-4;
    /**
     * Ratio of time in the application to waiting time. From this ratio on, an application counts as working, even if
     * most of its calls are quick.
     */
    private static final double WORKS = 0.2;
    /** Minimum length of a period, in seconds and in calls of {@code poll}. */
    private static final double PERIOD = 86_400;
    private static final long CALLS = 20;

    private Totals since = new Totals(0, 0, 0, 0, 0);
    private Totals period = since;

    /** Totals since the consumer was created: seconds, calls, and calls with less than {@code QUICK} per record. */
    record Totals(double elapsed, double waiting, double handler, long calls, long quick) {}

    /** Returns whether the application only passed on records during the last one or two periods. */
    boolean detected(Totals now) {
        if (now.elapsed - period.elapsed > PERIOD && now.calls - period.calls >= CALLS) {
            since = period;
            period = now;
        }
        boolean mostlyQuick = 2 * (now.quick - since.quick) > now.calls - since.calls;
        return mostlyQuick && now.handler - since.handler < WORKS * (now.waiting - since.waiting);
    }
}
