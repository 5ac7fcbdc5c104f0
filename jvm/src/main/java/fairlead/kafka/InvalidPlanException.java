package fairlead.kafka;

/** A record of the plan topic is unreadable or violates a rule; the message names the rule. */
public final class InvalidPlanException extends Exception {
    private static final long serialVersionUID = 1L;

    InvalidPlanException(String message) {
        super(message);
    }
}
