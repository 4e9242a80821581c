package auth_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// mapKeyRing is a key ring in a map.
type mapKeyRing map[token.Hash]*grant.Grant

func (r mapKeyRing) IsFresh(time.Time) bool { return true }

func (r mapKeyRing) FindKey(h token.Hash, _ time.Time) (grant.Grant, bool) {
	g, ok := r[h]
	if !ok {
		return grant.Grant{}, false
	}
	return *g, true
}

// newKeyRingOf is n keys that nobody has.
func newKeyRingOf(n int) mapKeyRing {
	r := make(mapKeyRing, n+1)
	var h token.Hash
	for i := range n {
		binary.BigEndian.PutUint64(h[:], uint64(i)*0x9e3779b97f4a7c15)
		r[h] = &grant.Grant{Kind: token.Secret, Account: "other"}
	}
	return r
}

const searchPath = "/services/v1/locations/search"

// newAuthenticatorAndRequest is an authenticator, and a request that it accepts.
func newAuthenticatorAndRequest(keys int, kind token.Kind) (*auth.Authenticator, *http.Request) {
	r := newKeyRingOf(keys - 1)
	text := token.DefaultPrefixes.New(kind)
	r[token.HashOf(text)] = &grant.Grant{
		Kind: kind, Account: "acme", Origins: []string{"https://www.a.fr", "https://*.b.fr"}, Terms: grant.Terms{Plan: "GROWTH"},
	}
	request := httptest.NewRequest("GET", searchPath, nil)
	request.Header.Set("Authorization", "Bearer "+text)
	request.Header.Set("Origin", "https://shop.b.fr")
	return auth.NewAuthenticator(r, waitlimit.New(waitlimit.MaxRequests), token.DefaultPrefixes, searchPath, time.Now), request
}

func TestValidationAllocatesTheSameWhateverTheNumberOfKeys(t *testing.T) {
	for _, kind := range []token.Kind{token.Secret, token.Publishable} {
		var allocs [2]float64
		for i, keys := range []int{1, 10_000} {
			gate, r := newAuthenticatorAndRequest(keys, kind)
			allocs[i] = testing.AllocsPerRun(100, func() {
				if _, err := gate.Authenticate(http.Header{}, r); err != nil {
					t.Fatal(err)
				}
			})
		}
		if allocs[0] != allocs[1] || allocs[0] > 5 {
			t.Errorf("%s: %v allocations with 1 key, %v with 10,000; want as many, at most 5", kind, allocs[0], allocs[1])
		}
	}
}

func BenchmarkValidation(b *testing.B) {
	for _, kind := range []token.Kind{token.Secret, token.Publishable} {
		for _, keys := range []int{1, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, keys), func(b *testing.B) {
				gate, r := newAuthenticatorAndRequest(keys, kind)
				h := http.Header{}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := gate.Authenticate(h, r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkRawLimit is the least work that is possible: the SHA-256 of a token and one look-up in a map.
func BenchmarkRawLimit(b *testing.B) {
	r := newKeyRingOf(1_000_000)
	text := token.DefaultPrefixes.New(token.Secret)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := r[token.HashOf(text)]; ok {
			b.Fatal("found")
		}
	}
}

func FuzzBearer(f *testing.F) {
	for _, seed := range []string{"Bearer x", "bearer  x ", "Bearer", "Basic x", "Bearer x,y", "Bearer\tx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		text, ok := auth.BearerToken(http.Header{"Authorization": {value}})
		if ok != (text != "") || len(text) > len(value)-len("Bearer ") && ok {
			t.Errorf("Bearer(%q) = %q, %v", value, text, ok)
		}
	})
}
