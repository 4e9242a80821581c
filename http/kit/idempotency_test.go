package kit_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"lieudit/http/kit"
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
		got, err := kit.ParseIdempotencyKey(http.Header{"Idempotency-Key": c.sent})
		if (err == nil) != c.ok || c.ok && c.sent != nil && got != c.sent[0] {
			t.Errorf("%q: %q, %v", c.sent, got, err)
		}
		if err != nil && problem.StatusOf(err) != 422 {
			t.Errorf("%q: %v", c.sent, err)
		}
	}
}

func TestASecondIdempotencyKeyIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	_, err := kit.ParseIdempotencyKey(http.Header{"Idempotency-Key": {"a", strings.Repeat("b", 1000)}})
	p, _ := problem.FromError(err)
	got, err := json.Marshal(p.Body)
	want := `{"detail":[{"type":"value_error","loc":["header","Idempotency-Key"],"msg":"Value error, the header is given twice","input":{"Idempotency-Key":["a","` + strings.Repeat("b", 300) + `"]}}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
