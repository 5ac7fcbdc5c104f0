package fairlead.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads JSON as Python's {@code json} does, but refuses repeated names in an object; writes it as ASCII
 * without spaces. Kafka's clients depend on no JSON library.
 *
 * <p>Objects are maps in their order, arrays are lists, whole numbers are {@link Long} or, if they do not
 * fit, {@link Huge}, other numbers {@link Double}.
 */
final class Json {
    private static final int DEEPEST = 500;
    /** Maximum number of digits of a whole number: the limit of Python. */
    private static final int MOST_DIGITS = 4300;

    /** A whole number beyond {@code long}. */
    static final class Huge {
        final double value;

        Huge(double value) {
            this.value = value;
        }
    }

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Reads one value; refuses bytes that are not one JSON value in UTF-8. */
    static Object parse(byte[] bytes) throws InvalidPlanException {
        String text;
        try {
            text = StandardCharsets.UTF_8.newDecoder()
                .onMalformedInput(CodingErrorAction.REPORT)
                .onUnmappableCharacter(CodingErrorAction.REPORT)
                .decode(ByteBuffer.wrap(bytes))
                .toString();
        } catch (CharacterCodingException error) {
            throw new InvalidPlanException("it is not UTF-8");
        }
        Json json = new Json(text);
        json.skipSpace();
        Object value = json.value(0);
        json.skipSpace();
        if (json.at < text.length()) {
            throw json.wrong("something stands behind the value");
        }
        return value;
    }

    private InvalidPlanException wrong(String what) {
        return new InvalidPlanException("it is not JSON: " + what + " (character " + at + ")");
    }

    private char peek() {
        return at < text.length() ? text.charAt(at) : '\0';
    }

    private void skipSpace() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private Object value(int depth) throws InvalidPlanException {
        if (depth > DEEPEST) {
            throw wrong("it is nested too deeply");
        }
        switch (peek()) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            case 'N':
                return word("NaN", Double.NaN);
            case 'I':
                return word("Infinity", Double.POSITIVE_INFINITY);
            default:
                if (text.startsWith("-Infinity", at)) {
                    return word("-Infinity", Double.NEGATIVE_INFINITY);
                }
                return number();
        }
    }

    private Object word(String word, Object value) throws InvalidPlanException {
        if (!text.startsWith(word, at)) {
            throw wrong("a value is expected");
        }
        at += word.length();
        return value;
    }

    private Map<String, Object> object(int depth) throws InvalidPlanException {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        skipSpace();
        if (peek() == '}') {
            at++;
            return found;
        }
        while (true) {
            if (peek() != '"') {
                throw wrong("a name is expected");
            }
            String name = string();
            skipSpace();
            expect(':');
            skipSpace();
            Object value = value(depth + 1);
            if (found.containsKey(name)) {
                throw wrong("a name stands twice in one object");
            }
            found.put(name, value);
            skipSpace();
            if (peek() == '}') {
                at++;
                return found;
            }
            expect(',');
            skipSpace();
        }
    }

    private List<Object> array(int depth) throws InvalidPlanException {
        List<Object> found = new ArrayList<>();
        at++;
        skipSpace();
        if (peek() == ']') {
            at++;
            return found;
        }
        while (true) {
            found.add(value(depth + 1));
            skipSpace();
            if (peek() == ']') {
                at++;
                return found;
            }
            expect(',');
            skipSpace();
        }
    }

    private void expect(char one) throws InvalidPlanException {
        if (peek() != one) {
            throw wrong("'" + one + "' is expected");
        }
        at++;
    }

    private String string() throws InvalidPlanException {
        int start = ++at;
        while (at < text.length() && text.charAt(at) != '"' && text.charAt(at) != '\\') {
            plain(text.charAt(at++));
        }
        if (peek() == '"') {
            return text.substring(start, at++);
        }
        StringBuilder found = new StringBuilder(text.substring(start, Math.min(at, text.length())));
        while (at < text.length()) {
            char one = text.charAt(at++);
            if (one == '"') {
                return found.toString();
            }
            found.append(one == '\\' ? escaped() : plain(one));
        }
        throw wrong("a text does not end");
    }

    private char plain(char one) throws InvalidPlanException {
        if (one < ' ') {
            throw wrong("a control character stands in a text");
        }
        return one;
    }

    private char escaped() throws InvalidPlanException {
        char one = peek();
        at++;
        int known = "\"\\/bfnrt".indexOf(one);
        if (known >= 0 && one != '\0') {
            return "\"\\/\b\f\n\r\t".charAt(known);
        }
        if (one != 'u' || at + 4 > text.length()) {
            throw wrong("an escape is unknown");
        }
        int code = 0;
        for (int end = at + 4; at < end; at++) {
            char hex = text.charAt(at);
            int digit = hex < 128 ? Character.digit(hex, 16) : -1;
            if (digit < 0) {
                throw wrong("an escape is unknown");
            }
            code = code * 16 + digit;
        }
        return (char) code;
    }

    private Object number() throws InvalidPlanException {
        int start = at;
        if (peek() == '-') {
            at++;
        }
        int first = at;
        if (peek() == '0') {
            at++;
        } else if (!digits()) {
            at = start;
            throw wrong("a value is expected");
        }
        int whole = at;
        if (peek() == '.') {
            at++;
            at = digits() ? at : whole;
        }
        if (peek() == 'e' || peek() == 'E') {
            int mantissa = at++;
            if (peek() == '+' || peek() == '-') {
                at++;
            }
            at = digits() ? at : mantissa;
        }
        String token = text.substring(start, at);
        if (at > whole) {
            return Double.valueOf(token);
        }
        if (whole - first > MOST_DIGITS) {
            throw wrong("a number has too many digits");
        }
        try {
            return Long.valueOf(token);
        } catch (NumberFormatException tooLarge) {
            return new Huge(Double.parseDouble(token));
        }
    }

    private boolean digits() {
        int start = at;
        while (peek() >= '0' && peek() <= '9') {
            at++;
        }
        return at > start;
    }

    /** Writes a value as Python's {@code json.dumps(value, separators=(",", ":"))} does. */
    static String write(Object value) {
        StringBuilder text = new StringBuilder();
        write(value, text);
        return text.toString();
    }

    private static void write(Object value, StringBuilder text) {
        if (value instanceof Map) {
            text.append('{');
            String comma = "";
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                text.append(comma);
                quote((String) entry.getKey(), text);
                text.append(':');
                write(entry.getValue(), text);
                comma = ",";
            }
            text.append('}');
        } else if (value instanceof Collection) {
            text.append('[');
            String comma = "";
            for (Object one : (Collection<?>) value) {
                text.append(comma);
                write(one, text);
                comma = ",";
            }
            text.append(']');
        } else if (value instanceof String) {
            quote((String) value, text);
        } else {
            text.append(value);
        }
    }

    private static void quote(String value, StringBuilder text) {
        text.append('"');
        for (char one : value.toCharArray()) {
            int known = "\"\\\b\f\n\r\t".indexOf(one);
            if (known >= 0) {
                text.append('\\').append("\"\\bfnrt".charAt(known));
            } else if (one < ' ' || one > '~') {
                text.append(String.format("\\u%04x", (int) one));
            } else {
                text.append(one);
            }
        }
        text.append('"');
    }
}
