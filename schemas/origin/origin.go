// Package origin is the rules of a publishable key's origins: what may be declared, in which form it is kept,
// and whether a request's Origin header is one of those declared. The kept form is "https://" and a host
// in lower-case ASCII (A-labels), with "*." before it when it stands for all its subdomains.
package origin

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"lieudit/schemas/refusal"
)

const (
	scheme   = "https://"
	wildcard = "*."

	maxOrigins = 10
	maxHost    = 253
	maxLabel   = 63
	maxEntry   = len(scheme) + maxHost + 1 // as typed, in characters
)

// hostProfile reads hostProfile as browsers do, for whom two hyphens may stand anywhere: qa--shop.example is a host of many
// preview sites.
var hostProfile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.CheckHyphens(false))

// refuseOrigin is the refusal of a declared origin: the entry as typed, and why in French.
func refuseOrigin(entry, reason string) error {
	if strings.TrimSpace(entry) == "" {
		entry = ""
	}
	return refusal.OriginInvalid.With(refusal.Details{Typed: truncateEntry(entry), Reason: reason, Limit: maxOrigins})
}

// truncateEntry cuts an entry that is too long to be an origin anyway.
func truncateEntry(entry string) string {
	if utf8.RuneCountInString(entry) <= maxEntry {
		return entry
	}
	return string([]rune(entry)[:maxEntry]) + "…"
}

// Parse is the kept form of one entry as typed. It fails with refusal.OriginInvalid.
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
	host, err := hostProfile.ToASCII(host)
	if err != nil || !utf8.ValidString(entry) {
		return refuse("le nom de domaine n'est pas valide")
	}
	if reason := hostFault(host, isWildcard); reason != "" {
		return refuse(reason)
	}
	if isWildcard {
		return scheme + wildcard + host, nil
	}
	return scheme + host, nil
}

// cutHost takes what follows the scheme, which must be a host and nothing else.
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

// hostFault says what is wrong with an ASCII host, or nothing.
func hostFault(host string, isWildcard bool) string {
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

func isMalformedLabel(label string) bool {
	return label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
}

// isNumeric says that browsers take a host with this last label for an IPv4 address (URL standard,
// "ends in a number").
func isNumeric(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	set := "0123456789"
	if hex {
		set += "abcdef"
	}
	return strings.Trim(digits, set) == ""
}
