package fairlead.kafka;

import java.util.AbstractList;
import java.util.Iterator;
import java.util.List;

/** The records of one partition in a batch. The list's iterators notify a {@link Meter} when each record begins. */
final class TimedList<R> extends AbstractList<R> {
    private final Meter meter;
    private final Meter.Batch batch;
    final Work work;
    private final List<R> records;
    /** Number of records that no iterator has returned yet. */
    int left;

    TimedList(Meter meter, Meter.Batch batch, Work work, List<R> records) {
        this.meter = meter;
        this.batch = batch;
        this.work = work;
        this.records = records;
        this.left = records.size();
    }

    @Override
    public R get(int index) {
        return records.get(index);
    }

    @Override
    public int size() {
        return records.size();
    }

    @Override
    public Iterator<R> iterator() {
        return new Timed(records.iterator());
    }

    private final class Timed implements Iterator<R> {
        private final Iterator<R> rest;

        Timed(Iterator<R> rest) {
            this.rest = rest;
        }

        @Override
        public boolean hasNext() {
            boolean more = rest.hasNext();
            if (!more && meter.times(batch)) {
                meter.take(null);
            }
            return more;
        }

        @Override
        public R next() {
            R record = rest.next();
            if (meter.times(batch)) {
                meter.take(work);
                if (left > 0) { // otherwise this is a second iteration, whose records were counted in the first
                    left--;
                    work.addRecords(1);
                }
            }
            return record;
        }
    }
}
