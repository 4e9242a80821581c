package token_test

import (
	"regexp"
	"strings"
	"testing"

	"lieudit/schemas/token"
)

var kinds = []token.Kind{token.Secret, token.Publishable, token.Area}

func TestTokensAreAPrefix32CharactersAndACheck(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		form := regexp.MustCompile("^" + token.DefaultPrefixes.PrefixOf(k) + "[0-9A-Za-z]{38}$")
		seen := map[string]bool{}
		for range 1000 {
			text := token.DefaultPrefixes.New(k)
			if !form.MatchString(text) || seen[text] {
				t.Fatalf("%s token %q is not new and of the form %s", k, text, form)
			}
			seen[text] = true
			if got, ok := token.DefaultPrefixes.KindOf(text); !ok || got != k {
				t.Fatalf("Kind(%q) = %q, %v; want %q", text, got, ok, k)
			}
		}
	}
}

func TestTheCheckIsCRC32InBase62(t *testing.T) {
	t.Parallel()
	text := token.DefaultPrefixes.New(token.Secret)
	if got, want := text[38:], base62(crcBitByBit(text[:38])); got != want {
		t.Errorf("check of %q is %s, want %s", text[:38], got, want)
	}
}

// crcBitByBit is CRC-32 (IEEE) by its definition.
func crcBitByBit(text string) uint32 {
	sum := ^uint32(0)
	for _, c := range []byte(text) {
		sum ^= uint32(c)
		for range 8 {
			sum = sum>>1 ^ 0xedb88320*(sum&1)
		}
	}
	return ^sum
}

func base62(n uint32) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out := ""
	for range 6 {
		out = string(digits[n%62]) + out
		n /= 62
	}
	return out
}

func TestCharactersAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	const tokens = 4000
	count := map[rune]float64{}
	for range tokens {
		for _, c := range token.DefaultPrefixes.New(token.Secret)[6:38] {
			count[c]++
		}
	}
	want, chi := float64(tokens*32)/62, 0.0
	for _, n := range count {
		chi += (n - want) * (n - want) / want
	}
	// 61 degrees of freedom: above 140 once in 10^7 runs; bytes taken modulo 62 give some 1,000.
	if len(count) != 62 || chi > 140 {
		t.Errorf("%d characters with chi-squared %.0f, want 62 with under 140", len(count), chi)
	}
}

func TestEveryEditOfOneCharacterIsRefused(t *testing.T) {
	t.Parallel()
	text := token.DefaultPrefixes.New(token.Secret)
	for i := range len(text) {
		for _, c := range "0aZ_-é" {
			if string(c) == text[i:i+1] {
				continue
			}
			edited := text[:i] + string(c) + text[i+1:]
			if k, ok := token.DefaultPrefixes.KindOf(edited); ok {
				t.Errorf("%q, edited at %d, is a %s token", edited, i, k)
			}
		}
	}
}

func TestAPublishableTokenCannotBeEditedIntoASecretOne(t *testing.T) {
	t.Parallel()
	p := token.DefaultPrefixes
	for _, from := range kinds {
		for _, to := range kinds {
			edited := p.PrefixOf(to) + strings.TrimPrefix(p.New(from), p.PrefixOf(from))
			if _, ok := p.KindOf(edited); ok != (from == to) {
				t.Errorf("a %s token with the prefix of a %s one: well formed is %v", from, to, ok)
			}
		}
	}
}

func TestMalformedTokenHasNoKind(t *testing.T) {
	t.Parallel()
	text := token.DefaultPrefixes.New(token.Secret)
	for _, bad := range []string{
		"", "ld_sk_", text[:len(text)-1], text + "0", " " + text, text + "\n", strings.ToUpper(text), text[6:],
		"ld_xk_" + text[6:], strings.Repeat("a", 1<<20), "ld_sk_" + strings.Repeat("é", 19),
	} {
		if k, ok := token.DefaultPrefixes.KindOf(bad); ok {
			t.Errorf("Kind(%.60q) = %q, want none", bad, k)
		}
		if got := token.DefaultPrefixes.Hint(bad); got != "…" {
			t.Errorf("Hint(%.60q) = %q, want …", bad, got)
		}
	}
}

func TestHintShowsPrefixAndLastFour(t *testing.T) {
	t.Parallel()
	text := token.DefaultPrefixes.New(token.Area)
	if got, want := token.DefaultPrefixes.Hint(text), "ld_ct_…"+text[len(text)-4:]; got != want {
		t.Errorf("Hint = %q, want %q", got, want)
	}
}

func TestPrefixesMustNotBeginEachOther(t *testing.T) {
	t.Parallel()
	for _, bad := range []token.Prefixes{
		{}, {"", "b", "c"}, {"a", "", "c"}, {"a", "b", ""}, {"x", "x", "c"}, {"adr", "adr_pk", "c"}, {"a", "b_", "b"},
		{"a b", "c", "d"}, {"é", "c", "d"}, {"a\n", "c", "d"}, {"a.", "c", "d"},
	} {
		if bad.Validate() == nil {
			t.Errorf("prefixes %+v are valid", bad)
		}
	}
	for _, good := range []token.Prefixes{token.DefaultPrefixes, {"adr_sk_", "adr_pk_", "adr_ct_"}, {"a", "b", "c"}} {
		if err := good.Validate(); err != nil {
			t.Errorf("prefixes %+v: %v", good, err)
		}
		if k, ok := good.KindOf(good.New(token.Publishable)); !ok || k != token.Publishable {
			t.Errorf("a publishable token with prefixes %+v is of kind %q", good, k)
		}
	}
}

func FuzzOnlyWellFormedTokensHaveAKind(f *testing.F) {
	f.Add("ld_sk_")
	f.Add(token.DefaultPrefixes.New(token.Publishable))
	f.Fuzz(func(t *testing.T, text string) {
		k, ok := token.DefaultPrefixes.KindOf(text)
		if !ok {
			return
		}
		if want := text[:38] + base62(crcBitByBit(text[:38])); text != want || !strings.HasPrefix(text, token.DefaultPrefixes.PrefixOf(k)) {
			t.Errorf("Kind(%q) = %q", text, k)
		}
	})
}

func BenchmarkKindAndHash(b *testing.B) {
	text := token.DefaultPrefixes.New(token.Secret)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := token.DefaultPrefixes.KindOf(text); !ok {
			b.Fatal("not a token")
		}
		token.HashOf(text)
	}
}

func TestADerivedTokenFollowsFromItsSecret(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range kinds {
		for i := range 1000 {
			secret := []byte{byte(i), byte(i >> 8)}
			text := token.DefaultPrefixes.Derive(k, secret)
			if got, ok := token.DefaultPrefixes.KindOf(text); !ok || got != k || seen[text] {
				t.Fatalf("%q of %v is not a new %s token", text, secret, k)
			}
			if seen[text] = true; token.DefaultPrefixes.Derive(k, secret) != text {
				t.Fatalf("%v gives two tokens", secret)
			}
		}
	}
	// The published tokens of a program must be those of the next one, for as long as a request can be repeated.
	if got, want := token.DefaultPrefixes.Derive(token.Secret, make([]byte, 32)), "ld_sk_eWtVfay6L9sX36VoZs01JTZfBDRMUdrz4fpxkD"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
