package origin_test

import (
	"net/url"
	"strings"
	"testing"

	"lieudit/schemas/origin"
)

// matchCases is the table of requests: the header, a declared entry, and whether they go together.
var matchCases = []struct {
	header, entry string
	want          bool
}{
	{"null", "https://a.fr", false},
	{"", "https://a.fr", false},
	{"https://a.fr", "https://a.fr", true},
	{"HTTPS://A.FR", "https://a.fr", true},
	{"http://a.fr", "https://a.fr", false},
	{"https://a.fr:443", "https://a.fr", true},
	{"https://a.fr:8443", "https://a.fr", false},
	{"https://a.fr:4430", "https://a.fr", false},
	{"https://a.fr:", "https://a.fr", false},
	{"https://a.fr:443:443", "https://a.fr", false},
	{"https://a.fr.", "https://a.fr", false},
	{"https://a.fr/", "https://a.fr", false},
	{"https://a.fr/x", "https://a.fr", false},
	{"https://a.fr?x", "https://a.fr", false},
	{"https://a.fr https://b.fr", "https://a.fr", false},
	{" https://a.fr", "https://a.fr", false},
	{"https://moi@a.fr", "https://a.fr", false},
	{"https://x.a.fr", "https://a.fr", false},
	{"https://x.a.fr", "https://*.a.fr", true},
	{"https://y.x.a.fr", "https://*.a.fr", true},
	{"HTTPS://X.A.FR:443", "https://*.a.fr", true},
	{"https://my_shop.a.fr", "https://*.a.fr", true}, // browsers allow it in a host
	{"https://a.fr", "https://*.a.fr", false},
	{"https://.a.fr", "https://*.a.fr", false},
	{"https://x..a.fr", "https://*.a.fr", false},
	{"https://.x.a.fr", "https://*.a.fr", false},
	{"https://x.a.fr.", "https://*.a.fr", false},
	{"https://evila.fr", "https://*.a.fr", false},
	{"https://evil.com/.a.fr", "https://*.a.fr", false},
	{"https://evil.com#.a.fr", "https://*.a.fr", false},
	{"https://evil.com@x.a.fr", "https://*.a.fr", false},
	{"https://evil.com:443.a.fr", "https://*.a.fr", false},
	{"https://*.a.fr", "https://*.a.fr", false},
	{"https://a.fr.evil.com", "https://a.fr", false},
	{"https://x.a.fr.evil.com", "https://*.a.fr", false},
	{"https://xn--caf-dma.fr", "https://café.fr", true},
	{"https://XN--CAF-DMA.fr", "https://café.fr", true},
	{"https://café.fr", "https://café.fr", false}, // no browser sends U-labels
	{"https://\u212a.fr", "https://k.fr", false},  // the Kelvin sign folds to k
	{"httpſ://a.fr", "https://a.fr", false},
	{"https://x.a.fr", "https://*.x.a.fr", false},
	{"https://", "https://a.fr", false},
	{"https://:443", "https://a.fr", false},
	{"chrome-extension://abcdef", "https://a.fr", false},
	{"file://", "https://a.fr", false},
}

// matches reports whether a request with a header is admitted by a key's origins.
func matches(header string, kept ...string) bool {
	_, err := origin.Admit([]string{header}, kept)
	return err == nil
}

func TestRequestsMatchTheDeclaredOriginsOnly(t *testing.T) {
	t.Parallel()
	for _, row := range matchCases {
		kept, err := origin.Parse(row.entry)
		if err != nil {
			t.Fatal(err)
		}
		if got := matches(row.header, "https://other.fr", kept); got != row.want {
			t.Errorf("Origin %q with %s declared: %v, want %v", row.header, row.entry, got, row.want)
		}
	}
	if matches("https://a.fr") {
		t.Error("an origin matches where none is declared")
	}
}

func TestMatchingAllocatesNothing(t *testing.T) {
	kept := []string{"https://x.fr", "https://*.b.fr", "https://a.fr"}
	for _, header := range []string{"https://a.fr", "HTTPS://X.Y.B.FR:443", "null", "https://nowhere.fr"} {
		sent := []string{header}
		if n := testing.AllocsPerRun(100, func() { origin.Admit(sent, kept) }); n != 0 {
			t.Errorf("Admit(%q) allocates %v times, want none", header, n)
		}
	}
}

func FuzzMatchAgreesWithMatchByLabels(f *testing.F) {
	for _, row := range matchCases {
		f.Add(row.header, row.entry)
	}
	f.Fuzz(func(t *testing.T, header, entry string) {
		kept, err := origin.Parse(entry)
		if err != nil {
			return
		}
		if got, want := matches(header, kept), matchByLabels(header, kept); got != want {
			t.Errorf("Origin %q with %s declared: %v, want %v", header, kept, got, want)
		}
	})
}

// matchByLabels takes a header apart as a URL, and compares whole labels from the right.
func matchByLabels(header, kept string) bool {
	for _, c := range header {
		if c > 127 || strings.ContainsRune("/?#@\\%", c) && !strings.HasPrefix(strings.ToLower(header), "https://") {
			return false
		}
	}
	u, err := url.Parse(strings.ToLower(header))
	if err != nil || u.Scheme != "https" || "https://"+u.Host != strings.ToLower(header) || strings.HasSuffix(u.Host, ":") {
		return false
	}
	if port := u.Port(); port != "" && port != "443" {
		return false
	}
	host, want := strings.Split(u.Hostname(), "."), strings.Split(strings.TrimPrefix(kept, "https://"), ".")
	if want[0] != "*" {
		return strings.Join(host, ".") == strings.Join(want, ".")
	}
	want = want[1:]
	if len(host) <= len(want) || strings.Join(host[len(host)-len(want):], ".") != strings.Join(want, ".") {
		return false
	}
	for _, label := range host[:len(host)-len(want)] {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

func BenchmarkMatch(b *testing.B) {
	kept := []string{"https://x.fr", "https://www.y.fr", "https://*.b.fr", "https://a.fr"}
	sent := []string{"https://www.shop.b.fr"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := origin.Admit(sent, kept); err != nil {
			b.Fatal("no match")
		}
	}
}
