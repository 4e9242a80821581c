package origin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/origin"
	"lieudit/schemas/refusal"
)

func TestEntriesAreKeptInOneForm(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	for typed, want := range map[string]string{
		"https://a.fr":                "https://a.fr",
		"  https://a.fr\t\n":          "https://a.fr",
		"https://A.Fr":                "https://a.fr",
		"HTTPS://a.fr":                "https://a.fr",
		"https://www.exemple.fr":      "https://www.exemple.fr",
		"https://*.a.fr":              "https://*.a.fr",
		"https://*.x.y.a.fr":          "https://*.x.y.a.fr",
		"https://café.fr":             "https://xn--caf-dma.fr",
		"https://CAFÉ.fr":             "https://xn--caf-dma.fr",
		"https://xn--caf-dma.fr":      "https://xn--caf-dma.fr",
		"https://*.café.fr":           "https://*.xn--caf-dma.fr",
		"https://cafe\u0301.fr":       "https://xn--caf-dma.fr", // the accent apart
		"https://ｅxemple.fr":          "https://exemple.fr",     // full width
		"https://a。fr":                "https://a.fr",           // ideographic full stop
		"https://1.fr":                "https://1.fr",
		"https://a-b.fr":              "https://a-b.fr",
		"https://qa--shop.netlify.io": "https://qa--shop.netlify.io",
		"https://" + long + ".fr":     "https://" + long + ".fr",
		"https://*.gouv.fr":           "https://*.gouv.fr",
		"https://*.co.uk":             "https://*.co.uk",
		"https://" + host253():        "https://" + host253(),
		"https://*.github.io":         "https://*.github.io",
		"https://straße.de":           "https://xn--strae-oqa.de",
		"https://x.127.0.0.1.nip.io":  "https://x.127.0.0.1.nip.io",
		"https://localhost.localhost": "https://localhost.localhost",
	} {
		got, err := origin.Parse(typed)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", typed, got, err, want)
		}
		if again, err := origin.Parse(got); err != nil || again != got {
			t.Errorf("kept form %q is read as %q, %v", got, again, err)
		}
	}
}

// host253 is a host as long as one may be.
func host253() string {
	label := strings.Repeat("a", 63)
	return strings.Join([]string{label, label, label, label[:61]}, ".")
}

