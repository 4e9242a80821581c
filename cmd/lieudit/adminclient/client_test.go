package adminclient_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/adminclient"
)

func TestJoinPathEscapesEachSegment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verb     string
		segments []string
		want     string
	}{
		{"", []string{"accounts"}, "/accounts"},
		{"revoke", []string{"accounts", "mende", "keys", "k1"}, "/accounts/mende/keys/k1:revoke"},
		{"", []string{"accounts", "a/b"}, "/accounts/a%2Fb"},
		{"plan", []string{"accounts", "x:close"}, "/accounts/x%3Aclose:plan"},
		{"deactivate", []string{"sites", "node:1:deactivate"}, "/sites/node%3A1%3Adeactivate:deactivate"},
		{"", []string{"sites", "a*@+~b"}, "/sites/a%2A@+~b"},
		{"", []string{"accounts", "é ?#"}, "/accounts/%C3%A9%20%3F%23"},
	} {
		if got := adminclient.JoinPath(c.verb, c.segments...); got != c.want {
			t.Errorf("JoinPath(%q, %q): got %s, want %s", c.verb, c.segments, got, c.want)
		}
	}
}

func TestNewAcceptsHTTPAddressesOnly(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://127.0.0.1:8081": true, "https://area.example.fr/": true, "http://127.0.0.1:8081/customer-area/v1": true,
		"127.0.0.1:8081": false, "localhost:8081": false, "ftp://x": false, "http://": false, "": false, "http://a b": false,
	} {
		if _, err := adminclient.New(address, "token"); (err == nil) != want {
			t.Errorf("New(%q): %v, want it taken: %v", address, err, want)
		}
	}
}

func TestAnAnswerThatIsTooLargeIsSaidSo(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{64 << 20: "", 64<<20 + 1: "larger than 64 MiB"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("{}"))
			w.Write(bytes.Repeat([]byte(" "), size-2)) // an error means that the client has gone
		}))
		client, err := adminclient.New(server.URL, "token")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Get(t.Context(), "/accounts", nil); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want %q", size, err, want)
		}
		server.Close()
	}
}
