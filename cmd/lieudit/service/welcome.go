package service

import (
	"fmt"
	"io"
	"strings"
)

// printWelcome tells people at start where everything is and, once in the life of a log, the demo key with calls that
// work.
func (s *service) printWelcome(out io.Writer) {
	fmt.Fprintf(out, "lieudit %s\n", s.version)
	for _, line := range [][2]string{
		{"log", s.Config.describeLog()}, {"read models", s.Config.describeReadModels()}, {"addresses", s.describeVintage()}, {"address index", s.Config.describeAddressIndex()},
		{"site search", s.Config.describeSiteSearch()},
		{"API", s.api.url() + "/services/v1"}, {"customer area", s.area.url() + "/customer-area/v1"}, {"health, metrics", s.ops.url()},
	} {
		fmt.Fprintf(out, "  %-16s %s\n", line[0], line[1])
	}
}

func (c Config) describeLog() string {
	if c.EventStore != "" {
		return hidePassword(c.EventStore)
	}
	return "journal in " + c.Data
}

func (c Config) describeReadModels() string {
	if c.Postgres != "" {
		return hidePassword(c.Postgres)
	}
	return "SQLite in " + c.Data
}

func (c Config) describeAddressIndex() string {
	if c.AddressIndex == MeilisearchIndex {
		return "Meilisearch, " + hideKey(c.Meilisearch)
	}
	return "the vintage's own"
}

// hideKey is an address as it may be shown, where even the user is a secret.
func hideKey(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// hidePassword is an address as it may be shown.
func hidePassword(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return "(hidden)"
	}
	rest, _, _ = strings.Cut(rest, "?") // a password may stand there too
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, _ := strings.Cut(rest[:at], ":")
		rest = user + "@" + rest[at+1:]
	}
	return scheme + "://" + rest
}

// printDemo tells the demo key and what can be done with it.
func (s *service) printDemo(out io.Writer, key string) {
	base := s.api.url() + "/services/v1"
	fmt.Fprintf(out, `
A demo account was opened. Its key is shown this once:

  export LIEUDIT_KEY=%s

  curl %s/version
  curl -H "Authorization: Bearer $LIEUDIT_KEY" %s/me
  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/address/autocomplete?q=rue+de+la+mairie'
  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/address/verify?q=rue+de+la+mairie+toulouse'
  curl -H "Authorization: Bearer $LIEUDIT_KEY" -d '{"code": "boutiques"}' %s/locations/referentiels
  curl -H "Authorization: Bearer $LIEUDIT_KEY" -X PUT -d '{"nom": "Boutique de Mende", "lat": 44.5176, "lon": 3.5}' %s/locations/referentiels/boutiques/sites/mende-1
  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/locations/search?q=mende'
`, key, base, base, base, base, base, base, base)
}
