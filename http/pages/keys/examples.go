package keys

import (
	"fmt"
	"strings"

	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/token"
)

// examples are lines that work as they stand. A key is made of letters, digits, _ and -, and an origin of what a host has, so that
// nothing in them means anything to a shell or to a script.
type examples struct {
	Token  string // of the key, if it is known
	Env    string // of a secret key: for a file with the settings of a server
	First  string // the shortest request that counts: GET /me, or a search, which is all that a publishable key opens
	Second string // of a secret key: a question about an address
	Script string // of a publishable key: for a web page
	Origin string // that the first request names
}

// keyVariable is what the lines call the variable with the key.
const keyVariable = "LIEUDIT_KEY"

// newExamples makes the lines of a key with its token. Of a secret key without it they name the variable.
func newExamples(q *page.Request, k body.Key) examples {
	base := q.Site.API().String() + "/services/v1"
	if k.Kind == token.Publishable {
		return publishableExamples(base, k)
	}
	bearer := "$" + keyVariable
	e := examples{Token: k.Token}
	if k.Token != "" {
		bearer, e.Env = k.Token, keyVariable+"="+k.Token
	}
	e.First = fmt.Sprintf("curl -H \"Authorization: Bearer %s\" '%s/me'", bearer, base)
	e.Second = fmt.Sprintf("curl -H \"Authorization: Bearer %s\" '%s/address/autocomplete?q=10+rue+de+la+mairie'", bearer, base)
	return e
}

func publishableExamples(base string, k body.Key) examples {
	e := examples{Token: k.Token, Origin: "https://www.exemple.fr"}
	if len(k.Origins) > 0 {
		e.Origin = strings.Replace(k.Origins[0], "*.", "www.", 1)
	}
	e.First = fmt.Sprintf("curl -H \"Authorization: Bearer %s\" -H 'Origin: %s' '%s/locations/search?q=mairie'", k.Token, e.Origin, base)
	e.Script = fmt.Sprintf(`const answer = await fetch("%s/locations/search?q=mairie", {
  headers: { Authorization: "Bearer %s" },
});
const { results = [] } = await answer.json();`, base, k.Token)
	return e
}
