// Package origin holds the rules of a publishable key's origins: which ones may be declared, how they are stored, and whether
// a request's Origin header matches one. ParseList turns the customer's input into the stored form when a key is issued; Admit
// compares it with the header of each request. JudgeList and OfPage answer beforehand what these two will say.
//
// The stored form is "https://" and a host in lower-case ASCII (A-labels), with "*." before the host if it covers all its
// subdomains at every depth. The star does not cover the host itself.
package origin

import (
	"cmp"
	"fmt"
	"net/url"
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

// Fault is why an entry cannot be declared.
type Fault string

// The faults, in the order in which they are found.
const (
	Missing         Fault = "manque"
	TooLong         Fault = "trop_longue"
	NotHTTPS        Fault = "schema"
	HasUser         Fault = "identifiant"
	HasPath         Fault = "chemin"
	HasQuery        Fault = "parametre"
	HasFragment     Fault = "fragment"
	IsAddress       Fault = "adresse_ip"
	HasPort         Fault = "port"
	StarMisplaced   Fault = "etoile"
	HostMissing     Fault = "domaine_manquant"
	EndsInDot       Fault = "point_final"
	HostTooLong     Fault = "domaine_trop_long"
	HostMalformed   Fault = "domaine_invalide"
	StarOverOneName Fault = "etoile_un_label"
	OneName         Fault = "un_label"
)

// faultReasons are the reasons of refusals, in French.
var faultReasons = map[Fault]string{
	Missing:         "elle manque",
	TooLong:         fmt.Sprintf("elle dépasse %d caractères", maxEntry),
	NotHTTPS:        "elle doit commencer par https://",
	HasUser:         "un identifiant d'utilisateur n'est pas permis",
	HasPath:         "seul le domaine est permis, sans chemin ni barre oblique finale",
	HasQuery:        "seul le domaine est permis, sans paramètre",
	HasFragment:     "seul le domaine est permis, sans fragment",
	IsAddress:       "une adresse IP n'est pas permise",
	HasPort:         "un port n'est pas permis",
	StarMisplaced:   "l'étoile ne s'écrit qu'en tête, seule, comme dans https://*.exemple.fr",
	HostMissing:     "le domaine manque",
	EndsInDot:       "un point final n'est pas permis",
	HostTooLong:     fmt.Sprintf("le domaine dépasse %d caractères", maxHost),
	HostMalformed:   "le nom de domaine n'est pas valide",
	StarOverOneName: "l'étoile doit être suivie d'au moins deux labels, comme dans https://*.exemple.fr",
	OneName:         "un domaine d'au moins deux labels est attendu, comme dans https://exemple.fr",
}

// refuse returns the refusal of an entry as typed. An entry of spaces is shown as empty.
func (f Fault) refuse(entry string) error {
	if strings.TrimSpace(entry) == "" {
		entry = ""
	}
	return refusal.OriginInvalid.With(refusal.Details{Typed: truncateEntry(entry), Reason: faultReasons[f], Limit: maxOrigins})
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
	kept, fault := parse(entry)
	if fault != "" {
		return "", fault.refuse(entry)
	}
	return kept, nil
}

// parse returns the kept form of an entry, or what is wrong with it.
func parse(entry string) (kept string, fault Fault) {
	host, fault := cutHost(strings.TrimSpace(entry))
	if fault != "" {
		return "", fault
	}
	host, isWildcard := strings.CutPrefix(host, wildcard)
	if strings.Contains(host, "*") {
		return "", StarMisplaced
	}
	host, err := hostProfile.ToASCII(host) // lower case, A-labels
	if err != nil || !utf8.ValidString(entry) {
		return "", HostMalformed
	}
	if fault := findHostFault(host, isWildcard); fault != "" {
		return "", fault
	}
	if isWildcard {
		return scheme + wildcard + host, ""
	}
	return scheme + host, ""
}

// cutHost returns the text after the scheme, which must be just a host, or what is wrong with it.
func cutHost(text string) (host string, fault Fault) {
	if utf8.RuneCountInString(text) > maxEntry {
		return "", TooLong
	}
	if len(text) < len(scheme) || !equalFold(text[:len(scheme)], scheme) {
		return "", NotHTTPS
	}
	host = text[len(scheme):]
	for _, part := range []struct {
		marks string
		fault Fault
	}{{"@", HasUser}, {"/\\", HasPath}, {"?", HasQuery}, {"#", HasFragment}, {"[]", IsAddress}, {":", HasPort}} {
		if strings.ContainsAny(host, part.marks) {
			return "", part.fault
		}
	}
	return host, ""
}

// findHostFault returns what is wrong with an ASCII host, or "".
func findHostFault(host string, isWildcard bool) Fault {
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case host == "":
		return HostMissing
	case last == "":
		return EndsInDot
	case len(host) > maxHost:
		return HostTooLong
	case slices.ContainsFunc(labels, isMalformedLabel):
		return HostMalformed
	case isNumeric(last):
		return IsAddress
	case isWildcard && len(labels) < 2:
		return StarOverOneName
	case len(labels) < 2:
		return OneName
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

// Verdict is what becomes of one entry of a list.
type Verdict struct {
	Typed    string
	Kept     string // the stored form; empty if it cannot be declared
	Fault    Fault  // why it cannot
	Refusal  error  // the same as refusal.OriginInvalid
	Repeated bool   // the list has it before
	Warning  string // why it is probably not what the customer meant, in French
}

// JudgeList judges each entry of a list as typed, in its order. Its error is the refusal of the whole list: refusal.TooManyOrigins
// for more distinct entries than a key can have, and otherwise refusal.OriginInvalid for the first invalid entry or an empty list.
func JudgeList(typed []string) ([]Verdict, error) {
	verdicts := make([]Verdict, len(typed))
	seen := make(map[string]bool, len(typed))
	var firstErr error
	for i, entry := range typed {
		v := Verdict{Typed: entry}
		if v.Kept, v.Fault = parse(entry); v.Fault != "" {
			v.Refusal = v.Fault.refuse(entry)
			firstErr = cmp.Or(firstErr, v.Refusal)
		}
		form := cmp.Or(v.Kept, entry) // an invalid entry counts as typed: a list that is too long is refused for its length first
		v.Repeated, seen[form] = seen[form], true
		v.Warning = Warning(v.Kept)
		verdicts[i] = v
	}
	switch {
	case len(typed) == 0:
		return nil, Missing.refuse("")
	case len(seen) > maxOrigins:
		return verdicts, refusal.TooManyOrigins.With(refusal.Details{Limit: maxOrigins, Count: len(seen)})
	}
	return verdicts, firstErr
}

// ParseList returns the stored form of a list as typed, each origin once, in the order typed. It fails like JudgeList.
func ParseList(typed []string) ([]string, error) {
	verdicts, err := JudgeList(typed)
	if err != nil {
		return nil, err
	}
	var kept []string
	for _, v := range verdicts {
		if !v.Repeated {
			kept = append(kept, v.Kept)
		}
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

// Admit returns the stored origin that admits a request with a publishable key, by the values of its Origin header. It fails with
// refusal.OriginMissing without a value, and with refusal.OriginNotAllowed for "null", a second value, and whatever no stored
// origin covers. It runs for each request with a publishable key, so it does not allocate.
func Admit(sent, kept []string) (entry string, err error) {
	switch {
	case len(sent) == 0, len(sent) == 1 && sent[0] == "":
		return "", refusal.OriginMissing
	case len(sent) > 1:
		return "", refusal.OriginNotAllowed
	}
	host, ok := requestHost(sent[0])
	if !ok {
		return "", refusal.OriginNotAllowed
	}
	for _, o := range kept {
		if coversHost(strings.TrimPrefix(o, scheme), host) {
			return o, nil
		}
	}
	return "", refusal.OriginNotAllowed
}

// OfPage returns the Origin header that browsers send for a page, by the address of the page. A host alone is one with https. Text
// that is no address is returned unchanged, without the spaces around it.
func OfPage(address string) string {
	address = strings.TrimSpace(address)
	text := address
	if !strings.Contains(text, "://") && strings.Contains(text, ".") {
		text = scheme + text
	}
	u, err := url.Parse(text)
	switch {
	case err == nil && u.Scheme == "file":
		return "null"
	case err != nil || u.Host == "":
		return address
	}
	host := u.Hostname()
	if ascii, err := hostProfile.ToASCII(host); err == nil {
		host = ascii
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && port != defaultPorts[u.Scheme] {
		host += ":" + port
	}
	return u.Scheme + "://" + strings.ToLower(host)
}

// defaultPorts are the ports that browsers leave out of an origin.
var defaultPorts = map[string]string{"https": "443", "http": "80"}

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
