package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
)

const patchedContent = `{"nom":"Paul","adresse":{"ligne_1":"3 rue X","commune":"Mende"},"lat":1,"lon":2,"horaires":{"lun":"9h","mar":"9h"},"email":"a@b.fr",
	"tags":["a","b"],"proprietes":{"a":{"b":1,"c":2},"d":3}}`

func TestAMergePatchChangesWhatItNamesAndRemovesWhatIsNull(t *testing.T) {
	t.Parallel()
	for patch, want := range map[string]string{
		`{}`:                           `{"nom":"Paul","adresse":{"ligne_1":"3 rue X","commune":"Mende"},"lat":1,"lon":2,"horaires":{"lun":"9h","mar":"9h"},"email":"a@b.fr","tags":["a","b"],"proprietes":{"a":{"b":1,"c":2},"d":3}}`,
		`{"nom":"Max","email":null}`:   `{"nom":"Max","adresse":{"ligne_1":"3 rue X","commune":"Mende"},"lat":1,"lon":2,"horaires":{"lun":"9h","mar":"9h"},"tags":["a","b"],"proprietes":{"a":{"b":1,"c":2},"d":3}}`,
		`{"lat":null,"lon":null}`:      `{"nom":"Paul","adresse":{"ligne_1":"3 rue X","commune":"Mende"},"horaires":{"lun":"9h","mar":"9h"},"email":"a@b.fr","tags":["a","b"],"proprietes":{"a":{"b":1,"c":2},"d":3}}`,
		`{"lat":4,"actif":"x","id":1}`: `{"nom":"Paul","adresse":{"ligne_1":"3 rue X","commune":"Mende"},"lat":4,"lon":2,"horaires":{"lun":"9h","mar":"9h"},"email":"a@b.fr","tags":["a","b"],"proprietes":{"a":{"b":1,"c":2},"d":3}}`,
		`{"adresse":{"ligne_1":null,"pays":"FR"},"tags":["c"],"horaires":"fermé","proprietes":null}`:          `{"nom":"Paul","adresse":{"commune":"Mende","pays":"FR"},"lat":1,"lon":2,"horaires":"fermé","email":"a@b.fr","tags":["c"]}`,
		`{"adresse":null,"tags":null,"horaires":{"mar":null},"proprietes":{"a":{"b":null,"x":[null]},"d":9}}`: `{"nom":"Paul","lat":1,"lon":2,"horaires":{"lun":"9h"},"email":"a@b.fr","proprietes":{"a":{"c":2,"x":[null]},"d":9}}`,
		`{"adresse":{"ligne_1":null,"commune":null},"horaires":null,"proprietes":{"a":{"b":{"n":null}}}}`:     `{"nom":"Paul","lat":1,"lon":2,"email":"a@b.fr","tags":["a","b"],"proprietes":{"a":{"b":{},"c":2},"d":3}}`,
	} {
		if got := applyPatch(t, patchedContent, patch); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", patch, got, want)
		}
	}
}

func applyPatch(t *testing.T, content, change string) string {
	t.Helper()
	var c locations.Content
	if err := json.Unmarshal([]byte(content), &c); err != nil {
		t.Fatal(err)
	}
	decoded, err := kit.NewDecoder[body.PatchSite]().DecodeText([]byte(change))
	if err == nil {
		c, err = sitePatch(decoded).apply(c)
	}
	if p, ok := errors.AsType[problem.Problem](err); ok {
		detail, err := p.MarshalDetail()
		return fmt.Sprint(p.Status, string(detail), err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheResultOfAPatchKeepsTheRules(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf(`"m%d":1`, i)
	}
	long := strings.Repeat("x", 10_000)
	for patch, want := range map[string]string{
		`{"lat":null}`: `"loc":["body"]`,
		`{"lat":91}`:   `"loc":["body","lat"]`,
		`{"nom":5}`:    `"loc":["body","nom"]`,
		`{"x":null}`:   `"extra_forbidden"`,
		`{"proprietes":{` + strings.Join(many, ",") + `}}`: `"loc":["body","proprietes"]`,
		`{"proprietes":{"y":"` + long + `"}}`:              ``,
		`{"proprietes":[]}`:                                `"dict_type"`,
		`{"tags":["a","a"]}`:                               `"loc":["body","tags",1]`,
		`{"adresse":{"code_insee":"123456"}}`:              `"loc":["body","adresse","code_insee"]`,
	} {
		got := applyPatch(t, patchedContent, patch)
		if want == "" && strings.HasPrefix(got, "422") || want != "" && (!strings.HasPrefix(got, "422") || !strings.Contains(got, want)) {
			t.Errorf("%.60s: got %.200s want %s", patch, got, want)
		}
	}
	if got := applyPatch(t, `{"proprietes":{"z":"`+long+`"}}`, `{"proprietes":{"y":"`+long+`"}}`); !strings.Contains(got, "16384 bytes") {
		t.Errorf("got %.200s", got)
	}
}