func TestFaultyEntriesAreRefusedWithTheirText(t *testing.T) {
	t.Parallel()
	for typed, why := range map[string]string{
		// 1. https
		"http://a.fr": "https://", "a.fr": "https://", "//a.fr": "https://", "https:/a.fr": "https://", "https:a.fr": "https://",
		"ftp://a.fr": "https://", "": "https://", "   ": "https://", "null": "https://", "*": "https://", "*.a.fr": "https://",
		"httpſ://a.fr": "https://", "https//a.fr": "https://", "chrome-extension://abc": "https://",
		// 2. the domain alone
		"https://a.fr/": "chemin", "https://a.fr/x": "chemin", `https://a.fr\x`: "chemin", "https:///a.fr": "chemin",
		"https://a.fr?x=1": "paramètre", "https://a.fr?": "paramètre", "https://a.fr#x": "fragment", "https://a.fr#": "fragment",
		"https://a.fr:8443": "port", "https://a.fr:443": "port", "https://a.fr:": "port",
		"https://moi@a.fr": "utilisateur", "https://moi:secret@a.fr": "utilisateur",
		// 3. the star at the head
		"https://a.*.fr": "en tête", "https://*a.fr": "en tête", "https://a*.fr": "en tête", "https://**.a.fr": "en tête",
		"https://*.*.fr": "en tête", "https://x.*.a.fr": "en tête", "https://*": "en tête", "https://a.fr*": "en tête",
		// 4. two labels after it
		"https://*.fr": "deux labels", "https://*.localhost": "deux labels", "https://*.рф": "deux labels",
		"https://*.": "domaine manque",
		// hosts
		"https://": "domaine manque", "https://localhost": "deux labels", "https://com": "deux labels",
		"https://a.fr.": "point final", "https://*.a.fr.": "point final", "https://a.fr。": "point final",
		"https://.a.fr": "pas valide", "https://a..fr": "pas valide", "https://éxample..fr": "pas valide", "https://*..a.fr": "pas valide",
		"https://-a.fr": "pas valide", "https://a-.fr": "pas valide", "https://a_b.fr": "pas valide", "https://a b.fr": "pas valide",
		"https://a.fr,https://b.fr": "chemin", "https://a.fr https://b.fr": "chemin", "https://a%2efr": "pas valide", "https://xn--zzzz-.fr": "pas valide",
		"https://a\x00.fr": "pas valide", "https://a\n.fr": "pas valide", "https://" + strings.Repeat("a", 64) + ".fr": "pas valide",
		"https://a" + host253(): "253 caractères", "https://aaaaaaaaaaaa" + host253(): "262 caractères",
		// IP addresses, in each form browsers know
		"https://127.0.0.1": "IP", "https://[::1]": "IP", "https://１２７.0.0.1": "IP", "https://0x7f.1": "IP", "https://1.2.3": "IP",
		"https://a.1": "IP", "https://*.0.0.1": "IP", "https://127.0.0.0x1": "IP", "https://a.0x": "IP",
	} {
		_, err := origin.Parse(typed)
		invalid, ok := refusal.FromError(err)
		if !ok || invalid.Code != refusal.OriginInvalid {
			t.Errorf("Parse(%q) fails with %v, want that it is invalid", typed, err)
			continue
		}
		if !strings.Contains(invalid.Reason, why) {
			t.Errorf("Parse(%q) is refused for %s; want %q", typed, invalid.Reason, why)
		}
		if named := len(typed) < 200 && strings.TrimSpace(typed) != ""; named && !strings.Contains(err.Error(), "« "+typed+" »") {
			t.Errorf("message %q does not name %q as typed", err, typed)
		}
	}
}

func TestARefusalQuotesTheBeginningOfALongEntry(t *testing.T) {
	t.Parallel()
	_, err := origin.Parse("https://" + strings.Repeat("é", 1<<20))
	if err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "https://éé") {
		t.Errorf("message of %d bytes, want a short one that shows the beginning", len(err.Error()))
	}
}

func TestListsAreDeduplicatedThenCountedThenChecked(t *testing.T) {
	t.Parallel()
	ten := make([]string, 10)
	for i := range ten {
		ten[i] = "https://" + string(rune('a'+i)) + ".fr"
	}
	got, err := origin.ParseList(append(ten, "https://A.fr", " https://b.fr "))
	if err != nil || !cmp.Equal(got, ten) {
		t.Errorf("ten origins and two repetitions: %q, %v; want the ten in their order", got, err)
	}
	if _, err := origin.ParseList(append(ten, "http://k.fr", "http://k.fr")); !errors.Is(err, refusal.TooManyOrigins.With(refusal.Details{Limit: 10, Count: 11})) {
		t.Errorf("ten origins and a faulty one: %v, want too many: 11", err)
	}
	_, err = origin.ParseList([]string{"https://a.fr", "x", "y"})
	if invalid, _ := refusal.FromError(err); invalid.Code != refusal.OriginInvalid || invalid.Typed != "x" {
		t.Errorf("two faulty entries: %v, want the first", err)
	}
	for _, none := range [][]string{nil, {}} {
		if _, err := origin.ParseList(none); !errors.Is(err, refusal.OriginInvalid) || !strings.Contains(err.Error(), "de 1 à 10") {
			t.Errorf("no entries: %v, want that it is invalid", err)
		}
	}
}

