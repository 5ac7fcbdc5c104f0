package fairlead.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Reads and writes JSON, since Kafka's clients depend on no JSON library. Reads the same texts as Python's
 * {@code json}, but refuses repeated names in an object. Writes ASCII without spaces.
 *
 * <p>Objects become maps with the same order, arrays become lists. Whole numbers become {@link Long} if they fit,
 * and all other numbers {@link Double}.
 */
final class Json {
    private static final int DEEPEST = 500;
    /** Maximum number of digits of a whole number, the same as in Python. */
    private static final int MOST_DIGITS = 4300;
    /** Matches a number. The group is its fraction and exponent. */
    private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*+)((?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)");
    private static final Pattern CODE = Pattern.compile("[0-9a-fA-F]{4}");
    private static final Map<String, Object> WORDS = new HashMap<>(Map.of(
        "true", true, "false", false, "NaN", Double.NaN,
        "Infinity", Double.POSITIVE_INFINITY, "-Infinity", Double.NEGATIVE_INFINITY));

    static {
        WORDS.put("null", null);
    }

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Parses one value. Refuses bytes that are not exactly one JSON value in UTF-8. */
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
            throw json.wrong("there is text after the value");
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
        return switch (peek()) {
            case '{' -> object(depth);
            case '[' -> array(depth);
            case '"' -> string();
            default -> wordOrNumber();
        };
    }

    private Object wordOrNumber() throws InvalidPlanException {
        for (Map.Entry<String, Object> word : WORDS.entrySet()) {
            if (text.startsWith(word.getKey(), at)) {
                at += word.getKey().length();
                return word.getValue();
            }
        }
        return number();
    }

    /** Returns whether there is a next element in an object or array. Moves to it, else behind {@code close}. */
    private boolean next(char close, boolean first) throws InvalidPlanException {
        skipSpace();
        if (peek() == close) {
            at++;
            return false;
        }
        if (!first) {
            expect(',');
            skipSpace();
        }
        return true;
    }

    private Map<String, Object> object(int depth) throws InvalidPlanException {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        while (next('}', found.isEmpty())) {
            if (peek() != '"') {
                throw wrong("a name is expected");
            }
            String name = string();
            skipSpace();
            expect(':');
            skipSpace();
            Object value = value(depth + 1);
            if (found.containsKey(name)) {
                throw wrong("a name occurs twice in one object");
            }
            found.put(name, value);
        }
        return found;
    }

    private List<Object> array(int depth) throws InvalidPlanException {
        List<Object> found = new ArrayList<>();
        at++;
        while (next(']', found.isEmpty())) {
            found.add(value(depth + 1));
        }
        return found;
    }

    private void expect(char one) throws InvalidPlanException {
        if (peek() != one) {
            throw wrong("'" + one + "' is expected");
        }
        at++;
    }

    private String string() throws InvalidPlanException {
        StringBuilder found = new StringBuilder();
        at++;
        while (at < text.length()) {
            char one = text.charAt(at++);
            if (one == '"') {
                return found.toString();
            }
            if (one < ' ') {
                throw wrong("a string contains a control character");
            }
            found.append(one == '\\' ? escaped() : one);
        }
        throw wrong("a string does not end");
    }

    private char escaped() throws InvalidPlanException {
        char one = peek();
        at++;
        int known = "\"\\/bfnrt".indexOf(one);
        if (known >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(known);
        }
        String code = one == 'u' ? text.substring(at, Math.min(at + 4, text.length())) : "";
        if (!CODE.matcher(code).matches()) {
            throw wrong("an escape is unknown");
        }
        at += 4;
        return (char) Integer.parseInt(code, 16);
    }

    private Object number() throws InvalidPlanException {
        Matcher number = NUMBER.matcher(text).region(at, text.length());
        if (!number.lookingAt()) {
            throw wrong("a value is expected");
        }
        at = number.end();
        if (number.group(1).isEmpty() && number.group().replace("-", "").length() > MOST_DIGITS) {
            throw wrong("a number has too many digits");
        }
        try {
            return Long.valueOf(number.group());
        } catch (NumberFormatException otherNumber) {
            return Double.valueOf(number.group());
        }
    }

    /** Returns the same text as Python's {@code json.dumps(value, separators=(",", ":"))}. */
    static String write(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(entry -> write(entry.getKey()) + ":" + write(entry.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof Collection<?> values) {
            return values.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
        }
        return value instanceof String text ? quoted(text) : String.valueOf(value);
    }

    private static String quoted(String value) {
        StringBuilder text = new StringBuilder("\"");
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
        return text.append('"').toString();
    }
}
