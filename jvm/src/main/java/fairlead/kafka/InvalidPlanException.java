package fairlead.kafka;

/** A record of the plan topic that cannot be read, or breaks an invariant; the message says which. */
public final class InvalidPlanException extends Exception {
    private static final long serialVersionUID = 1L;

    InvalidPlanException(String message) {
        super(message);
    }
}
