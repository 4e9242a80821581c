package api

import (
	"net/http"
	"strings"
	"testing"

	"lieudit/http/problem"
)

func TestAnIdempotencyKeyIsOfVisibleCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent []string
		ok   bool
	}{
		{nil, true}, {[]string{"a"}, true}, {[]string{"!~\"é"[:3]}, true}, {[]string{strings.Repeat("x", 255)}, true},
		{[]string{""}, false}, {[]string{strings.Repeat("x", 256)}, false}, {[]string{"a b"}, false}, {[]string{"é"}, false}, {[]string{"a\x7f"}, false},
		{[]string{"a", "a"}, false},
	} {
		got, err := parseIdempotencyKey(http.Header{"Idempotency-Key": c.sent})
		if (err == nil) != c.ok || c.ok && c.sent != nil && got != c.sent[0] {
			t.Errorf("%q: %q, %v", c.sent, got, err)
		}
		if err != nil && problem.StatusOf(err) != 422 {
			t.Errorf("%q: %v", c.sent, err)
		}
	}
}
