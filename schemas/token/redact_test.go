package token_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"lieudit/schemas/token"
)

func TestOnlyWholeTokensAreConcealed(t *testing.T) {
	t.Parallel()
	p := token.DefaultPrefixes
	s, k := p.New(token.Secret), p.New(token.Publishable)
	for text, want := range map[string]string{
		"":                              "",
		"nothing here":                  "nothing here",
		s:                               p.Hint(s),
		"leaked " + s + ", as was " + k: "leaked " + p.Hint(s) + ", as was " + p.Hint(k),
		s + k:                           p.Hint(s) + p.Hint(k),
		"ld_sk_" + s:                    "ld_sk_" + p.Hint(s),
		"ld_sk_ is the prefix":          "ld_sk_ is the prefix",
		"cut: " + s[:30]:                "cut: " + s[:30],
		"hint: " + p.Hint(s):            "hint: " + p.Hint(s),
	} {
		if got := p.RedactValidTokens(text); got != want {
			t.Errorf("Conceal(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTokensInATextBecomeTheirHints(t *testing.T) {
	t.Parallel()
	p := token.DefaultPrefixes
	s, k, a := p.New(token.Secret), p.New(token.Publishable), p.New(token.Area)
	session, link := p.New(token.Session), p.New(token.Link)
	for text, want := range map[string]string{
		"":                             "",
		"nothing here":                 "nothing here",
		s:                              p.Hint(s),
		s + k + "," + a:                "ld_sk_…," + p.Hint(a),
		"Bearer " + s + " and " + k:    "Bearer " + p.Hint(s) + " and " + p.Hint(k),
		`{"token":"` + a + `"}`:        `{"token":"` + p.Hint(a) + `"}`,
		"GET /entree/" + link + " 200": "GET /entree/" + p.Hint(link) + " 200",
		"Cookie: c=" + session + "; x": "Cookie: c=" + p.Hint(session) + "; x",
		"ld_sk_ is the prefix":         "ld_sk_ is the prefix",
		"cut: " + s[:30]:               "cut: ld_sk_…",
		"hint: " + p.Hint(s) + " ok":   "hint: " + p.Hint(s) + " ok",
		"ld_sk_ld_sk_" + s[6:] + "\n":  "ld_sk_…\n",
	} {
		got := p.Redact(text)
		if got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
		for _, secret := range []string{s, k, a, session, link} {
			if strings.Contains(got, secret[6:30]) {
				t.Errorf("Redact(%q) = %q still tells a token", text, got)
			}
		}
	}
}

// A prefix that was configured before there were sessions may begin theirs.
func TestSessionsAndLinksAreConcealedWithAnyPrefixes(t *testing.T) {
	t.Parallel()
	for _, p := range []token.Prefixes{{Secret: "ld_", Publishable: "pk_", Area: "ct_"}, {Secret: "L", Publishable: "k", Area: "ld_ln_x"}, {Secret: "l", Publishable: "k", Area: "j"}, {Secret: "d", Publishable: "ld_se", Area: "e"}} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
		for _, kind := range []token.Kind{token.Secret, token.Publishable, token.Area, token.Session, token.Link} {
			text := p.New(kind)
			if got, ok := p.KindOf(text); !ok || got != kind {
				t.Errorf("%+v: %s is of kind %q", p, text, got)
			}
			if got := p.Redact("/" + text); strings.Contains(got, text[len(text)-20:len(text)-4]) {
				t.Errorf("%+v: %s is shown as %s", p, text, got)
			}
		}
	}
	for _, taken := range []string{"ld_se_", "ld_ln_"} {
		if (token.Prefixes{Secret: taken, Publishable: "b", Area: "c"}).Validate() == nil {
			t.Errorf("%s is taken", taken)
		}
	}
}

func TestRedactingATextWithoutTokensAllocatesNothing(t *testing.T) {
	line := strings.Repeat("GET /services/v1/me 200 12ms ", 20)
	if n := testing.AllocsPerRun(100, func() { token.DefaultPrefixes.Redact(line) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

type tokenValuer struct{ Key string }

func (s tokenValuer) LogValue() slog.Value { return slog.StringValue(s.Key) }

func TestLogLinesHoldNoToken(t *testing.T) {
	t.Parallel()
	p := token.DefaultPrefixes
	text := p.New(token.Secret)
	var out strings.Builder
	log := slog.New(p.RedactingHandler(slog.NewTextHandler(&out, nil)))
	log.With("with", text).WithGroup("g").Error("message "+text,
		"string", text, "error", fmt.Errorf("wrapped: %w", errors.New(text)), "struct", struct{ Key string }{text},
		"group", slog.GroupValue(slog.String("in", text)), "valuer", tokenValuer{text}, "map", map[string]string{"k": text},
		"bytes", []byte("plain"), "n", 3)
	got := out.String()
	if strings.Contains(got, text[6:38]) {
		t.Errorf("line tells the token: %s", got)
	}
	if n := strings.Count(got, p.Hint(text)); n != 8 {
		t.Errorf("%d hints, want 8: %s", n, got)
	}
	if !strings.Contains(got, "g.n=3") {
		t.Errorf("the rest of the line is lost: %s", got)
	}
}

func BenchmarkRedact(b *testing.B) {
	line := strings.Repeat("GET /services/v1/me 200 12ms ", 5) + token.DefaultPrefixes.New(token.Secret)
	b.ReportAllocs()
	for b.Loop() {
		token.DefaultPrefixes.Redact(line)
	}
}
