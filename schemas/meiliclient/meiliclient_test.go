package meiliclient

import (
	"strings"
	"testing"
)

func TestAddressOfAServerIsReadWithItsKey(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]Server{
		"http://127.0.0.1:7700":              {URL: "http://127.0.0.1:7700"},
		"http://secret@127.0.0.1:7700":       {URL: "http://127.0.0.1:7700", Key: "secret"},
		"https://user:secret@search.example": {URL: "https://search.example", Key: "secret"},
		"http://meili:7700/":                 {URL: "http://meili:7700"},
	} {
		if got, err := ParseServer(address); got != want || err != nil {
			t.Errorf("%s: got %+v, %v, want %+v", address, got, err, want)
		}
	}
	for _, address := range []string{"", "127.0.0.1:7700", "ftp://x", "http://", "http://secret@x:y/%zz", "http://secret@h/?q", "http://h:7700#secret"} {
		if _, err := ParseServer(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", address, err)
		}
	}
}
