package clientip_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"lieudit/http/clientip"
)

// newFinder returns a Finder that trusts a list.
func newFinder(t testing.TB, list string) *clientip.Finder {
	t.Helper()
	trusted, err := clientip.ParseTrusted(list)
	if err != nil {
		t.Fatal(err)
	}
	return clientip.NewFinder(trusted, slog.New(slog.DiscardHandler))
}

// newRequest returns a request from an address with headers, each as "Name: value".
func newRequest(remote string, headers ...string) *http.Request {
	r := &http.Request{RemoteAddr: remote, Header: http.Header{}}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

func TestTheClientIsTheLastAddressThatIsNoTrustedProxys(t *testing.T) {
	t.Parallel()
	const proxy = "10.0.0.1:4000"
	for _, c := range []struct {
		rule, remote string
		headers      []string
		want         string // "": the address of the proxy
	}{
		{"no header", proxy, nil, ""},
		{"a header of a connection that is not trusted", "192.0.2.7:1", []string{"X-Forwarded-For: 203.0.113.9"}, "192.0.2.7"},
		{"one address", proxy, []string{"X-Forwarded-For: 203.0.113.9"}, "203.0.113.9"},
		{"the last of several", proxy, []string{"X-Forwarded-For: 198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		{"the last of several lines", proxy, []string{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 203.0.113.9"}, "203.0.113.9"},
		{"trusted proxies behind one another", proxy, []string{"X-Forwarded-For: 198.51.100.1,203.0.113.9,10.0.0.2", "X-Forwarded-For: 10.0.0.3"}, "203.0.113.9"},
		{"all are trusted", proxy, []string{"X-Forwarded-For: 10.0.0.9, 10.0.0.2"}, "10.0.0.9"},
		{"a port", proxy, []string{"X-Forwarded-For: 203.0.113.9:5000"}, "203.0.113.9"},
		{"IPv6", proxy, []string{"X-Forwarded-For: 2001:db8::9"}, "2001:db8::9"},
		{"IPv6 in brackets", proxy, []string{"X-Forwarded-For: [2001:db8::9]"}, "2001:db8::9"},
		{"IPv6 with a port", proxy, []string{"X-Forwarded-For: [2001:db8::9]:5000"}, "2001:db8::9"},
		{"IPv6 with a zone", proxy, []string{"X-Forwarded-For: fe80::9%eth0"}, "fe80::9"},
		{"IPv4 within IPv6", proxy, []string{"X-Forwarded-For: ::ffff:203.0.113.9"}, "203.0.113.9"},
		{"a proxy within IPv6", "[::ffff:10.0.0.1]:4000", []string{"X-Forwarded-For: 203.0.113.9"}, "203.0.113.9"},
		{"empty elements", proxy, []string{"X-Forwarded-For: , 203.0.113.9 ,, "}, "203.0.113.9"},
		{"an empty line", proxy, []string{"X-Forwarded-For: "}, ""},
		{"unknown", proxy, []string{"X-Forwarded-For: 203.0.113.9, unknown"}, ""},
		{"unknown before a trusted proxy", proxy, []string{"X-Forwarded-For: 203.0.113.9, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"leading noughts", proxy, []string{"X-Forwarded-For: 203.0.113.009"}, ""},
		{"an open bracket", proxy, []string{"X-Forwarded-For: [2001:db8::9"}, ""},
		{"words behind a bracket", proxy, []string{"X-Forwarded-For: [2001:db8::9]x"}, ""},
		{"IPv4 in brackets", proxy, []string{"X-Forwarded-For: [203.0.113.9]"}, ""},
		{"a host's name", proxy, []string{"X-Forwarded-For: localhost"}, ""},
		{"a long line", proxy, []string{"X-Forwarded-For: " + strings.Repeat("198.51.100.1, ", 4000) + "203.0.113.9"}, "203.0.113.9"},

		{"RFC 7239", proxy, []string{"Forwarded: for=203.0.113.9;proto=https;by=10.0.0.1"}, "203.0.113.9"},
		{"RFC 7239 in capitals", proxy, []string{"Forwarded: Proto=http; FOR=203.0.113.9"}, "203.0.113.9"},
		{"RFC 7239 in quotes", proxy, []string{`Forwarded: for="[2001:db8::9]:5000"`}, "2001:db8::9"},
		{"RFC 7239, several", proxy, []string{"Forwarded: for=198.51.100.1, for=203.0.113.9", "Forwarded: for=10.0.0.2"}, "203.0.113.9"},
		{"RFC 7239, separators in quotes", proxy, []string{`Forwarded: for=198.51.100.1;host="a\",b;c", for=203.0.113.9`}, "203.0.113.9"},
		{"RFC 7239, obfuscated", proxy, []string{"Forwarded: for=198.51.100.1, for=_hidden"}, ""},
		{"RFC 7239, unknown", proxy, []string{"Forwarded: for=198.51.100.1, for=unknown"}, ""},
		{"RFC 7239, obfuscated port", proxy, []string{`Forwarded: for="203.0.113.9:_p"`}, "203.0.113.9"},
		{"RFC 7239, none", proxy, []string{"Forwarded: for=198.51.100.1, proto=https"}, ""},
		{"RFC 7239, two in one element", proxy, []string{"Forwarded: for=198.51.100.1;for=203.0.113.9"}, ""},
		{"RFC 7239, a quote that stays open", proxy, []string{`Forwarded: for="198.51.100.1, for=203.0.113.9`}, ""},
		{"RFC 7239, a quote opened by the client on a line of its own", proxy, []string{`Forwarded: for="`, "Forwarded: for=203.0.113.9"}, "203.0.113.9"},

		{"both alike", proxy, []string{"X-Forwarded-For: 203.0.113.9", "Forwarded: for=198.51.100.1, for=203.0.113.9"}, "203.0.113.9"},
		{"both, and they differ", proxy, []string{"X-Forwarded-For: 203.0.113.9", "Forwarded: for=198.51.100.1"}, ""},
		{"both, and one cannot be read", proxy, []string{"X-Forwarded-For: 203.0.113.9", "Forwarded: x"}, ""},
		{"no address of the connection", "@", []string{"X-Forwarded-For: 203.0.113.9"}, "invalid IP"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			want := c.want
			if want == "" {
				want = "10.0.0.1"
			}
			if got := newFinder(t, "10.0.0.0/8").FindClient(newRequest(c.remote, c.headers...)); got.String() != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// FuzzFindClient: whatever a client sends, it is the address that the proxy was connected from, or it hides behind the proxy.
func FuzzFindClient(f *testing.F) {
	for _, seed := range [][2]string{
		{"198.51.100.1", `for=198.51.100.1`}, {`"`, `for="`}, {"unknown, [", `for="[::1]`}, {"10.0.0.9", `for=10.0.0.9;for=a\`}, {"", ""}, {",", `;,"\"`},
	} {
		f.Add(seed[0], seed[1])
	}
	client, proxy := netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("10.0.0.1")
	finder := newFinder(f, "10.0.0.1")
	f.Fuzz(func(t *testing.T, list, pairs string) {
		for _, c := range []struct {
			name    string
			headers []string
			mayHide bool
		}{
			{"the proxy appends to the line", []string{"X-Forwarded-For: " + list + ", 203.0.113.9"}, false},
			{"the proxy adds a line", []string{"X-Forwarded-For: " + list, "X-Forwarded-For: 203.0.113.9"}, false},
			{"the proxy appends to the line of RFC 7239", []string{"Forwarded: " + pairs + ", for=203.0.113.9"}, true},
			{"the proxy adds a line of RFC 7239", []string{"Forwarded: " + pairs, "Forwarded: for=203.0.113.9"}, false},
			{"the proxy passes the other header on", []string{"X-Forwarded-For: " + list + ", 203.0.113.9", "Forwarded: " + pairs}, true},
			{"the proxy of RFC 7239 passes the other header on", []string{"X-Forwarded-For: " + list, "Forwarded: for=203.0.113.9"}, true},
		} {
			if got := finder.FindClient(newRequest("10.0.0.1:1", c.headers...)); got != client && (!c.mayHide || got != proxy) {
				t.Errorf("%s: got %s, want %s", c.name, got, client)
			}
		}
	})
}

func TestTrustedProxiesAreAddressesAndPrefixes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ list, want, complaint string }{
		{list: "", want: "[]"},
		{list: "10.0.0.0/8, 192.0.2.1 ,,2001:db8::/32", want: "[10.0.0.0/8 192.0.2.1/32 2001:db8::/32]"},
		{list: "10.1.2.3/8", want: "[10.0.0.0/8]"},
		{list: "::ffff:10.0.0.1", want: "[10.0.0.1/32]"},
		{list: "10.0.0.0/8,proxy.example", complaint: `"proxy.example" is neither`},
		{list: "10.0.0.0/33", complaint: "is neither"},
		{list: "0.0.0.0/0", complaint: "trusts everybody"},
		{list: "::/0", complaint: "trusts everybody"},
	} {
		got, err := clientip.ParseTrusted(c.list)
		if c.complaint != "" {
			if err == nil || !strings.Contains(err.Error(), c.complaint) {
				t.Errorf("%q: got error %v, want %q in it", c.list, err, c.complaint)
			}
			continue
		}
		if text := strings.TrimSpace(joinPrefixes(got)); err != nil || "["+text+"]" != c.want {
			t.Errorf("%q: got [%s], %v; want %s", c.list, text, err, c.want)
		}
	}
}

// joinPrefixes writes prefixes with spaces between them.
func joinPrefixes(all []netip.Prefix) string {
	var out strings.Builder
	for _, p := range all {
		out.WriteString(p.String() + " ")
	}
	return out.String()
}

func TestAProxyThatIsNotTrustedIsToldOfOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, trusted, remote, header string
		told                          bool
	}{
		{"from this machine", "", "127.0.0.1:1", "X-Forwarded-For: 203.0.113.9", true},
		{"from this machine over IPv6", "", "[::1]:1", "Forwarded: for=203.0.113.9", true},
		{"from a private network", "", "192.168.1.9:1", "X-Forwarded-For: 203.0.113.9", true},
		{"another than the trusted one", "10.0.0.1", "10.0.0.2:1", "X-Forwarded-For: 203.0.113.9", true},
		{"the trusted one", "10.0.0.1", "10.0.0.1:1", "X-Forwarded-For: 203.0.113.9", false},
		{"from the internet, where any client may send one", "", "203.0.113.9:1", "X-Forwarded-For: 198.51.100.1", false},
		{"without a header", "", "127.0.0.1:1", "Accept: */*", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			trusted, err := clientip.ParseTrusted(c.trusted)
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			finder, served := clientip.NewFinder(trusted, slog.New(slog.NewTextHandler(&log, nil))), 0
			h := finder.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
			for range 3 {
				h.ServeHTTP(httptest.NewRecorder(), newRequest(c.remote, c.header))
			}
			if served != 3 {
				t.Errorf("%d requests were served, want 3", served)
			}
			want := 0
			if c.told {
				want = 1
			}
			if got := strings.Count(log.String(), "--trusted-proxies"); got != want {
				t.Errorf("it was logged %d times, want %d: %s", got, want, log.String())
			}
			if got := finder.Check(context.Background()); (got != nil) != c.told {
				t.Errorf("readiness says %v, want something: %v", got, c.told)
			}
		})
	}
}