func TestWildcardsOverPublicSuffixesAreWarnedOf(t *testing.T) {
	t.Parallel()
	kept := []string{"https://*.gouv.fr", "https://a.fr", "https://*.github.io", "https://*.a.fr", "https://gouv.fr", "https://*.co.uk", "https://*.x.gouv.fr"}
	got := origin.Warnings(kept)
	if len(got) != 3 {
		t.Fatalf("%d warnings, want 3: %q", len(got), got)
	}
	for i, o := range []string{kept[0], kept[2], kept[5]} {
		if !strings.Contains(got[i], o) {
			t.Errorf("warning %q does not name %s", got[i], o)
		}
	}
}

func FuzzParseKeepsOnlyWhatItReadsAgain(f *testing.F) {
	for _, seed := range []string{"https://a.fr", "https://*.café.fr", "https://a.fr:443", "https://１２７.0.0.1", "HTTPS://*.A.FR", "https://xn--a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		kept, err := origin.Parse(typed)
		if err != nil {
			return
		}
		if again, err := origin.Parse(kept); err != nil || again != kept {
			t.Errorf("%q is kept as %q, which is read as %q, %v", typed, kept, again, err)
		}
		host, ok := strings.CutPrefix(kept, "https://")
		host = strings.TrimPrefix(host, "*.")
		if !ok || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || strings.Count(host, ".") < 1 {
			t.Errorf("%q is kept as %q", typed, kept)
		}
	})
}

func TestEveryEntryOfAListGetsItsVerdict(t *testing.T) {
	t.Parallel()
	typed := []string{"https://a.fr", " HTTPS://A.FR ", "http://a.fr", "https://*.gouv.fr", "https://é.fr", "", "https://a.fr:8443", "http://a.fr"}
	got, err := origin.JudgeList(typed)
	if !errors.Is(err, refusal.OriginInvalid) || !strings.Contains(err.Error(), "http://a.fr") {
		t.Errorf("the list: %v", err)
	}
	for i, want := range []origin.Verdict{
		{Kept: "https://a.fr"}, {Kept: "https://a.fr", Repeated: true}, {Fault: origin.NotHTTPS}, {Kept: "https://*.gouv.fr"},
		{Kept: "https://xn--9ca.fr"}, {Fault: origin.NotHTTPS}, {Fault: origin.HasPort}, {Fault: origin.NotHTTPS, Repeated: true},
	} {
		v := got[i]
		if v.Typed != typed[i] || v.Kept != want.Kept || v.Fault != want.Fault || v.Repeated != want.Repeated || (v.Warning != "") != (i == 3) || (v.Refusal != nil) != (want.Fault != "") {
			t.Errorf("%q: got %+v, want %+v", typed[i], v, want)
		}
		if _, err := origin.Parse(typed[i]); v.Refusal != nil && err.Error() != v.Refusal.Error() {
			t.Errorf("%q: %v, where declaring it alone is refused with %v", typed[i], v.Refusal, err)
		}
	}
}

// The tester answers about the header that a browser would send for what people have: the address of a page.
func TestThePageOfAnAddressHasAnOrigin(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://www.exemple.fr":             "https://www.exemple.fr",
		" https://www.exemple.fr/a/b?c=d#e ": "https://www.exemple.fr",
		"HTTPS://WWW.Exemple.FR:443/":        "https://www.exemple.fr",
		"https://www.exemple.fr:8443/x":      "https://www.exemple.fr:8443",
		"http://localhost:3000/x":            "http://localhost:3000",
		"http://exemple.fr:80":               "http://exemple.fr",
		"www.exemple.fr/boutiques":           "https://www.exemple.fr",
		"https://café.fr/":                   "https://xn--caf-dma.fr",
		"https://moi:secret@exemple.fr/":     "https://exemple.fr",
		"https://[::1]:8443/":                "https://[::1]:8443",
		"file:///home/moi/page.html":         "null",
		"null":                               "null",
		"":                                   "",
		"pas une adresse":                    "pas une adresse",
		"https://":                           "https://",
		"https://a b.fr/":                    "https://a b.fr/",
	} {
		if got := origin.OfPage(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
