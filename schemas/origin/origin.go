// Package origin holds the rules of a publishable key's origins: which ones may be declared, how they are stored, and whether
// a request's Origin header matches one. ParseList turns the customer's input into the stored form when a key is issued; Match
// compares it with the header of each request.
//
// The stored form is "https://" and a host in lower-case ASCII (A-labels), with "*." before the host if it covers all its
// subdomains at every depth. The star does not cover the host itself.
package origin

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"lieudit/schemas/refusal"
)

const (
	scheme   = "https://"
	wildcard = "*."

	maxOrigins = 10                        // of one key
	maxHost    = 253                       // characters of a host name in DNS
	maxLabel   = 63                        // characters of a label in DNS
	maxEntry   = len(scheme) + maxHost + 1 // characters of an entry as typed
)

// hostProfile parses hosts as browsers do. Browsers allow two hyphens anywhere: hosts like qa--shop.example are common for
// preview sites.
var hostProfile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.CheckHyphens(false))

// refuseOrigin returns the refusal of a declared origin: the entry as typed, and why, in French. An entry of spaces is shown
// as empty.
func refuseOrigin(entry, reason string) error {
	if strings.TrimSpace(entry) == "" {
		entry = ""
	}
	return refusal.OriginInvalid.With(refusal.Details{Typed: truncateEntry(entry), Reason: reason, Limit: maxOrigins})
}

// truncateEntry cuts an entry that is longer than any origin, so that a refusal never repeats a very long text.
func truncateEntry(entry string) string {
	if utf8.RuneCountInString(entry) <= maxEntry {
		return entry
	}
	return string([]rune(entry)[:maxEntry]) + "…"
}

// Parse returns the kept form of one entry as typed. It fails with refusal.OriginInvalid.
func Parse(entry string) (string, error) {
	refuse := func(reason string) (string, error) { return "", refuseOrigin(entry, reason) }
	host, reason := cutHost(strings.TrimSpace(entry))
	if reason != "" {
		return refuse(reason)
	}
	host, isWildcard := strings.CutPrefix(host, wildcard)
	if strings.Contains(host, "*") {
		return refuse("l'étoile ne s'écrit qu'en tête, seule, comme dans https://*.exemple.fr")
	}
	host, err := hostProfile.ToASCII(host) // lower case, A-labels
	if err != nil || !utf8.ValidString(entry) {
		return refuse("le nom de domaine n'est pas valide")
	}
	if reason := findHostFault(host, isWildcard); reason != "" {
		return refuse(reason)
	}
	if isWildcard {
		return scheme + wildcard + host, nil
	}
	return scheme + host, nil
}

// cutHost returns the text after the scheme, which must be just a host, or the reason why it is not.
func cutHost(text string) (host, reason string) {
	if utf8.RuneCountInString(text) > maxEntry {
		return "", fmt.Sprintf("elle dépasse %d caractères", maxEntry)
	}
	if len(text) < len(scheme) || !equalFold(text[:len(scheme)], scheme) {
		return "", "elle doit commencer par https://"
	}
	host = text[len(scheme):]
	for _, part := range []struct{ marks, why string }{
		{"@", "un identifiant d'utilisateur n'est pas permis"},
		{"/\\", "seul le domaine est permis, sans chemin ni barre oblique finale"},
		{"?", "seul le domaine est permis, sans paramètre"},
		{"#", "seul le domaine est permis, sans fragment"},
		{"[]", "une adresse IP n'est pas permise"},
		{":", "un port n'est pas permis"},
	} {
		if strings.ContainsAny(host, part.marks) {
			return "", part.why
		}
	}
	return host, ""
}

// findHostFault returns, in French, what is wrong with an ASCII host, or "".
func findHostFault(host string, isWildcard bool) string {
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case host == "":
		return "le domaine manque"
	case last == "":
		return "un point final n'est pas permis"
	case len(host) > maxHost:
		return fmt.Sprintf("le domaine dépasse %d caractères", maxHost)
	case slices.ContainsFunc(labels, isMalformedLabel):
		return "le nom de domaine n'est pas valide"
	case isNumeric(last):
		return "une adresse IP n'est pas permise"
	case isWildcard && len(labels) < 2:
		return "l'étoile doit être suivie d'au moins deux labels, comme dans https://*.exemple.fr"
	case len(labels) < 2:
		return "un domaine d'au moins deux labels est attendu, comme dans https://exemple.fr"
	}
	return ""
}

