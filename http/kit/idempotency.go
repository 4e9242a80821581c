package kit

import (
	"net/http"

	"lieudit/http/problem"
)

// IdempotencyHeader is the header with the client's name for a request, so that it can be sent again without being done twice.
const IdempotencyHeader = "Idempotency-Key"

// ParseIdempotencyKey is the key of a request: 1 to 255 visible ASCII characters, or "" if it has none. Any other, or a second
// one, is a broken rule.
func ParseIdempotencyKey(h http.Header) (string, error) {
	values := h[IdempotencyHeader]
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", brokenKeyRule("value_error", "Value error, the header is given twice", []string{echoKey(values[0]), echoKey(values[1])})
	}
	key := values[0]
	isInvalid := key == "" || len(key) > 255
	for _, c := range []byte(key) {
		isInvalid = isInvalid || c <= ' ' || c > '~'
	}
	if isInvalid {
		return "", brokenKeyRule("string_pattern_mismatch", "String should match pattern '^[!-~]{1,255}$'", echoKey(key))
	}
	return key, nil
}

// echoKey is the part of a key that an answer echoes.
func echoKey(key string) string { return key[:min(len(key), 300)] }

// brokenKeyRule is a broken rule of the header. Its input has that header alone: of the others some are secret.
func brokenKeyRule(rule, msg string, sent any) error {
	return problem.Violations(problem.Violation{
		Type: rule, Loc: []any{"header", IdempotencyHeader}, Msg: msg, Input: map[string]any{IdempotencyHeader: sent},
	})
}
