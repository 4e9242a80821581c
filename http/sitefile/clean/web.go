package clean

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/publicsuffix"
)

var (
	// hrefPattern matches the target of an HTML link.
	hrefPattern = regexp.MustCompile(`(?i)\bhref\s*=\s*["']?([^"'\s>]+)`)
	// schemePattern matches the scheme of a web address, and the ways in which people mistype it.
	schemePattern = regexp.MustCompile(`(?i)^h?t{1,3}ps?(?::?\\{2}|:/{0,3}|/{2,3}|;//)(?:https?:?//)?`)
	// hostPattern matches the name of a host with a domain. Its letters may have accents.
	hostPattern = regexp.MustCompile(`^(?:[\p{L}\p{N}_](?:[\p{L}\p{N}_-]*[\p{L}\p{N}_])?\.)+[\p{L}\p{N}-]*\p{L}[\p{L}\p{N}-]*$`)
	// emailPattern matches the addresses that mail servers accept without quotes: words separated by points, and a domain of at least two parts.
	emailPattern = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+)*` +
		`@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$`)
)

// The longest texts that the API accepts.
const (
	maxWebsite = 2048
	maxEmail   = 254
)

// Website finds the first web address in a text: an http or https URL, one that begins with www., or the bare name of a host under a
// public domain, by the list of the Public Suffix project. An address without a scheme gets https://. The text may be the link of
// HTML around it. Words next to the address are skipped. Without an address, or if the first one that has a scheme is wrong, the
// text is not ok.
func Website(s string) (address string, ok bool) {
	if m := hrefPattern.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	words := splitAddresses(s)
	for _, word := range words {
		word = strings.TrimLeft(strings.Trim(word, `"'()[]«»,;. `), "/:")
		if address, ok = parseWebsite(word, len(words) == 1); ok || schemePattern.MatchString(word) {
			return address, ok
		}
	}
	return "", false
}

// splitAddresses splits a text at spaces and bars, and at commas and semicolons that another address or a space follows.
func splitAddresses(s string) []string {
	for _, sign := range []string{",", ";"} {
		for _, start := range []string{"http", "www.", "HTTP", "WWW."} {
			s = strings.ReplaceAll(s, sign+start, " "+start)
		}
	}
	return strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '|' || r == '<' || r == '>' || r == '"' })
}

// parseWebsite reads one word. A word without a scheme and www. must be unmistakable: the name of a host, and among other words
// in small letters. In a domain without registrable names, only a word with a scheme that stands alone is an address.
func parseWebsite(word string, isAlone bool) (address string, ok bool) {
	scheme, rest, typed := cutScheme(word)
	address = scheme + strings.ReplaceAll(rest, `\`, "/")
	u, err := url.Parse(address)
	if err != nil || len(address) > maxWebsite || u.User != nil || !hostPattern.MatchString(u.Hostname()) || len(u.Port()) > maxPort {
		return "", false
	}
	isPlain := strings.Contains(word, "@") || !isAlone && u.Host != strings.ToLower(u.Host)
	switch {
	case hasKnownDomain(u.Hostname()):
		ok = typed || hasPrefixFold(word, "www.") || !isPlain
	default:
		ok = typed && isAlone
	}
	if !ok {
		return "", false
	}
	return address, true
}

// maxPort is the most digits of a port.
const maxPort = 5

// cutScheme cuts the scheme off a word and fixes it. typed reports whether there was one; otherwise it is https.
func cutScheme(word string) (scheme, rest string, typed bool) {
	found := schemePattern.FindString(word)
	if found == "" {
		return "https://", word, false
	}
	rest = strings.TrimPrefix(word[len(found):], "//")
	if strings.Contains(strings.ToLower(found), "ps") {
		return "https://", rest, true
	}
	return "http://", rest, true
}

// hasPrefixFold reports whether a text begins with a prefix, in capitals or not.
func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// hasKnownDomain reports whether a host is under a domain in which people can register names.
func hasKnownDomain(host string) bool {
	suffix, isRegistry := publicsuffix.PublicSuffix(strings.ToLower(host))
	return isRegistry && len(host) > len(suffix)+1 || !isRegistry && strings.Contains(suffix, ".") && len(host) > len(suffix)
}

// Email finds the first e-mail address in a text. mailto:, brackets and points around it are removed, and so are spaces around its
// @. Accents and several @ in one word are not ok.
func Email(s string) (string, bool) {
	s = spacesAroundAt.ReplaceAllString(s, "@")
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,;|<>()[]"`, r) }) {
		if i := strings.LastIndex(strings.ToLower(word), "mailto:"); i >= 0 {
			word, _, _ = strings.Cut(word[i+len("mailto:"):], "?")
		}
		word = strings.Trim(word[strings.LastIndex(word, ":")+1:], `.'/ `)
		if len(word) <= maxEmail && emailPattern.MatchString(word) {
			return word, true
		}
		if first, _, hasSlash := strings.Cut(word, "/"); hasSlash && emailPattern.MatchString(first) {
			return first, true
		}
	}
	return "", false
}

var spacesAroundAt = regexp.MustCompile(`\s*@\s*`)