// isMalformedLabel reports whether a label breaks the rules of DNS host names, in their lower-case form.
func isMalformedLabel(label string) bool {
	return label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
}

// isNumeric reports whether browsers read a host with this last label as an IPv4 address (URL standard, "ends in a number").
func isNumeric(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	set := "0123456789"
	if hex {
		set += "abcdef"
	}
	return strings.Trim(digits, set) == ""
}

// ParseList returns the stored form of a list as typed, each origin once, in the order typed. It fails with
// refusal.TooManyOrigins, and otherwise with refusal.OriginInvalid for the first invalid entry or for an empty list.
func ParseList(typed []string) ([]string, error) {
	if len(typed) == 0 {
		return nil, refuseOrigin("", "elle manque")
	}
	// An invalid entry counts as typed: a list that is too long is refused for its length first.
	var kept []string
	var firstErr error
	seen := make(map[string]bool, len(typed))
	for _, entry := range typed {
		o, err := Parse(entry)
		if err != nil {
			o = entry
			if firstErr == nil {
				firstErr = err
			}
		}
		if !seen[o] {
			seen[o] = true
			kept = append(kept, o)
		}
	}
	if len(kept) > maxOrigins {
		return nil, refusal.TooManyOrigins.With(refusal.Details{Limit: maxOrigins, Count: len(kept)})
	}
	if firstErr != nil {
		return nil, firstErr
	}
	return kept, nil
}

// Warning explains, in French, why a valid origin is probably not what the customer meant, or is "".
func Warning(origin string) string {
	host, isWildcard := strings.CutPrefix(origin, scheme+wildcard)
	if !isWildcard {
		return ""
	}
	// A star over a public suffix (*.github.io) covers other people's hosts.
	if suffix, _ := publicsuffix.PublicSuffix(host); suffix != host {
		return ""
	}
	return fmt.Sprintf("L'origine « %s » couvre tous les domaines enregistrés sous %s, qui appartiennent à des tiers différents.", origin, host)
}

// Warnings returns the warnings of a list of kept origins.
func Warnings(origins []string) []string {
	var all []string
	for _, o := range origins {
		if w := Warning(o); w != "" {
			all = append(all, w)
		}
	}
	return all
}

// defaultPort may follow the host in an Origin header; browsers leave it out.
const defaultPort = ":443"

// Match reports whether the value of an Origin header is one of the stored origins. The value "null" and a missing header
// match nothing. Match runs for each request with a publishable key, so it does not allocate.
func Match(header string, kept []string) bool {
	host, ok := requestHost(header)
	if !ok {
		return false
	}
	for _, o := range kept {
		if coversHost(strings.TrimPrefix(o, scheme), host) {
			return true
		}
	}
	return false
}

// requestHost returns the host of an Origin header with scheme https, without the default port, in the case it came in.
func requestHost(header string) (string, bool) {
	if len(header) <= len(scheme) || !equalFold(header[:len(scheme)], scheme) {
		return "", false
	}
	host := strings.TrimSuffix(header[len(scheme):], defaultPort)
	return host, host != ""
}

// coversHost reports whether a declared host, in the stored form without its scheme, equals the host of the request or covers
// it with a star.
func coversHost(declared, host string) bool {
	suffix, isWildcard := strings.CutPrefix(declared, "*")
	if !isWildcard {
		return equalFold(host, declared)
	}
	prefixLen := len(host) - len(suffix)
	return prefixLen > 0 && equalFold(host[prefixLen:], suffix) && isSubdomain(host[:prefixLen])
}

// isSubdomain reports whether a text is one or more labels as browsers allow them in a host, which includes underscores.
func isSubdomain(text string) bool {
	afterDot := true
	for i := range len(text) {
		c := lowerASCII(text[i])
		if c == '.' && afterDot || !(c == '.' || c == '-' || c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			return false
		}
		afterDot = c == '.'
	}
	return !afterDot
}

// equalFold compares an ASCII text of any case with one in lower case. strings.EqualFold would also equate the Kelvin sign
// (U+212A) with k.
func equalFold(text, lowered string) bool {
	if len(text) != len(lowered) {
		return false
	}
	for i := range len(text) {
		if lowerASCII(text[i]) != lowered[i] {
			return false
		}
	}
	return true
}

// lowerASCII returns the lower-case letter of a byte from A to Z, and any other byte unchanged.
func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
