package origin

import (
	"fmt"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// TooManyError is a list with more different origins than a key can have.
type TooManyError struct{ Count int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("Une clé publiable accepte au plus %d origines, %d ont été déclarées.", maxOrigins, e.Count)
}

// Code names the refusal.
func (e *TooManyError) Code() string { return "trop_d_origines" }

// ParseList is the kept form of a list as typed, each origin once, in the order typed. It fails with a *TooManyError,
// else with an *InvalidError for the first faulty entry; a list without entries is an *InvalidError too.
func ParseList(typed []string) ([]string, error) {
	if len(typed) == 0 {
		return nil, &InvalidError{Reason: "elle manque"}
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
		return nil, &TooManyError{Count: len(kept)}
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
