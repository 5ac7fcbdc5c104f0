package fairlead.kafka;

import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.PrimitiveIterator;

/** An immutable set of partition numbers: a slice of an ascending array, four bytes per number. */
final class PartitionSet extends AbstractSet<Integer> {
    private final int[] numbers;
    private final int from;
    private final int to;

    /** The numbers from one index up to, but not including, another; they must ascend and never change. */
    PartitionSet(int[] numbers, int from, int to) {
        this.numbers = numbers;
        this.from = from;
        this.to = to;
    }

    @Override
    public int size() {
        return to - from;
    }

    @Override
    public boolean contains(Object number) {
        return number instanceof Integer && Arrays.binarySearch(numbers, from, to, (Integer) number) >= 0;
    }

    @Override
    public Iterator<Integer> iterator() {
        return new PrimitiveIterator.OfInt() {
            private int next = from;

            @Override
            public boolean hasNext() {
                return next < to;
            }

            @Override
            public int nextInt() {
                if (next >= to) {
                    throw new NoSuchElementException();
                }
                return numbers[next++];
            }
        };
    }
}
