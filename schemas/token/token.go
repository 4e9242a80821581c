// Package token is the form of every token that the service gives out: a prefix for its kind, 32 random base62 characters and
// a checksum of 6 characters. Prefixes.New makes a token. KindOf checks one before anything is looked up. HashOf gives what is
// stored of it, and Hint what may be shown. Redact and RedactingHandler keep tokens out of logs.
//
// The checksum finds mistyped and truncated tokens without a look-up. It does not protect against forgery: the random
// characters do.
package token

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"strings"
)

// Kind is what a token gives access to.
type Kind string

const (
	Secret      Kind = "secret"      // the API, from a server
	Publishable Kind = "publishable" // GET /locations/search, from a declared origin
	Area        Kind = "area"        // the customer area
	Session     Kind = "session"     // the customer area in a browser, for the time of a session; it is the value of a cookie
	Link        Kind = "link"        // one session
)

// Sessions and links are of this program alone, so their prefixes are not configured.
const (
	sessionPrefix = "ld_se_"
	linkPrefix    = "ld_ln_"
)

const (
	alphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	bodyLen   = 32 // 190 bits
	checkLen  = 6
	hintLen   = 4
	biasLimit = 256 - 256%len(alphabet) // random bytes from here on are not used, so that every character is equally likely
	hashLen   = sha256.Size
)

// base62 is true for the bytes of the alphabet.
var base62 = func() (in [256]bool) {
	for i := range len(alphabet) {
		in[alphabet[i]] = true
	}
	return in
}()

// Hash is the SHA-256 of a whole token. Of a secret token nothing else is stored.
type Hash [hashLen]byte

// Prefixes are the prefixes of the kinds of token whose prefix is configured. Validate has the rules for them.
type Prefixes struct{ Secret, Publishable, Area string }

// DefaultPrefixes are the prefixes used where none are configured.
var DefaultPrefixes = Prefixes{Secret: "ld_sk_", Publishable: "ld_pk_", Area: "ld_ct_"}

// Validate says why the prefixes cannot be used. Each must be letters, digits, "_" or "-", at least one. None may begin
// another, since then the kind of a token would not be clear. It may begin those of sessions and links, which are younger than
// some configurations: the length of a token tells them apart.
func (p Prefixes) Validate() error {
	configured := []string{p.Secret, p.Publishable, p.Area}
	for i, each := range configured {
		if each == sessionPrefix || each == linkPrefix {
			return fmt.Errorf("token prefix %q is that of sessions or of links", each)
		}
		if each == "" || strings.Trim(each, alphabet+"_-") != "" {
			return fmt.Errorf("token prefix %q is not made of letters, digits, _ and -", each)
		}
		for j, other := range configured {
			if i != j && strings.HasPrefix(other, each) {
				return fmt.Errorf("token prefix %q begins %q", each, other)
			}
		}
	}
	return nil
}

// all is every prefix, those that are configured first.
func (p Prefixes) all() [5]string {
	return [...]string{p.Secret, p.Publishable, p.Area, sessionPrefix, linkPrefix}
}

// PrefixOf is the prefix of a kind. An unknown kind gets that of the customer area.
func (p Prefixes) PrefixOf(k Kind) string {
	switch k {
	case Secret:
		return p.Secret
	case Publishable:
		return p.Publishable
	case Session:
		return sessionPrefix
	case Link:
		return linkPrefix
	default:
		return p.Area
	}
}

// New makes a random token of a kind.
func (p Prefixes) New(k Kind) string {
	return p.complete(k, randomBase62(bodyLen, func(b []byte) { rand.Read(b) })) // never fails: the runtime ends the program first
}

// Derive makes the token of a kind that follows from a secret of at least 256 random bits: the same one each time. Nobody
// learns anything of it without the secret, nor of the secret from it.
func (p Prefixes) Derive(k Kind, secret []byte) string {
	counter := byte(0)
	return p.complete(k, randomBase62(bodyLen, func(b []byte) {
		for i := 0; i < len(b); i += sha256.Size {
			mac := hmac.New(sha256.New, secret)
			mac.Write([]byte{counter})
			copy(b[i:], mac.Sum(nil))
			counter++
		}
	}))
}

// complete makes a token of its body.
func (p Prefixes) complete(k Kind, body string) string {
	text := p.PrefixOf(k) + body
	sum := checksum(text)
	return text + string(sum[:])
}

// KindOf returns the kind of a token; false when it is not well formed: a known prefix, the right length and alphabet, and
// the right checksum. It allocates nothing.
func (p Prefixes) KindOf(text string) (Kind, bool) {
	for _, k := range [...]Kind{Secret, Publishable, Area, Session, Link} {
		if body, ok := strings.CutPrefix(text, p.PrefixOf(k)); ok && isWellFormed(text, body) {
			return k, true
		}
	}
	return "", false
}

// isWellFormed checks what follows the prefix: length, alphabet, and the checksum over prefix and body.
func isWellFormed(text, body string) bool {
	if len(body) != bodyLen+checkLen {
		return false
	}
	if base62Length(body) != len(body) {
		return false
	}
	signed := text[:len(text)-checkLen]
	sum := checksum(signed)
	return string(sum[:]) == text[len(signed):]
}

// HashOf is the hash by which a token is looked up. It needs no salt: nobody can guess 190 random bits.
func HashOf(text string) Hash { return sha256.Sum256([]byte(text)) }

// Hint is what may be shown of a token: its prefix, "…" and its last four characters. Of any other text it is "…".
func (p Prefixes) Hint(text string) string {
	if k, ok := p.KindOf(text); ok {
		return p.PrefixOf(k) + "…" + text[len(text)-hintLen:]
	}
	return "…"
}

// randomBase62 returns n characters of the alphabet, each equally likely if the bytes that fill writes are.
func randomBase62(n int, fill func([]byte)) string {
	out := make([]byte, 0, n)
	var pool [64]byte // twice as many as a token needs, because some are not used
	for len(out) < n {
		fill(pool[:])
		for _, b := range pool {
			if int(b) < biasLimit && len(out) < n {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out)
}

// checksum is the CRC-32 (IEEE) of a text in base62, left-padded with zeros. It is computed from the table, since
// crc32.ChecksumIEEE would need a copy of the text on the heap.
func checksum(text string) (out [checkLen]byte) {
	sum := ^uint32(0)
	for i := range len(text) {
		sum = crc32.IEEETable[byte(sum)^text[i]] ^ sum>>8
	}
	sum = ^sum
	for i := checkLen - 1; i >= 0; i-- {
		out[i] = alphabet[sum%uint32(len(alphabet))]
		sum /= uint32(len(alphabet))
	}
	return out
}
