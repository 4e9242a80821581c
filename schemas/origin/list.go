package origin

import (
	"fmt"
	"strings"

	"golang.org/x/net/publicsuffix"

	"lieudit/schemas/refusal"
)

// ParseList is the kept form of a list as typed, each origin once, in the order typed. It fails with
// refusal.TooManyOrigins, else with refusal.OriginInvalid for the first faulty entry, or for a list without entries.
func ParseList(typed []string) ([]string, error) {
	if len(typed) == 0 {
		return nil, refuseOrigin("", "elle manque")
	}
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

// Warning says in French what is probably not meant by a kept origin that the rules allow, or "".
func Warning(origin string) string {
	host, isWildcard := strings.CutPrefix(origin, scheme+wildcard)
	if !isWildcard {
		return ""
	}
	if suffix, _ := publicsuffix.PublicSuffix(host); suffix != host {
		return ""
	}
	return fmt.Sprintf("L'origine « %s » couvre tous les domaines enregistrés sous %s, qui appartiennent à des tiers différents.", origin, host)
}

// Warnings are the warnings of a list of kept origins.
func Warnings(origins []string) []string {
	var all []string
	for _, o := range origins {
		if w := Warning(o); w != "" {
			all = append(all, w)
		}
	}
	return all
}
