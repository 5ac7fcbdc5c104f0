package fairlead.kafka;

import java.io.ByteArrayOutputStream;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigException;

/**
 * Verifies Ed25519 signatures with one of several public keys. During a change of keys, the old and the new key are
 * valid.
 */
final class Signatures {
    private static final byte[] DOMAIN = "fairlead-v2\0".getBytes(StandardCharsets.US_ASCII);

    /**
     * A text that is in the base64 of every Ed25519 private key (PKCS8 DER), and of no public key. It encodes the
     * algorithm and the beginning of the private key.
     */
    private static final String PRIVATE = "BQYDK2VwBCIEI";

    private final Map<String, PublicKey> keys = new TreeMap<>();

    private Signatures() {
    }

    /**
     * Parses public keys in the form {@code id:base64 of SPKI DER}, separated by commas. Returns null for null.
     *
     * @throws ConfigException the text is empty, is not a list of keys, repeats an id, or contains a private key
     */
    static Signatures of(String publicKeys) {
        if (publicKeys == null) {
            return null;
        }
        if (publicKeys.contains(PRIVATE)) {
            throw wrong("contains a private key, the planner's secret kafka.private_key. "
                + "Generate a new key pair, and give consumers only the public key");
        }
        Signatures signatures = new Signatures();
        for (String part : publicKeys.split(",", -1)) {
            String text = part.trim();
            int colon = text.indexOf(':');
            if (colon < 1 || colon == text.length() - 1) {
                throw wrong("is empty, or a key is not written as id:base64. To use no key, omit the option");
            }
            String id = text.substring(0, colon);
            if (signatures.keys.put(id, key(id, text.substring(colon + 1))) != null) {
                throw wrong("names the key '" + id + "' twice");
            }
        }
        return signatures;
    }

    private static PublicKey key(String id, String base64) {
        try {
            byte[] der = decode(base64);
            if (der == null) {
                throw wrong("has a key '" + id + "' that is not written as id:base64");
            }
            return KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(der));
        } catch (GeneralSecurityException error) {
            throw wrong("has a key '" + id + "' that is not an Ed25519 key in SPKI DER");
        }
    }

    private static ConfigException wrong(String what) {
        return new ConfigException(Settings.PUBLIC_KEYS + " " + what);
    }

    /** Throws an exception unless the signature of the message is valid for the key with this id. */
    void verify(String keyId, byte[] signature, byte[] message) throws InvalidPlanException {
        PublicKey key = keys.get(keyId);
        if (key == null) {
            throw new InvalidPlanException(
                "it is signed with key '" + keyId + "'; the trusted keys are " + String.join(", ", keys.keySet()));
        }
        boolean holds;
        try {
            Signature verifier = Signature.getInstance("Ed25519");
            verifier.initVerify(key);
            verifier.update(message);
            holds = verifier.verify(signature);
        } catch (GeneralSecurityException error) {
            holds = false;
        }
        if (!holds) {
            throw new InvalidPlanException("its signature with key '" + keyId + "' is invalid");
        }
    }

    /** Returns the bytes to sign for a list of fields. Different lists give different bytes. */
    static byte[] signedBytes(byte[]... fields) {
        ByteArrayOutputStream message = new ByteArrayOutputStream();
        message.writeBytes(DOMAIN);
        for (byte[] field : fields) {
            message.writeBytes(ByteBuffer.allocate(4).putInt(field.length).array());
            message.writeBytes(field);
        }
        return message.toByteArray();
    }

    /** Decodes base64 with padding; returns null if the text is not base64. */
    static byte[] decode(String base64) {
        if (base64.length() % 4 != 0) {
            return null;
        }
        try {
            return Base64.getDecoder().decode(base64.getBytes(StandardCharsets.UTF_8));
        } catch (IllegalArgumentException error) {
            return null;
        }
    }
}
